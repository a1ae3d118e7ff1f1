// SPDX-License-Identifier: Apache-2.0
// [searcher]: where configurations come from; and study.num_trials, which a search of the whole space fills in or
// lowers.
#include <algorithm>
#include <limits>
#include <set>

#include "ranktune/space/enumeration.hpp"
#include "study/parse/key_rows.hpp"
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

/// The configurations of a search of the whole space: a point to try first is left out later, one that is given twice
/// is tried twice. What a point leaves open is as in the first configuration to come.
std::uint64_t configurations_of(const StudySpec& spec, const space::Enumeration& points) {
    std::set<std::uint64_t> begun;
    std::uint64_t next = 0;
    for (const space::Configuration& start : spec.searcher.start) {
        while (begun.contains(next)) ++next;
        if (next >= points.size()) break;
        const space::Configuration others = points.at(next);
        bool known = true; // else a value is drawn, and the point may be one that was there
        const auto value_of = [&](std::size_t i) {
            const std::string& name = spec.space.parameters()[i].name;
            const space::Value* value = start.find(name);
            if (value == nullptr) value = others.find(name);
            known = known && value != nullptr;
            return value == nullptr ? space::decode(spec.space.parameters()[i].domain, 0.0) : *value;
        };
        const auto number = points.find(spec.space.assemble(value_of));
        if (known && number) begun.insert(*number);
    }
    return points.size() + spec.searcher.start.size() - begun.size();
}

/// Without study.num_trials, the whole space is run once. A larger number is lowered to that, so that plans and
/// progress are right.
void count_space(ParseContext& context, TableReader& table) {
    if (!check_finite(context, table) || !context.space_is_valid) return;
    const std::uint64_t repeats = context.spec.searcher.repeats;
    std::uint64_t size = 0;
    try {
        size = configurations_of(context.spec, space::Enumeration(context.spec.space));
    } catch (const base::UsageError& error) {
        table.complain("type", error.what());
        return;
    }
    const bool too_large = size > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()) / repeats;
    if (context.has_num_trials) {
        if (!too_large)
            context.spec.num_trials = std::min(context.spec.num_trials, static_cast<std::uint32_t>(size * repeats));
        return;
    }
    if (too_large) {
        context.mistakes.missing(
            context.root.find("study"), "study.num_trials",
            "missing, and the grid is too large to run whole: " + std::to_string(size) + " configurations");
        return;
    }
    context.spec.num_trials = static_cast<std::uint32_t>(size * repeats);
}

} // namespace

void check_repeats(ParseContext& context) {
    const StudySpec& spec = context.spec;
    const Node* searcher = context.root.find("searcher");
    const std::uint32_t repeats = spec.searcher.repeats;
    if (repeats == 1) return;
    const auto complain = [&](const std::string& message) {
        context.mistakes.value(*searcher->find("repeats"), "searcher.repeats", message);
    };
    if (context.has_scheduler && !spec.scheduler.algorithm->trains_all)
        complain("does not go with scheduler.type = " + in_quotes(spec.scheduler.algorithm->name) +
                 ": trials that pause, stop or change have no mean; leave one of the two out, or use \"fifo\"");
    if (spec.objective.several())
        complain("does not go with several metrics in study.metric: the mean is of one; leave it out");
    if (spec.num_trials % repeats == 0) return;
    const std::uint32_t fewer = spec.num_trials - spec.num_trials % repeats;
    complain("study.num_trials = " + std::to_string(spec.num_trials) + " is no multiple of " + std::to_string(repeats) +
             " trials for each configuration; use " + (fewer > 0 ? std::to_string(fewer) + " or " : "") +
             std::to_string(fewer + repeats));
}

void parse_searcher(ParseContext& context) {
    TableReader table = context.reader("searcher");
    const auto& known = context.known.algorithms.searchers;
    const auto chosen = choose_algorithm(context, table, infos_of(known), false);
    if (!chosen) return;
    SearcherSpec& searcher = context.spec.searcher;
    searcher.algorithm = known[*chosen];
    searcher.by_default = !table.has("type");
    check_objectives(context, table, *searcher.algorithm, infos_of(known));
    searcher.options = OptionReader(context, table, *searcher.algorithm).options();
    read_members(table, context.spec, context.trust_trainable);
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
