// SPDX-License-Identifier: Apache-2.0
#include "report/view/rank_time.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace ranktune::report {
namespace {

struct SpentText {
    std::string_view words;
    std::string_view advice;
};

constexpr std::array<SpentText, spent_count> spent_texts{{
    {"training", ""},
    {"waiting for data",
     "Copies on the nodes (data.stage = true), more threads (resources.cpus_per_rank, or num_workers of a DataLoader), "
     "or a format that is mapped instead of decoded (.npy, .safetensors)."},
    {"waiting for data: disk",
     "Keep copies on the nodes: data.stage = true. Where there are some already, read more at once: "
     "resources.cpus_per_rank, or num_workers of a DataLoader."},
    {"waiting for data: decoding",
     "Decode once: `h5repack -f NONE` for HDF5, a format that is mapped (.npy, .safetensors), or data.stage = true "
     "with decode = true for the file. Or decode on more cores: resources.cpus_per_rank, or num_workers of a "
     "DataLoader."},
    {"waiting for data: map",
     "Give the function that changes samples more cores: resources.cpus_per_rank, or num_workers of a DataLoader. What "
     "it does to a sample each time alike can be done once, before the study."},
    {"trained again after a loss", "Save more often: checkpoint.interval, or \"auto\", which reckons with losses."},
    {"trained again after a pause", "Trials are paused where they have not saved: let them save at their rungs."},
    {"starting attempts",
     "Starting is slow: keep programs alive between attempts, or load data faster; `ranktune logs "
     "STUDY TRIAL` shows when."},
    {"checkpoints and verdicts", "Save less often (checkpoint.interval), or to a faster file system."},
    {"waiting for other trials",
     "Trials of unequal speed wait for each other: a scheduler without barriers (asha, pbt), "
     "or without study.deterministic, does not."},
    {"failed attempts",
     "Look at what failed: `ranktune status STUDY --filter 'state == failed'`, then `ranktune logs`."},
    {"lost attempts", "Ranks or whole jobs were lost: save more often, and look for a bad node in the log."},
    {"side tasks", ""},
    {"idle while the study stopped", "Trials of few iterations end sooner: shorter iterations, or slurm.lead_time."},
    {"idle: study.max_concurrent", "Raise it: `ranktune set STUDY study.max_concurrent=N`."},
    {"idle: waiting trials are too large", "Make the number of workers a multiple of resources.ranks."},
    {"idle: nothing to start yet",
     "A searcher that thinks, a scheduler that waits, or too little time before the "
     "deadline: `ranktune status STUDY` says which."},
    {"idle: no trial left", "The last trials leave ranks free: fewer workers, or more trials (study.num_trials)."},
    {"idle: kept for other uses",
     "resources.helpers keeps them for side tasks, run.spares for ranks that are lost: fewer of them."},
    {"ranks that were lost", "`ranktune status` names them and their hosts; the next start has all ranks again."},
}};

/// What an iteration of `most` seconds waited for data, by cause, from Spent::data on.
template <class Report>
std::array<double, data_cause_count> waits_for_data(const Report& report, const tuner::Tuner& tuner, double most) {
    constexpr std::array<std::string_view, data_cause_count> names{study::data_wait_metric, study::disk_wait_metric,
                                                                   study::decode_wait_metric, study::map_wait_metric};
    std::array<double, data_cause_count> waits{};
    for (const study::MetricValue& metric : report.metrics) {
        const std::string& name = tuner.state().metrics.at(metric.id.value());
        if (!name.starts_with(study::data_wait_metric) || !std::isfinite(metric.value)) continue;
        if (const auto found = std::ranges::find(names, name); found != names.end())
            waits[static_cast<std::size_t>(found - names.begin())] = std::max(0.0, metric.value);
    }
    const double all = waits[0];
    if (all == 0.0) return {};
    const double known = waits[1] + waits[2] + waits[3];
    waits[0] = std::max(0.0, all - known);
    for (double& each : waits) each *= std::min(all, most) / std::max(all, known);
    return waits;
}

} // namespace

std::string_view spent_words(Spent what) { return spent_texts.at(static_cast<std::size_t>(what)).words; }
std::string_view spent_advice(Spent what) { return spent_texts.at(static_cast<std::size_t>(what)).advice; }

RankTime::Open& RankTime::attempt(study::TrialId trial) {
    if (trial.value() >= attempts_.size()) attempts_.resize(trial.value() + 1);
    return attempts_[trial.value()];
}

/// Ranks without a trial stay what they are until the next record.
void RankTime::pass(double until) {
    const double time = std::max(0.0, until - now_s_);
    now_s_ = std::max(now_s_, until);
    if (!begun_) return;
    spend(why_idle_, idle_ * time);
    spend(Spent::beside, beside_ * time);
    spend(Spent::idle_kept, kept_ * time);
    spend(Spent::dead, dead_ * time);
}

void RankTime::look(const tuner::Tuner& tuner) {
    const tuner::State& state = tuner.state();
    const study::StudySpec& spec = tuner.spec();
    idle_ = state.placement.free();
    const auto& workers = state.placement.workers();
    double apart = 0.0;
    beside_ = kept_ = 0.0;
    for (const tuner::WorkerState& worker : workers) {
        if (!worker.alive) continue;
        const bool is_apart = worker.spare || worker.helper;
        if (is_apart) ++apart;
        if (worker.aside)
            ++beside_;
        else if (is_apart)
            ++kept_;
    }
    dead_ = static_cast<double>(workers.size()) - state.placement.alive() - apart;
    const std::uint64_t busy = state.trials.live_attempts();
    if (state.draining)
        why_idle_ = Spent::idle_stopping;
    else if (spec.max_concurrent > 0 && busy >= spec.max_concurrent)
        why_idle_ = Spent::idle_limit;
    else if (!state.trials.waiting().empty())
        why_idle_ = Spent::idle_large;
    else
        why_idle_ = state.trials.size() < spec.num_trials ? Spent::idle_wait : Spent::idle_over;
}

/// Attempts of an earlier start ended with it.
void RankTime::begin(const tuner::Tuner& tuner, double at) {
    for (Open& each : attempts_)
        if (each.holds) leave(each, now_s_, Spent::lost);
    programs_ = tuner.spec().trainable.program.has_value();
    now_s_ = at; // the time between two starts is nobody's
    begun_ = true;
    look(tuner);
}

template <class Report>
void RankTime::arrive(const Report& report, const tuner::Tuner& tuner) {
    Open& t = attempt(report.trial);
    if (!t.holds) return;
    const double passed = std::max(0.0, now_s_ - t.last_s);
    const double iterated = std::clamp(report.seconds - t.seconds, 0.0, passed);
    double trained = iterated;
    auto cause = static_cast<std::size_t>(Spent::data);
    for (const double waited : waits_for_data(report, tuner, iterated)) {
        spend(static_cast<Spent>(cause++), waited * t.ranks);
        trained -= waited;
    }
    trained = std::max(0.0, trained);
    const Spent as = report.iteration > t.highest ? Spent::training
                     : t.ended_well               ? Spent::again_paused
                                                  : Spent::again_lost;
    spend(as, trained * t.ranks);
    if (programs_ && !t.reported) {
        t.first = trained;
        t.first_as = as;
        if (t.pace > 0.0) tell_start_apart(t, t.pace);
    } else {
        t.pace = pace_ = trained;
        tell_start_apart(t, trained);
    }
    const double rest = passed - iterated;
    const double waited = t.admitted_s > t.last_s ? std::min(rest, t.admitted_s - t.last_s) : 0.0;
    spend(Spent::barrier, waited * t.ranks);
    spend(t.reported ? Spent::saving : Spent::starting, (rest - waited) * t.ranks);
    t.reported = true;
    t.last_s = now_s_;
    t.admitted_s = 0.0;
    t.seconds = report.seconds;
    t.highest = std::max(t.highest, report.iteration);
}

/// A program starts within the time of its first iteration: what that took longer than another one is its start.
void RankTime::tell_start_apart(Open& t, double pace) {
    const double start = std::max(0.0, std::exchange(t.first, 0.0) - pace) * t.ranks;
    spend(t.first_as, -start);
    spend(Spent::starting, start);
}

void RankTime::leave(Open& t, double at, Spent why) {
    if (pace_ > 0.0) tell_start_apart(t, pace_); // it made one report: as long as others take
    t.first = 0.0;
    const double rest = std::max(0.0, at - t.last_s);
    const double until = t.held ? at : t.admitted_s;
    const double waited = until > t.last_s ? std::min(rest, until - t.last_s) : 0.0;
    spend(Spent::barrier, waited * t.ranks);
    spend(why, (rest - waited) * t.ranks);
    t.holds = t.held = false;
    t.ended_well = why == Spent::saving;
}

void RankTime::add(const study::Record& record, const tuner::Tuner& tuner) {
    if (const auto* began = std::get_if<study::IncarnationBegan>(&record))
        return begin(tuner, base::to_seconds(began->at));
    std::visit(
        [this](const auto& r) {
            if constexpr (requires { r.at; }) pass(base::to_seconds(r.at));
        },
        record);
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        Open& t = attempt(report->trial);
        if (std::exchange(t.held, false))
            t.admitted_s = now_s_;
        else
            arrive(*report, tuner);
    } else if (const auto* early = std::get_if<study::ReportHeld>(&record)) {
        arrive(*early, tuner);
        attempt(early->trial).held = true;
    } else if (const auto* start = std::get_if<study::TrialStarted>(&record)) {
        Open& t = attempt(start->trial);
        t.holds = true;
        t.reported = t.held = false;
        t.ranks = static_cast<double>(start->ranks.size());
        t.last_s = now_s_;
        t.admitted_s = 0.0;
    } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        using O = study::AttemptOutcome;
        const O how = ended->outcome;
        const bool well = how == O::paused || how == O::stopped || how == O::finished;
        Open& t = attempt(ended->trial);
        if (t.holds) leave(t, now_s_, well ? Spent::saving : how == O::lost ? Spent::lost : Spent::failed);
    }
    if (begun_) look(tuner);
}

std::array<double, spent_count> RankTime::seconds() const {
    auto all = spent_;
    for (const Open& t : attempts_)
        if (t.holds)
            all[static_cast<std::size_t>(programs_ && !t.reported ? Spent::starting : Spent::training)] +=
                std::max(0.0, now_s_ - t.last_s) * t.ranks;
    return all;
}

Training training_of(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    Training training;
    training.full = static_cast<std::uint64_t>(tuner.spec().num_trials) * tuner.spec().max_iterations;
    for (const auto& trial : state.trials) {
        training.seconds += trial.seconds;
        training.iterations += trial.iteration;
    }
    if (state.iterations > training.iterations) training.again = state.iterations - training.iterations;
    if (training.iterations > 0)
        training.full_seconds =
            training.seconds / static_cast<double>(training.iterations) * static_cast<double>(training.full);
    return training;
}

} // namespace ranktune::report
