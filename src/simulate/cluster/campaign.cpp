// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/campaign.hpp"

#include <algorithm>
#include <exception>

#include "simulate/cluster/draw.hpp"
#include "simulate/cluster/memory_journal.hpp"
#include "simulate/cluster/weights.hpp"

namespace ranktune::simulate {

using base::Rank;
using base::RngStream;
using study::StudyOutcome;

Case draw_case(std::uint64_t seed) {
    RngStream rng(seed, base::Purpose::fault);
    const std::uint32_t workers =
        rng.uniform() < 0.1 ? 64 : 1 + static_cast<std::uint32_t>(rng.below(rng.uniform() < 0.5 ? 4 : 16));
    Case drawn;
    drawn.spec = draw_spec(rng, workers);
    for (int i = 0; i < 4; ++i) {
        // The number of ranks may differ between lives, as long as every trial fits.
        const auto least = drawn.spec.max_ranks_per_trial();
        drawn.lives.push_back(draw_life(rng, i == 0 ? workers : least + static_cast<std::uint32_t>(rng.below(6))));
        drawn.lives.back().incarnation = base::Incarnation(static_cast<std::uint32_t>(i) + 1);
        if (i < 3) draw_deaths(rng, drawn.lives.back());
    }
    drawn.lives.back().curve.stuck_rate = 0.0;
    constexpr std::uint32_t of_breadth = 2; // draws of their own: the other cases stay what they are
    RngStream breadth(seed, base::Purpose::fault, of_breadth);
    if (breadth.uniform() < 0.4) draw_breadth(breadth, drawn.spec);
    constexpr std::uint32_t of_gpus = 1;
    RngStream gpus(seed, base::Purpose::fault, of_gpus);
    const bool alike = drawn.spec.scheduler.algorithm->name == "pbt"; // members have GPUs, or none has
    if (!alike && gpus.uniform() < 0.3) draw_gpus(gpus, drawn.spec, drawn.lives);
    constexpr std::uint32_t of_limits = 3;
    RngStream limits(seed, base::Purpose::fault, of_limits);
    if (alike) draw_limit(limits, drawn.spec);
    constexpr std::uint32_t of_side_tasks = 5;
    RngStream side(seed, base::Purpose::fault, of_side_tasks);
    if (side.uniform() < 0.3) draw_side_tasks(side, drawn.spec, drawn.lives);
    drawn.reopens = alike;
    drawn.description = scheduler_text(drawn.spec.scheduler) + ", " + std::to_string(drawn.spec.num_trials) +
                        " trials, R " + std::to_string(drawn.spec.max_iterations) + ", " +
                        std::to_string(drawn.lives.front().workers) +
                        " workers, <= " + std::to_string(drawn.spec.max_ranks_per_trial()) + " ranks per trial";
    return drawn;
}

namespace {

// --- running it ---

void check_end(const tuner::State& state, const std::set<std::string>& files, std::vector<std::string>& problems) {
    if (!state.ended) problems.push_back("the study never ended");
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        const auto& trial = state.trials[i];
        if (!study::is_final(trial.phase))
            problems.push_back("trial " + std::to_string(i) + " is left " + std::string(study::name(trial.phase)));
        for (const auto& checkpoint : trial.checkpoints)
            if (!files.contains(checkpoint.path)) problems.push_back("the kept " + checkpoint.path + " is missing");
    }
}

/// A task whose end is recorded never runs again, trials wait for the first, and all have run where the study is over.
void check_side_tasks(const MemoryJournal& journal, const tuner::State& state, std::vector<std::string>& problems) {
    std::set<base::TrialId> done, failed;
    const bool prepares = state.side.find({study::SideTask::Kind::before, {}}) != nullptr;
    const base::TrialId after = study::unit_of({study::SideTask::Kind::after, {}});
    const auto is_done = [&](const study::SideTask& task) { return done.contains(unit_of(task)); };
    journal.for_each([&](const study::Record& record) {
        if (const auto* started = std::get_if<study::SideStarted>(&record);
            started != nullptr && is_done(started->task))
            problems.push_back("the task " + describe(started->task) + " runs again");
        if (const auto* ended = std::get_if<study::SideEnded>(&record);
            ended != nullptr && ended->outcome == study::AttemptOutcome::finished)
            done.insert(unit_of(ended->task));
        else if (ended != nullptr && !ended->retry)
            failed.insert(unit_of(ended->task));
        else if (ended != nullptr && failed.erase(unit_of(ended->task)) > 0) // reopened
            done.erase(after);
        if (std::holds_alternative<study::TrialCreated>(record) && prepares && !is_done({}))
            problems.push_back("a trial is created before the study is prepared");
        // More trials have to end: what follows the last one is due again.
        if (std::holds_alternative<study::TrialReopened>(record)) done.erase(after);
    });
    if (!state.side.running().empty()) problems.push_back("a side task is left running");
    if (state.outcome == StudyOutcome::ok && !state.side.waiting().empty())
        problems.push_back("the task " + describe(*study::side_task_of(*state.side.waiting().begin())) +
                           " is left waiting");
}

/// After a life that left the study resumable: no trial may still count as running.
void check_between(const tuner::State& state, bool head_lived, std::vector<std::string>& problems) {
    if (!head_lived || !state.ended) return; // the head was killed: the next life takes care of it
    for (std::size_t i = 0; i < state.trials.size(); ++i)
        if (state.trials[i].attempt.live)
            problems.push_back("trial " + std::to_string(i) + " is left with ranks, " +
                               std::string(study::name(state.trials[i].phase)));
}

void add(const ClusterResult& life, const ClusterOptions& options, CaseResult& result) {
    ++result.lives;
    result.steps += life.steps;
    result.messages += life.messages;
    result.attempts += life.attempts;
    result.virtual_seconds += base::to_seconds(life.elapsed);
    if (!life.head) ++result.heads_killed;
    result.ranks_lost += static_cast<std::uint64_t>(std::count(life.workers.begin(), life.workers.end(), std::nullopt));
    for (const std::string& problem : life.problems)
        result.problems.push_back("life " + std::to_string(options.incarnation.value()) + ": " + problem);
}

/// Between two lives a user may have trials tried again that have failed, from their checkpoints or from scratch, and
/// tasks after trials.
void reopen(tuner::Tuner& tuner, const Case& drawn, MemoryJournal& journal, std::set<std::string>& files) {
    constexpr std::uint32_t of_reopening = 4;
    RngStream random(drawn.spec.seed, base::Purpose::fault, of_reopening, tuner.state().incarnation.value());
    tuner::Output out;
    for (std::uint32_t i = 0; drawn.reopens && i < tuner.state().trials.size(); ++i)
        if (tuner.state().trials[i].phase == study::TrialPhase::failed && random.uniform() < 0.3)
            tuner.reopen(base::TrialId{i}, random.uniform() < 0.5, tuner.state().now, out);
    for (const base::TrialId task : tuner::tasks_to_repeat(tuner.state(), tuner.spec()))
        if (random.uniform() < 0.5) tuner.reopen(task, false, tuner.state().now, out);
    journal.append(out.records);
    for (const study::Command& command : out.commands)
        if (const auto* gone = std::get_if<study::DeleteCheckpoint>(&command)) files.erase(gone->path);
}

void run_lives(const Case& drawn, CaseResult& result) {
    MemoryJournal journal;
    std::set<std::string> files;
    auto tuner = std::make_unique<tuner::Tuner>(drawn.spec);
    tuner::Output created;
    tuner->create("00000000-0000-4000-8000-000000000000", "", "sim", created);
    journal.append(created.records);
    bool killed = false;
    for (ClusterOptions options : drawn.lives) {
        if (killed) options.death.emplace(); // no crash notes: no trial is known to be guilty
        const ClusterResult life = run_cluster(options, *tuner, journal, files);
        add(life, options, result);
        killed = !life.head;
        if (tuner->state().trials.live_attempts() > 0 && life.head && life.head->outcome == StudyOutcome::ok)
            result.problems.push_back("the head ended well with trials running");
        auto replayed = journal.replay(drawn.spec);
        if (replayed->digest() != tuner->digest())
            result.problems.push_back("life " + std::to_string(options.incarnation.value()) +
                                      ": replay gives another state");
        replayed->check_invariants();
        check_between(tuner->state(), life.head.has_value(), result.problems);
        tuner = std::move(replayed);
        const bool goes_on = !tuner->state().ended || tuner->state().outcome == StudyOutcome::resumable;
        if (goes_on) reopen(*tuner, drawn, journal, files);
        // The journal decides: a head may be killed after it has written the end.
        const tuner::State& state = tuner->state();
        const bool ended = state.ended && state.incarnation == options.incarnation;
        result.outcome = ended ? state.outcome : life.head ? life.head->outcome : StudyOutcome::resumable;
        if ((ended && state.outcome != StudyOutcome::resumable) || !result.problems.empty()) break;
    }
    const tuner::State& state = tuner->state();
    if (result.outcome == StudyOutcome::resumable) result.problems.push_back("an undisturbed life ended as resumable");
    check_end(state, files, result.problems);
    check_side_tasks(journal, state, result.problems);
    if (tuner->scheduler().exploits())
        for (std::string& wrong : wrong_schedules(journal, drawn.spec)) result.problems.push_back(std::move(wrong));
    result.trials = state.trials.size();
    result.failed_trials = state.in(study::TrialPhase::failed);
    result.records = journal.count();
    result.digest = tuner->digest();
}

} // namespace

CaseResult run_case(std::uint64_t seed) {
    CaseResult result;
    try {
        const Case drawn = draw_case(seed);
        result.description = drawn.description;
        run_lives(drawn, result);
    } catch (const std::exception& error) {
        result.problems.push_back(error.what());
    }
    return result;
}

} // namespace ranktune::simulate
