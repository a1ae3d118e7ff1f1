// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line as a value: what the help, the manual pages, the completions and the reference page are made from.

#include <string>
#include <vector>

namespace ranktune::cli {

/// An option, a flag, or an argument.
struct OptionWords {
    std::vector<std::string> names;         ///< "-o", "--output"; empty: an argument
    std::string value;                      ///< what follows: "DIR"; of an argument its name: "STUDY"; empty: a flag
    std::vector<std::string> accepted = {}; ///< the values, if they are words of a list
    std::string description;
    bool required = false;
    bool repeated = false;

    [[nodiscard]] bool is_argument() const { return names.empty(); }
    [[nodiscard]] bool is_flag() const { return value.empty(); }
};

struct VerbWords {
    std::string group; ///< of the help; empty: the help does not list it
    std::string name;
    std::string description;
    std::string footer; ///< examples, as text
    std::vector<OptionWords> options;
    /// "ranktune run [OPTIONS] STUDY [OVERRIDE...]"
    [[nodiscard]] std::string usage() const;
};

struct CommandLine {
    std::string description;
    std::string footer;
    std::vector<OptionWords> options;
    std::vector<VerbWords> verbs; ///< those that the help lists, in its order
};

/// What may stand in the place of a value.
enum class ValueKind : unsigned char { other, word, study, directory, file, key, trial };
[[nodiscard]] ValueKind kind_of(const OptionWords& option);

/// "-o,--output DIR", "STUDY", "OVERRIDE...".
[[nodiscard]] std::string heading_of(const OptionWords& option);

} // namespace ranktune::cli
