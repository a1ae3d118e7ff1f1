// SPDX-License-Identifier: Apache-2.0
#pragma once
// What [searcher] and [scheduler] have in common: the type of an algorithm, and its options as it describes them.

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "study/algorithm_options.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {

/// Reads the options of one algorithm from its table.
class OptionReader {
  public:
    /// Reads every option, refuses those that do not apply, and calls the algorithm's own check. All arguments must
    /// outlive the reader.
    OptionReader(ParseContext& context, TableReader& table, const AlgorithmInfo& algorithm);

    /// A wrong or missing option has its default.
    [[nodiscard]] const space::Configuration& options() const { return options_; }
    /// Whether the option was left out, or has a valid value that the check accepts.
    [[nodiscard]] bool is_right(std::string_view option) const;

  private:
    enum class Applies : std::uint8_t { yes, no, unknown };
    [[nodiscard]] Applies applies(const AlgorithmOption& option) const;
    void read(const AlgorithmOption& option);
    void check(ParseContext& context);
    void check_deterministic(const ParseContext& context);

    TableReader& table_;
    const AlgorithmInfo& algorithm_;
    space::Configuration options_;
    std::vector<std::string_view> wrong_;
};

/// The names of the algorithms, as in `"fifo", "asha" or "median"`.
[[nodiscard]] std::string type_names(const std::vector<const AlgorithmInfo*>& algorithms);

/// Refuses an algorithm that knows one objective for a study with several.
void check_objectives(const ParseContext& context, TableReader& table, const AlgorithmInfo& chosen,
                      const std::vector<const AlgorithmInfo*>& algorithms);

/// Reads `type`: returns the position of the algorithm; the first one if there is no type. Refuses keys that only other
/// algorithms have. nullopt: the type is wrong; then the table is finished, and only keys that no algorithm has are
/// reported. Throws base::UsageError when a study that has begun names an algorithm that is not among them.
[[nodiscard]] std::optional<std::size_t> choose_algorithm(const ParseContext& context, TableReader& table,
                                                          const std::vector<const AlgorithmInfo*>& algorithms,
                                                          bool type_is_required);

} // namespace ranktune::study
