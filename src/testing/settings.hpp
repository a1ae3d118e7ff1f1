// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which settings of an algorithm a suite runs, their text, and what the suites have in common.

#include <functional>
#include <string>
#include <vector>

#include "ranktune/testing/contract.hpp"
#include "testing/rules.hpp"

namespace ranktune::testing {

/// Whether the algorithm accepts these settings.
using Works = std::function<bool(const Settings& settings)>;

/// Like `settings_of` in contract.hpp, restricted to settings that work.
[[nodiscard]] std::vector<Settings> settings_of(const study::AlgorithmInfo& info, const Works& works);

/// `{eta = 2.0, variant = 'stop'}`; empty for the defaults.
[[nodiscard]] std::string settings_text(const Settings& settings);

/// The resolved file must describe the study completely.
void check_resolved(const study::StudySpec& spec, bool must_parse);

/// Calls `check(broken, settings)` for `settings_of(info)` and `more`, and returns the broken rules. `defaults`: the
/// rule that the default settings work.
template <class Info, class Check>
[[nodiscard]] std::vector<std::string> broken_rules(const Info& info, const std::vector<Settings>& more,
                                                    const std::string& defaults, Check check) {
    BrokenRules broken;
    broken.look(info.name, [&] { study::check_description(info); });
    std::vector<std::string> unusable = broken.take();
    if (!unusable.empty()) return unusable;
    std::vector<Settings> all = settings_of(info);
    broken.look(info.name, [&] { require(!all.empty() && all.front().empty(), defaults); });
    all.insert(all.end(), more.begin(), more.end());
    for (const Settings& settings : all) check(broken, settings);
    return broken.take();
}

} // namespace ranktune::testing
