// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/trial_loop.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ddp/gradients/device_sums.hpp"
#include "ranktune/ddp/group.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

using study::AttemptOutcome;
using study::Verb;

std::optional<double> value_of(const trainables::Metrics& metrics, const std::string& metric) {
    for (const auto& [name, value] : metrics)
        if (name == metric) return value;
    return std::nullopt;
}

/// Nothing when it was not reported, is not finite, or a constraint is violated.
std::optional<double> objective_value(const trainables::Metrics& metrics, const study::Objective& objective) {
    for (const study::Constraint& limit : objective.constraints) {
        const auto value = value_of(metrics, limit.metric);
        if (!value || limit.excess(*value) > 0.0) return std::nullopt;
    }
    const auto value = value_of(metrics, objective.metric);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

/// For a trial that was to pause after `iteration`: `why` says what its trainable lacks and how to mend it, followed by
/// what the scheduler needs.
std::string without_state_text(base::Iteration iteration, const std::string& why,
                               const study::SchedulerSpec& scheduler) {
    const auto& need = scheduler.algorithm->needs_checkpoints;
    return "it was to pause at iteration " + std::to_string(iteration) + ", but " + why +
           (need ? need->afterwards : std::string());
}

AttemptOutcome outcome_after(Verb told) {
    switch (told) {
        case Verb::go_on:
            return AttemptOutcome::finished;
        case Verb::pause:
            return AttemptOutcome::paused;
        case Verb::stop:
        case Verb::discard:
        case Verb::exploit: // never told to a group
            break;
    }
    return AttemptOutcome::stopped;
}

} // namespace

TrialLoop::TrialLoop(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port, Fail fail)
    : spec_(spec),
      assignment_(assignment),
      port_(port),
      fail_(std::move(fail)),
      checkpoints_(spec, assignment, port),
      watch_(assignment.start.seconds),
      point_{assignment.first_iteration(), assignment.start.seconds, {}},
      own_end_(spec, assignment.start) {}

// ---- the attempt as a whole

RunnerEnded TrialLoop::run(TrialBody& body) {
    body_ = &body;
    RunnerEnded ended = train();
    ended.starting_s = starting_s();
    checkpoints_.close();
    body.close(port_.abort_flag().load());
    if (port_.abort_flag().load()) return {AttemptOutcome::lost, {}};
    return ended;
}

/// A program starts, imports and loads its data before its first report, within its first iteration: what that took
/// longer than the mean of the others counts as its start.
double TrialLoop::starting_s() const {
    const base::Iteration others = point_.iteration - assignment_.first_iteration() - 1;
    if (!spec_.trainable.program || !first_s_ || others == 0) return 0.0;
    const double mean = (point_.seconds - assignment_.start.seconds - *first_s_) / static_cast<double>(others);
    return std::max(0.0, *first_s_ - mean);
}

RunnerEnded TrialLoop::train() {
    try {
        port_.progressed();
        watch_.start();
        body_->start(assignment_.checkpoint());
        const Verb told = body_->train([this](const trainables::Metrics& metrics) { return after(metrics); });
        return {outcome_after(told), {}};
    } catch (const ddp::GroupLost& error) {
        return {AttemptOutcome::lost, failure_of(error, static_cast<std::uint32_t>(assignment_.group_rank))};
    } catch (const ddp::Aborted&) {
        return {AttemptOutcome::lost, {}};
    } catch (const ddp::PeerFailed&) {
        return {AttemptOutcome::failed, {}}; // the rank that failed says why
    } catch (...) {
        return failed_here(std::current_exception());
    }
}

RunnerEnded TrialLoop::failed_here(const std::exception_ptr& error) {
    study::Failure failure = failure_of(error, static_cast<std::uint32_t>(assignment_.group_rank));
    const AttemptOutcome outcome = outcome_of(error);
    try {
        fail_();
    } catch (...) { // Aborted, or the other ranks have parted already: nobody waits for this rank
        if (port_.abort_flag().load()) return {AttemptOutcome::lost, {}};
    }
    return {outcome, std::move(failure)};
}

// ---- after an iteration

Verb TrialLoop::after(const trainables::Metrics& metrics) {
    watch_.stop();
    port_.progressed();
    point_ = {point_.iteration + 1, watch_.seconds(), objective_value(metrics, spec_.objective)};
    if (!first_s_) first_s_ = point_.seconds - assignment_.start.seconds;
    own_end_.reported(point_.value);
    const Word word = word_after(metrics);
    if (word.verb != Verb::go_on) {
        body_->end(word, point_);
        return word.verb;
    }
    watch_.start();
    if (word.save) body_->save(point_);
    return Verb::go_on;
}

Word TrialLoop::word_after(const trainables::Metrics& metrics) {
    return body_->tell(assignment_.leads() ? word_on(ask_head(metrics)) : Word{}, point_);
}

/// Leader. Reports the iteration and returns the head's verdict; go_on where none could change anything.
study::Verdict TrialLoop::ask_head(const trainables::Metrics& metrics) {
    const auto known = own_end_.verdict_at(point_.iteration);
    RunnerReported report{point_.iteration, point_.seconds, {}, body_->is_done() || known};
    report.metrics.reserve(metrics.size());
    for (const auto& [name, value] : metrics) report.metrics.push_back({name, value});
    {
        const Waiting waiting(port_);
        port_.reported(std::move(report));
        if (body_->is_done()) return {};
        if (known) return *known;
        if (!body_->patience()) return port_.verdict_after(point_.iteration);
    }
    while (true) {
        if (auto verdict = port_.verdict_within(point_.iteration, *body_->patience())) return *verdict;
        body_->idle();
    }
}

/// Leader. The word for a verdict, given what the body can save.
Word TrialLoop::word_on(const study::Verdict& verdict) {
    const Saves saves = body_->saves();
    if (verdict.verb == Verb::go_on) {
        const bool is_best = checkpoints_.is_best(point_);
        const bool is_due = checkpoints_.due(point_, verdict);
        const bool save = ((is_best || is_due) && saves == Saves::now) || (is_best && saves == Saves::soon);
        return {.verb = Verb::go_on, .save = save, .is_best = is_best && save};
    }
    Word word = without_state(verdict);
    if (verdict.verb == Verb::discard || saves == Saves::never) return word;
    word.save = saves == Saves::at_end || saves == Saves::soon || saves == Saves::now;
    word.goes_on_later = word.goes_on_later || port_.contested();
    if (word.save || word.verb == Verb::stop || word.goes_on_later) return word;
    if (!study::needs_checkpoints(spec_.scheduler)) return word; // paused trials restart from scratch
    const std::string text = without_state_text(point_.iteration, body_->why_no_state(), spec_.scheduler);
    if (saves == Saves::missing) throw base::Error(text);
    throw CheckpointError(AttemptOutcome::stateless, text);
}

} // namespace ranktune::worker
