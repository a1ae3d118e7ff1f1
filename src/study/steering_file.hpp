// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests to a running study as text: what users type, and the files in which a request reaches the head.

#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/search_space.hpp"
#include "ranktune/study/steering.hpp"

namespace ranktune::study {

/// A request, and who asks ("ada@login1").
struct SteeringFile {
    std::string who;
    Steering ask;
};
/// As TOML, for the file.
[[nodiscard]] std::string steering_text(const SteeringFile& file);
/// Reads such a text. Throws base::UsageError that says what is wrong.
[[nodiscard]] SteeringFile parse_steering(const std::string& text, const space::SearchSpace& space);

/// A configuration, perhaps a partial one, from words such as `lr=0.1` and `hidden=[128,64]`; a bare word is a string.
/// Throws base::UsageError with what is wrong and what is accepted.
[[nodiscard]] space::Configuration parse_point(const std::vector<std::string>& words, const space::SearchSpace& space);
/// The same from CSV whose first line names hyper-parameters; an empty cell gives nothing. `file` is for messages,
/// which name the line.
[[nodiscard]] std::vector<space::Configuration> parse_points_csv(const std::string& text, const std::string& file,
                                                                 const space::SearchSpace& space);

/// Whether `set` may change this key while a study runs. Other keys take effect with the next start, if at all.
[[nodiscard]] bool may_be_set(std::string_view key);
/// The keys and tables for which this holds, for messages.
[[nodiscard]] std::string settable_keys();
/// The key of "study.num_trials=120".
[[nodiscard]] std::string key_of(const std::string& setting);

} // namespace ranktune::study
