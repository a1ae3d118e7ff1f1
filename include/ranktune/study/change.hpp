// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs between two versions of a study file, and which of it a running study can take over.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// One key of the resolved study file whose value differs.
struct KeyChange {
    std::string key;         ///< dotted
    std::string before;      ///< as TOML; empty: not there
    std::string after;       ///< the same
    bool may_change = false; ///< budgets, limits and outputs; everything that results depend on may not
    friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

/// All keys that differ, in the order of the resolved file. Defaults that are written out do not differ.
[[nodiscard]] std::vector<KeyChange> differences(const StudySpec& before, const StudySpec& after);

/// What may change: keys, and tables ("stop.") with everything in them. Beside these, options of algorithms that say so
/// of themselves, and the place of a file that holds the same as before.
[[nodiscard]] std::span<const std::string_view> changeable_keys();

/// Whether any of the changes can lead to other results or decisions (limits, failure rules, the command line), and not
/// only to other files.
[[nodiscard]] bool changes_what_is_decided(const std::vector<KeyChange>& changes);

/// Gives `spec` the values that `later` has for the keys that may change; the others stay.
void take_over(StudySpec& spec, const StudySpec& later);

} // namespace ranktune::study
