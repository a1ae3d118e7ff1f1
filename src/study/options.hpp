// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of a study file, and checks against the options of a trainable.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ranktune/space/domain.hpp"
#include "ranktune/study/parse.hpp"
#include "study/parse/checker.hpp"

namespace ranktune::study {

/// A hyper-parameter's or option's name: letters, digits, `_` and `-`, a letter or `_` first. (Nested ones are joined
/// by dots.) Reports a mistake at `key` if it is invalid.
[[nodiscard]] bool check_name(const Node& node, const std::string& key, std::string_view name, Mistakes& mistakes);

/// A boolean, number, string or list as a value; nullopt and a mistake for tables, dates, nan and lists that are too
/// deep.
[[nodiscard]] std::optional<space::Value> to_value(const Node& node, const std::string& key, Mistakes& mistakes);

[[nodiscard]] const OptionInfo* find_option(const TrainableInfo& info, std::string_view name);

/// "a number from 0 to 1": what the option takes.
[[nodiscard]] std::string option_text(const OptionInfo& option);
/// Why the option cannot have this value, in words, or an empty string.
[[nodiscard]] std::string option_problem(const OptionInfo& option, const space::Value& value);
/// Why the domain holds values that the option cannot have, or an empty string.
[[nodiscard]] std::string option_problem(const OptionInfo& option, const space::Domain& domain);

/// From `directory` on; an empty path stays empty.
[[nodiscard]] std::string absolute_path(const std::string& path, const std::filesystem::path& directory);
/// NAME of "{data.NAME}", which stands for the path of a file of [data] on the node of a trial; nullopt: another value.
[[nodiscard]] std::optional<std::string> data_reference(const space::Value& value);
/// A trial's configuration, to which this adds the options of the trainable, as the trial reads it: with the paths of
/// files of [data].
void add_options(space::Configuration& configuration, const StudySpec& spec);
/// A path option's value made absolute, relative to `directory`; other values as they are.
[[nodiscard]] space::Value resolved(const OptionInfo& option, const space::Value& value,
                                    const std::filesystem::path& directory);
[[nodiscard]] space::Domain resolved(const OptionInfo& option, const space::Domain& domain,
                                     const std::filesystem::path& directory);

/// A variable's name: letters, digits and `_`, no digit first.
[[nodiscard]] bool is_variable_name(std::string_view name);
/// "train.py:train" as "/directory/train.py:train". Throws base::UsageError for what is no file and name.
[[nodiscard]] std::string python_target(const std::string& given, const std::filesystem::path& directory);
/// The Python of a function: a path made absolute, or a program on PATH as it is.
[[nodiscard]] std::string interpreter_path(const std::string& given, const std::filesystem::path& directory);

} // namespace ranktune::study
