// SPDX-License-Identifier: Apache-2.0
// [searcher]: where configurations come from; and study.num_trials, which a search of the whole space fills in or
// lowers.
#include <algorithm>
#include <limits>

#include "ranktune/space/enumeration.hpp"
#include "study/parse/parse_algorithm.hpp"

namespace ranktune::study {
namespace {

/// A search of the whole space crosses all domains, so each must have finitely many values.
bool check_finite(const ParseContext& context, TableReader& table) {
    bool finite = true;
    for (const SpaceEntry& entry : context.entries) {
        if (!entry.domain || space::cardinality(*entry.domain)) continue;
        finite = false;
        table.complain("type", in_quotes(context.spec.searcher.algorithm->name) + " needs finitely many values of '" +
                                   entry.name + "', not " + space::text(*entry.domain) +
                                   "; give it a list, integers or a quantum");
    }
    return finite;
}

/// Without study.num_trials, the whole space is run once, after the points to try first. A larger number is lowered to
/// the number of these trials, so that plans and progress are right.
void count_space(ParseContext& context, TableReader& table) {
    if (!check_finite(context, table) || !context.space_is_valid) return;
    std::uint64_t size = 0;
    try {
        size = space::Enumeration(context.spec.space).size();
    } catch (const base::UsageError& error) {
        table.complain("type", error.what());
        return;
    }
    if (context.has_num_trials) {
        const std::uint64_t all = size + context.spec.searcher.start.size();
        context.spec.num_trials = static_cast<std::uint32_t>(std::min<std::uint64_t>(context.spec.num_trials, all));
        return;
    }
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
        context.mistakes.missing(
            context.root.find("study"), "study.num_trials",
            "missing, and the grid is too large to run whole: " + std::to_string(size) + " configurations");
        return;
    }
    context.spec.num_trials = static_cast<std::uint32_t>(size + context.spec.searcher.start.size());
}

} // namespace

void parse_searcher(ParseContext& context) {
    TableReader table = context.reader("searcher");
    const auto& known = context.known.algorithms.searchers;
    const auto chosen = choose_algorithm(context, table, infos_of(known), false);
    if (!chosen) return;
    SearcherSpec& searcher = context.spec.searcher;
    searcher.algorithm = known[*chosen];
    check_objectives(context, table, *searcher.algorithm, infos_of(known));
    searcher.options = OptionReader(context, table, *searcher.algorithm).options();
    parse_start(context, table);
    parse_warm_start(context, table);
    table.finish();

    for (const SpaceEntry& entry : context.entries) {
        if (!entry.domain) continue;
        const std::string why = no_number(*searcher.algorithm, entry.name, *entry.domain, entry.conditions.any());
        if (!why.empty()) table.complain("type", why);
    }
    check_start_count(context);
    if (searcher.algorithm->whole_space) {
        count_space(context, table);
    } else if (!context.has_num_trials) {
        context.mistakes.missing(context.root.find("study"), "study.num_trials",
                                 "missing; the number of configurations to try (a grid search can leave it out)");
    }
}

} // namespace ranktune::study
