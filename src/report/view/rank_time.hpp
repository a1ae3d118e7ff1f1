// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks' time went: training, and what was lost, by cause.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// What the ranks of workers did. Each rank-second of a start is in one of these.
enum class Spent : std::uint8_t {
    training,      ///< iterations for the first time
    data,          ///< within iterations: training waited for data (the metric data_wait), nobody knows for what
    data_disk,     ///< the same, for the disk (data_wait/disk)
    data_decode,   ///< for decoding (data_wait/decode)
    data_map,      ///< for the user's map (data_wait/map)
    again_lost,    ///< iterations trained again after a loss, a failure or a restart
    again_paused,  ///< iterations trained again after a pause or an exploit
    starting,      ///< from the start of an attempt to its first iteration; of a program with its imports and data
    saving,        ///< between iterations: checkpoints, reports, verdicts; and leaving
    barrier,       ///< a report waited for those of other trials, or for its turn
    failed,        ///< after the last report of an attempt that failed
    lost,          ///< after the last report of an attempt that was lost or ended with its start
    beside,        ///< side tasks: [before], [after_trial], [after]
    idle_stopping, ///< no trial: the study was told to stop
    idle_limit,    ///< no trial: study.max_concurrent
    idle_large,    ///< no trial: those that waited want more ranks than were free
    idle_wait,     ///< no trial: scheduler, searcher or deadline had none to start
    idle_over,     ///< no trial: no further one is to be created
    idle_kept,     ///< no trial: helpers without a side task, and spares
    dead           ///< the rank was lost
};
inline constexpr std::size_t spent_count = 20;
inline constexpr std::size_t data_cause_count = 4; ///< Spent::data and those behind it
/// "trained again after a loss".
[[nodiscard]] std::string_view spent_words(Spent what);
/// What to do about it, a sentence; empty: nothing. Commands are in `...`; STUDY is to be replaced by the directory.
[[nodiscard]] std::string_view spent_advice(Spent what);

/// Collects rank-seconds while a journal is read.
class RankTime {
  public:
    /// `tuner`: with the record applied.
    void add(const study::Record& record, const tuner::Tuner& tuner);

    /// Up to the newest record. Of attempts that train now, the time since their last report counts as training; before
    /// the first report of a program, as starting.
    [[nodiscard]] std::array<double, spent_count> seconds() const;

  private:
    /// The newest attempt of a trial.
    struct Open {
        bool holds = false; ///< it has ranks
        bool reported = false;
        bool held = false;      ///< its last report waits for its verdict
        bool ended_well = true; ///< the attempt before
        double ranks = 0.0;
        double last_s = 0.0;     ///< its start, then the arrival of its last report
        double admitted_s = 0.0; ///< when the verdict on the last report came; 0: at once
        double seconds = 0.0;    ///< of training, as reported
        double first = 0.0;      ///< seconds up to the first report of a program, while its start is not told apart
        Spent first_as = Spent::training;
        double pace = 0.0; ///< seconds of the newest iteration that was not the first of an attempt; 0: none yet
        study::Iteration highest = 0;
    };

    void pass(double until);
    void look(const tuner::Tuner& tuner);
    void begin(const tuner::Tuner& tuner, double at);
    template <class Report>
    void arrive(const Report& report, const tuner::Tuner& tuner);
    void leave(Open& attempt, double at, Spent why);
    void tell_start_apart(Open& attempt, double pace);
    void spend(Spent what, double rank_seconds) { spent_[static_cast<std::size_t>(what)] += rank_seconds; }
    [[nodiscard]] Open& attempt(study::TrialId trial);

    std::array<double, spent_count> spent_{};
    std::vector<Open> attempts_; ///< by trial
    double now_s_ = 0.0;
    bool begun_ = false;
    bool programs_ = false;
    double pace_ = 0.0; ///< Open::pace of the newest trial that has one
    double idle_ = 0.0; ///< ranks, as of the newest record
    double beside_ = 0.0;
    double kept_ = 0.0;
    double dead_ = 0.0;
    Spent why_idle_ = Spent::idle_wait;
};

// ---- How much a study trained, and how much all trials to the end would have been.

struct Training {
    std::uint64_t iterations = 0; ///< that trials reached
    std::uint64_t again = 0;      ///< trained a second time, after losses
    std::uint64_t full = 0;       ///< of all trials, each trained to the ceiling
    double seconds = 0.0;         ///< training time of the trials
    double full_seconds = 0.0;    ///< estimate for `full`; 0: nothing was trained
    [[nodiscard]] double share() const {
        return full == 0 ? 0.0 : static_cast<double>(iterations) / static_cast<double>(full);
    }
};
[[nodiscard]] Training training_of(const tuner::Tuner& tuner);

} // namespace ranktune::report
