// SPDX-License-Identifier: Apache-2.0
#pragma once
// Differences between two versions of a study file, and which of them a study can take over.

#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// One key of the resolved study file whose value differs.
struct KeyChange {
    std::string key;         ///< dotted
    std::string before;      ///< as TOML; empty: absent
    std::string after;       ///< the same
    bool may_change = false; ///< budgets, limits and outputs; never what results depend on
    friend bool operator==(const KeyChange&, const KeyChange&) = default;
};

/// All keys that differ, in the order of the resolved file. An explicit default equals an implicit one.
[[nodiscard]] std::vector<KeyChange> differences(const StudySpec& before, const StudySpec& after);

/// Whether a later start of the study can take over another value of this key.
[[nodiscard]] bool may_change_later(std::string_view key, const StudySpec& spec);

/// Keys, and whole tables ("stop."), that may change. Options with AlgorithmOption::may_change may change, too, and so
/// may the path of a file with the same content.
[[nodiscard]] std::vector<std::string> changeable_keys();

/// Whether any of the changes can lead to other results or decisions (limits, failure rules, the command line), and not
/// only to other files.
[[nodiscard]] bool changes_what_is_decided(const std::vector<KeyChange>& changes);

/// Copies the keys that may change from `later` to `spec`; the others stay.
void take_over(StudySpec& spec, const StudySpec& later);

} // namespace ranktune::study
