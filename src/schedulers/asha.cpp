// SPDX-License-Identifier: Apache-2.0
// ASHA in study files: its options, and the plan of a study with it. The algorithm is in asha_promote and asha_stop.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/asha_promote.hpp"
#include "schedulers/asha_stop.hpp"

namespace ranktune::schedulers {

study::SchedulerInfo describe_asha();

namespace {

using base::counted;
using Kind = study::OptionInfo::Kind;

constexpr double most_iterations = 1e15; // far from overflow: rungs are computed by multiplying

// ---- options

/// The options, typed.
struct Asha {
    explicit Asha(const space::Configuration& options)
        : promotes(options.at("variant").as_string() == "promote"),
          ray(!promotes && options.at("rule").as_string() == "ray"),
          eta(options.at("eta").as_double()),
          first_rung(options.at("first_rung").as_double()),
          brackets(static_cast<std::uint32_t>(options.at("brackets").as_int())),
          finish_top(static_cast<std::uint32_t>(options.at("finish_top").as_int())),
          stop_last_trials(options.at("stop_last_trials").as_bool()) {}

    bool promotes;
    bool ray;
    double eta;
    double first_rung;
    std::uint32_t brackets;
    std::uint32_t finish_top;
    bool stop_last_trials;
};

std::vector<study::AlgorithmOption> rung_options() {
    return {
        {.name = "variant",
         .kind = Kind::string,
         .standard = "promote",
         .description =
             "`promote` pauses each trial at a rung and resumes the best from their checkpoints, highest rung "
             "first. `stop` decides once, at the rung: go on or stop.",
         .accepted = {"promote", "stop"},
         .foreign_words = {{"promotion", "promote"}, {"stopping", "stop"}}},
        {.name = "rule",
         .kind = Kind::string,
         .standard = "floor",
         .description = "`floor`: go on iff among the best max(floor(m/eta), 1) of the m that arrived. `ray`: iff not "
                        "below Ray Tune's interpolated quantile of the earlier ones.",
         .accepted = {"floor", "ray"},
         .only_with = {{"variant", "stop"}}},
        {.name = "eta",
         .kind = Kind::number,
         .standard = 3.0,
         .description = "One in `eta` goes on.",
         .low = 1.0,
         .high = 1e6,
         .takes = "number > 1; whole but for `ray`",
         .foreign_names = {{"Ray Tune", "reduction_factor"}, {"Keras Tuner", "factor"}}},
        {.name = "first_rung",
         .kind = Kind::number,
         .standard = 1.0,
         .description =
             "Iterations at the first rung; rungs are at first_rung x eta^k below `study.max_iterations`, then "
             "that ceiling. Fractional rungs are compared as their ceiling. Must not be above the ceiling.",
         .low = 0.0,
         .high = most_iterations,
         .takes = "number >= 1, whole; `ray`: > 0",
         .foreign_names =
             {{"Ray Tune", "grace_period"}, {"Optuna", "min_resource"}, {"W&B", "min_iter"}, {"BOHB", "min_budget"}}},
        {.name = "brackets",
         .kind = Kind::integer,
         .standard = 1,
         .description = "Bracket s begins at first_rung x eta^s. With more than one, each must begin below the ceiling "
                        "(`ray`: brackets without rungs are allowed, as in Ray Tune).",
         .low = 1.0,
         .high = 64.0,
         .foreign_names = {{"Optuna", "min_early_stopping_rate"}}},
    };
}

std::vector<study::AlgorithmOption> asha_options() {
    const double most_32 = std::numeric_limits<std::int32_t>::max();
    auto options = rung_options();
    options.insert(
        options.end(),
        {
            {.name = "finish_top",
             .kind = Kind::integer,
             .standard = 1,
             .description =
                 "When nothing else is left, so many of the best paused trials are trained to the end; 0: as in "
                 "the paper.",
             .low = 0.0,
             .high = most_32,
             .only_with = {{"variant", "promote"}}},
            {.name = "restart_paused",
             .kind = Kind::boolean,
             .standard = false,
             .description =
                 "Needed with a trainable that cannot save checkpoints: promoted trials are trained again from "
                 "the beginning.",
             .only_with = {{"variant", "promote"}},
             .may_change = true},
            {.name = "stop_last_trials",
             .kind = Kind::boolean,
             .standard = true,
             .description =
                 "As in Ray Tune. true: a report at the ceiling is not compared and leaves no entry. false: it is, "
                 "at the highest rung not above it. (The ceiling ends the trial in both cases.)",
             .only_with = {{"rule", "ray"}}},
        });
    return options;
}

/// Only rule `ray` takes fractions for eta and first_rung.
void check_numbers(const study::AlgorithmCheck& check, const Asha& asha) {
    const bool fractions = asha.ray || !check.is_right("variant") || !check.is_right("rule");
    const auto check_whole = [&](const char* option, double value) {
        if (fractions || value == std::trunc(value)) return;
        check.complain(
            option, "needs a whole number, not " + space::float_text(value) + " (only rule \"ray\" takes fractions)");
    };
    if (check.is_right("eta")) check_whole("eta", asha.eta);
    if (asha.eta == 1.0) check.complain("eta", "needs a number > 1: one in eta goes on");
    if (!check.is_right("first_rung")) return;
    if (!fractions && asha.first_rung < 1.0) {
        check.complain("first_rung", "needs a number >= 1, not " + space::number_text(asha.first_rung));
    } else if (asha.first_rung == 0.0) {
        check.complain("first_rung", "needs a number > 0");
    } else {
        check_whole("first_rung", asha.first_rung);
    }
}

/// The rungs against the ceiling.
void check_rungs(const study::AlgorithmCheck& check, const Asha& asha) {
    if (!check.max_iterations || !check.is_right("first_rung")) return;
    const auto ceiling = static_cast<double>(*check.max_iterations);
    const std::string ceiling_text = "study.max_iterations (" + std::to_string(*check.max_iterations) + ")";
    if (asha.first_rung > ceiling) {
        check.complain("first_rung", space::number_text(asha.first_rung) + " is above the ceiling " + ceiling_text);
        return;
    }
    if (!check.is_right("variant") || !check.is_right("rule") || !check.is_right("eta")) return;
    if (asha.ray) {
        // Ray Tune allows brackets without a rung: their trials run to the end. Only the number of rungs has a limit.
        double level = asha.first_rung;
        for (std::size_t k = 0; k < AshaStop::max_rungs; ++k) level *= asha.eta;
        if (level > ceiling) return;
        check.complain(asha.eta < 2.0 ? "eta" : "first_rung",
                       "gives more than " + std::to_string(AshaStop::max_rungs) + " rungs up to " + ceiling_text);
        return;
    }
    if (!check.is_right("brackets") || !check.reads_file) return;
    double first = asha.first_rung;
    std::uint32_t useful = 1;
    while (first * asha.eta < ceiling && useful < asha.brackets) {
        first *= asha.eta;
        ++useful;
    }
    if (useful >= asha.brackets) return;
    check.complain("brackets", "bracket " + std::to_string(useful + 1) + " would have its first rung at " +
                                   space::number_text(first * asha.eta) + ", not below " + ceiling_text + "; at most " +
                                   std::to_string(useful));
}

void check_asha(const study::AlgorithmCheck& check) {
    const Asha asha(check.options);
    check_numbers(check, asha);
    check_rungs(check, asha);
}

// ---- the plan

std::vector<base::Iteration> levels_of(const Asha& asha, base::Iteration ceiling, std::uint32_t bracket) {
    if (!asha.ray) {
        return integer_levels(static_cast<base::Iteration>(asha.first_rung), static_cast<std::uint64_t>(asha.eta),
                              ceiling, bracket);
    }
    auto levels = ray_levels(asha.first_rung, asha.eta, ceiling, bracket, 1000);
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    if (levels.empty() || levels.back() < ceiling) levels.push_back(ceiling);
    return levels;
}

struct Bracket {
    std::vector<base::Iteration> levels;
    std::vector<std::uint64_t> trials; ///< that train up to each level
};

/// Trials that train up to each level of one bracket with `entrants` trials, without finish_top.
std::vector<std::uint64_t> survivors(const Asha& asha, std::size_t levels, std::uint64_t entrants) {
    std::vector<std::uint64_t> trials;
    double left = static_cast<double>(entrants);
    for (std::size_t i = 0; i < levels; ++i) {
        trials.push_back(static_cast<std::uint64_t>(left));
        const double next = std::floor(left / asha.eta);
        // The stopping variant lets the best so far pass, however few there are.
        left = !asha.promotes && left > 0.0 ? std::max(next, 1.0) : next;
    }
    return trials;
}

/// The bracket and number of the highest rung at which trials are left behind; null: there is none.
std::pair<Bracket*, std::size_t> highest_with_paused(std::vector<Bracket>& brackets) {
    Bracket* found = nullptr;
    std::size_t rung = 0;
    for (Bracket& bracket : brackets) {
        for (std::size_t i = bracket.levels.size() - 1; i-- > 0;) {
            if (bracket.trials[i] == bracket.trials[i + 1]) continue;
            if (found == nullptr || bracket.levels[i] > found->levels[rung]) {
                found = &bracket;
                rung = i;
            }
            break;
        }
    }
    return {found, rung};
}

/// Applies finish_top, which counts once for all brackets: trials paused at the highest rung go to the ceiling.
void finish(const Asha& asha, std::vector<Bracket>& brackets) {
    if (!asha.promotes) return;
    std::uint64_t at_the_top = 0;
    for (const Bracket& bracket : brackets) at_the_top += bracket.trials.back();
    while (at_the_top < asha.finish_top) {
        const auto [bracket, rung] = highest_with_paused(brackets);
        if (bracket == nullptr) return;
        const std::uint64_t more =
            std::min(asha.finish_top - at_the_top, bracket->trials[rung] - bracket->trials[rung + 1]);
        for (std::size_t i = rung + 1; i < bracket->trials.size(); ++i) bracket->trials[i] += more;
        at_the_top += more;
    }
}

/// The most checkpoints that paused trials of one bracket keep. A trial keeps two, but only one at its first rung
/// unless it also saves between rungs.
std::uint64_t paused_at_most(const study::StudySpec& spec, const Asha& asha, const std::vector<std::uint64_t>& trials) {
    if (!study::needs_checkpoints(spec.scheduler)) return 0;
    const auto eta = static_cast<std::uint64_t>(asha.eta);
    const std::uint64_t within_reach = std::max<std::uint64_t>({spec.num_trials / eta, asha.finish_top, 1});
    const bool on_the_way = spec.checkpoint.interval != study::CheckpointSpec::Interval::none;
    std::uint64_t checkpoints = 0;
    for (std::size_t rung = 0; rung + 1 < trials.size(); ++rung)
        checkpoints += std::min(trials[rung], within_reach) * (rung > 0 || on_the_way ? 2 : 1);
    return checkpoints;
}

void add(study::SchedulerPlan& plan, const Bracket& bracket) {
    const auto& [levels, trials] = bracket;
    base::Iteration before = 0;
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const base::Iteration level = levels[i];
        plan.iterations += trials[i] * (level - before);
        before = level;
        const auto place =
            std::find_if(plan.rungs.begin(), plan.rungs.end(), [&](const auto& r) { return r.iteration >= level; });
        if (place != plan.rungs.end() && place->iteration == level) {
            place->trials += trials[i];
        } else {
            plan.rungs.insert(place, {level, trials[i]});
        }
    }
}

/// At how many rungs trials are left behind, in the brackets that have trials. The ceiling does not count.
std::string judged_at(const std::vector<Bracket>& brackets) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    std::size_t most = 0;
    for (const Bracket& bracket : brackets) {
        if (bracket.trials.front() == 0) continue;
        fewest = std::min(fewest, bracket.levels.size() - 1);
        most = std::max(most, bracket.levels.size() - 1);
    }
    if (fewest < most) return "at each of " + std::to_string(fewest) + " to " + counted(most, "rung") + ", by bracket";
    return most == 1 ? "at 1 rung" : "at each of " + counted(most, "rung");
}

study::SchedulerPlan plan_asha(const study::StudySpec& spec) {
    const Asha asha(spec.scheduler.options);
    study::SchedulerPlan plan{.words = asha.promotes ? "ASHA promote" : "ASHA stop",
                              .certainty = study::SchedulerPlan::Certainty::estimate};
    std::vector<std::size_t> rungs;
    for (std::uint32_t b = 0; b < asha.brackets; ++b) rungs.push_back(levels_of(asha, spec.max_iterations, b).size());
    // The draw of brackets depends on (seed, trial) only: count it instead of guessing.
    std::vector<std::uint64_t> entrants(asha.brackets, 0);
    const BracketDraw draw(spec.seed, rungs);
    for (std::uint32_t i = 0; i < spec.num_trials; ++i) ++entrants[draw(base::TrialId{i})];
    std::vector<Bracket> brackets;
    for (std::uint32_t b = 0; b < asha.brackets; ++b) {
        auto levels = levels_of(asha, spec.max_iterations, b);
        auto trials = survivors(asha, levels.size(), entrants[b]);
        brackets.push_back({std::move(levels), std::move(trials)});
    }
    finish(asha, brackets);
    std::uint64_t to_the_top = 0;
    for (const Bracket& bracket : brackets) {
        to_the_top += bracket.trials.back();
        plan.paused_checkpoints += paused_at_most(spec, asha, bracket.trials);
        add(plan, bracket);
    }
    if (to_the_top == 0)
        plan.warning = "no trial can reach " + counted(spec.max_iterations, "iteration") + ": of " +
                       counted(spec.num_trials, "trial") + ", one in " + space::number_text(asha.eta) + " goes on " +
                       judged_at(brackets) +
                       "; raise study.num_trials or scheduler.first_rung, or set scheduler.finish_top = 1";
    return plan;
}

std::unique_ptr<Scheduler> make_asha(const study::StudySpec& spec) {
    const Asha asha(spec.scheduler.options);
    if (asha.promotes)
        return std::make_unique<AshaPromote>(
            AshaPromote::Options{.first_rung = static_cast<base::Iteration>(asha.first_rung),
                                 .eta = static_cast<std::uint32_t>(asha.eta),
                                 .ceiling = spec.max_iterations,
                                 .brackets = asha.brackets,
                                 .finish_top = asha.finish_top,
                                 .seed = spec.seed,
                                 .num_trials = spec.num_trials,
                                 .pause_at_verdict = spec.deterministic},
            spec.objective);
    return std::make_unique<AshaStop>(AshaStop::Options{.rule = asha.ray ? AshaStop::Rule::ray : AshaStop::Rule::floor,
                                                        .first_rung = asha.first_rung,
                                                        .eta = asha.eta,
                                                        .ceiling = spec.max_iterations,
                                                        .brackets = asha.brackets,
                                                        .stop_last_trials = asha.stop_last_trials,
                                                        .seed = spec.seed},
                                      spec.objective);
}

} // namespace

study::SchedulerInfo describe_asha() {
    study::SchedulerInfo info;
    info.name = "asha";
    info.description = "asynchronous successive halving (Li et al., MLSys 2020).";
    info.options = asha_options();
    info.foreign_names = {"asynchyperband", "async_hyperband", "successive_halving"};
    info.check = check_asha;
    info.make = make_asha;
    info.needs_checkpoints = {
        .when = {{"variant", "promote"}, {"restart_paused", false}},
        .instead = "use variant = \"stop\", or restart_paused = true to train promoted trials from the beginning",
        .afterwards =
            " and restart_paused = true in [scheduler]: trials that are promoted then train again from the "
            "beginning. With either the same command goes on. (variant = \"stop\" in [scheduler] never "
            "pauses; it begins again, with --fresh)"};
    info.has_rungs = true;
    info.plan = plan_asha;
    return info;
}

} // namespace ranktune::schedulers
