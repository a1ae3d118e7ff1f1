// SPDX-License-Identifier: Apache-2.0
// [searcher]: where configurations come from; and study.num_trials, which a grid fills in.
#include <algorithm>
#include <limits>

#include "study/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr Word<SearcherKind> kinds[] = {
    {"random", SearcherKind::random}, {"grid", SearcherKind::grid}, {"sobol", SearcherKind::sobol}};

bool has_grid(const space::SearchSpace& space) {
    return std::ranges::any_of(space.parameters(), [](const space::Parameter& parameter) {
        return std::holds_alternative<space::Grid>(parameter.domain);
    });
}

/// A grid search without study.num_trials runs the whole grid once.
void count_grid(ParseContext& context, TableReader& table) {
    if (!context.space_is_valid) return;
    if (!has_grid(context.spec.space)) {
        table.complain("type", "\"grid\" needs at least one grid in [space], as in batch_size = \"grid([32, 64])\"");
        return;
    }
    if (context.has_num_trials) return;
    const std::uint64_t size = context.spec.space.grid_size();
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        context.mistakes.missing(
            context.root.find("study"), "study.num_trials",
            "missing, and the grid is too large to run whole: " + std::to_string(size) + " configurations");
        return;
    }
    context.spec.num_trials = static_cast<std::uint32_t>(size);
}

} // namespace

void parse_searcher(ParseContext& context) {
    TableReader table = context.reader("searcher");
    SearcherSpec& searcher = context.spec.searcher;
    const std::size_t before = context.mistakes.size();
    searcher.kind = table.word("type", kinds).value_or(SearcherKind::random);
    const bool type_is_valid = context.mistakes.size() == before;
    if (searcher.kind == SearcherKind::sobol || !type_is_valid) {
        searcher.scramble = table.boolean("scramble").value_or(true);
    } else {
        table.refuse("scramble", "is a key of type \"sobol\" only");
    }
    table.finish();

    if (searcher.kind == SearcherKind::grid) {
        count_grid(context, table);
    } else if (!context.has_num_trials && type_is_valid) {
        context.mistakes.missing(context.root.find("study"), "study.num_trials",
                                 "missing; the number of configurations to try (a grid search can leave it out)");
    }
}

} // namespace ranktune::study
