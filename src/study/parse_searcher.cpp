// SPDX-License-Identifier: Apache-2.0
// [searcher]: where configurations come from; and study.num_trials, which a grid fills in or takes back.
#include <algorithm>
#include <limits>

#include "ranktune/space/enumeration.hpp"
#include "study/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr Word<SearcherKind> searcher_kinds[] = {
    {"random", SearcherKind::random}, {"grid", SearcherKind::grid}, {"sobol", SearcherKind::sobol}};

/// A grid crosses all domains: each must have finitely many values.
bool check_finite(const ParseContext& context, TableReader& table) {
    bool finite = true;
    for (const SpaceEntry& entry : context.entries) {
        if (!entry.domain || space::cardinality(*entry.domain)) continue;
        finite = false;
        table.complain("type", "\"grid\" needs finitely many values of '" + entry.name + "', not " +
                                   space::text(*entry.domain) + "; give it a list, integers or a quantum");
    }
    return finite;
}

/// A grid search without study.num_trials runs the whole grid once; none can run more trials than there are
/// configurations, so that plans and progress count those.
void count_grid(ParseContext& context, TableReader& table) {
    if (!check_finite(context, table) || !context.space_is_valid) return;
    std::uint64_t size = 0;
    try {
        size = space::Enumeration(context.spec.space).size();
    } catch (const base::UsageError& error) {
        table.complain("type", error.what());
        return;
    }
    if (context.has_num_trials) {
        context.spec.num_trials = static_cast<std::uint32_t>(std::min<std::uint64_t>(context.spec.num_trials, size));
        return;
    }
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        context.mistakes.missing(
            context.root.find("study"), "study.num_trials",
            "missing, and the grid is too large to run whole: " + std::to_string(size) + " configurations");
        return;
    }
    context.spec.num_trials = static_cast<std::uint32_t>(size);
}

/// A Sobol sequence has so many directions.
void check_directions(const ParseContext& context, TableReader& table) {
    // Those whose domains are wrong are as likely to need one, but that is not known.
    const auto needed = std::ranges::count_if(
        context.entries, [](const SpaceEntry& entry) { return entry.domain && space::has_coordinate(*entry.domain); });
    if (static_cast<std::size_t>(needed) <= max_sobol_parameters) return;
    table.complain("type", "\"sobol\" has directions for " + std::to_string(max_sobol_parameters) +
                               " parameters, the space has " + std::to_string(needed) + "; use \"random\"");
}

} // namespace

void parse_searcher(ParseContext& context) {
    TableReader table = context.reader("searcher");
    SearcherSpec& searcher = context.spec.searcher;
    const std::size_t before = context.mistakes.size();
    searcher.kind = table.word("type", searcher_kinds).value_or(SearcherKind::random);
    const bool type_is_valid = context.mistakes.size() == before;
    if (searcher.kind == SearcherKind::sobol || !type_is_valid) {
        searcher.scramble = table.boolean("scramble").value_or(true);
    } else {
        table.refuse("scramble", "is a key of type \"sobol\" only");
    }
    table.finish();

    if (searcher.kind == SearcherKind::sobol) check_directions(context, table);
    if (searcher.kind == SearcherKind::grid) {
        count_grid(context, table);
    } else if (!context.has_num_trials && type_is_valid) {
        context.mistakes.missing(context.root.find("study"), "study.num_trials",
                                 "missing; the number of configurations to try (a grid search can leave it out)");
    }
}

} // namespace ranktune::study
