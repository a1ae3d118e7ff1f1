// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study as one plain value, for pages and pictures: everything that its journal says, and nothing to look up.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/view/history.hpp"
#include "report/view/load.hpp"
#include "report/view/origins.hpp"
#include "report/view/rank_time.hpp"

namespace ranktune::report {

/// The configuration of a trial from one of its iterations on.
struct GenerationView {
    study::Iteration from = 0;           ///< of the trial; 0: from its beginning
    std::optional<study::TrialId> donor; ///< whose state it took over there; nothing: its own beginning
    study::Iteration donor_iteration = 0;
    space::Configuration configuration;
    std::uint64_t record = 0; ///< number of the record Exploited; 0: none
};

struct TrialView {
    study::TrialPhase phase = study::TrialPhase::waiting;
    std::string why;          ///< why it ended, paused or goes on, in words
    std::string message;      ///< of its newest failure; empty: none
    std::uint64_t closed = 0; ///< number of the record TrialClosed; 0: none
    study::Iteration iterations = 0;
    double best = 0.0; ///< NaN: no finite value
    study::Iteration best_iteration = 0;
    double last = 0.0;          ///< NaN: none
    double seconds = 0.0;       ///< of training
    std::vector<double> others; ///< further objectives at the best iteration; empty: none
    std::uint32_t attempts = 0;
    std::uint32_t ranks = 1;                            ///< wanted
    study::WorkerKind workers = study::WorkerKind::any; ///< that it can use
    std::uint32_t bracket = 0;
    bool on_hold = false; ///< a user has paused it
    double created_s = 0.0;
    study::Origin origin;                    ///< of its first configuration
    space::Configuration configuration;      ///< of its best report
    std::vector<GenerationView> generations; ///< oldest first; empty: it took over no state
    std::vector<CurvePoint> curve;
    std::vector<std::string> tags;
    std::string after;              ///< what the task after it found out, or its state (after_trial_text); empty: none
    std::vector<std::string> notes; ///< "2026-11-29 ada@login1: looks overfitted", the oldest first
};

/// Weights that a trial trained from one of its iterations to another (lineage.hpp), as a value.
struct StretchView {
    study::TrialId trial;
    study::Iteration from = 0;
    study::Iteration to = 0;
    space::Configuration configuration;
};

/// An attempt: a trial on ranks, for a time.
struct AttemptView {
    study::TrialId trial;
    std::uint32_t attempt = 0;
    std::uint32_t incarnation = 0;  ///< index into StudyView::starts
    std::vector<study::Rank> ranks; ///< ascending
    double begin_s = 0.0;
    double end_s = 0.0;                           ///< as of the newest record, where it is not over
    study::Iteration from = 0;                    ///< of the checkpoint that it started from; 0: from scratch
    study::TrialId whose;                         ///< trial of that checkpoint
    std::optional<study::AttemptOutcome> outcome; ///< nothing: it trains, or ended with its start
    bool runs = false;                            ///< it holds its ranks now
    std::string message;
    std::uint64_t start_record = 0; ///< number of the record TrialStarted
    std::uint64_t end_record = 0;   ///< number of the record AttemptEnded; 0: none
};

/// The trials that a scheduler compared at one iteration, best first.
struct RungView {
    std::uint32_t bracket = 0;
    study::Iteration iteration = 0;
    struct Entry {
        study::TrialId trial;
        double value = 0.0;
        bool went_on = false;
        std::uint64_t record = 0;    ///< number of the record with its verdict
        std::uint64_t promotion = 0; ///< number of its newest record TrialPromoted; 0: none
    };
    std::vector<Entry> entries;
    [[nodiscard]] std::uint64_t went_on() const;
};

/// Rank-seconds of the study.
struct CostView {
    double available_s = 0.0;                  ///< all workers, from the beginning to the end of each start
    double gpu_s = 0.0;                        ///< GPUs of the workers, the same
    double held_s = 0.0;                       ///< workers that an attempt held
    double training_s = 0.0;                   ///< workers in iterations of the trials, those that were lost left out
    std::array<double, spent_count> spent_s{}; ///< workers, by what they did
    std::uint32_t cpus_per_rank = 1;
    [[nodiscard]] double core_hours() const { return available_s * cpus_per_rank / 3600.0; }
    [[nodiscard]] double share(double seconds) const { return available_s > 0.0 ? seconds / available_s : 0.0; }
    [[nodiscard]] double utilisation() const { return share(held_s); }
};

/// "lab3: ranks 1 to 8", of the newest start.
struct HostView {
    std::string name;
    std::uint64_t ranks = 0;
    std::uint64_t gpus = 0;
};

struct StudyView {
    std::string name;
    std::string uuid;
    std::string metric;
    study::Mode mode = study::Mode::max;
    std::vector<study::Goal> others; ///< the further objectives of a study with several
    std::string simulated;           ///< in words; empty: a real study
    std::string searcher;
    std::string scheduler;
    std::string trainable; ///< its name, or the command of a program
    std::uint32_t num_trials = 0;
    study::Iteration max_iterations = 1;
    std::uint64_t seed = 0;
    bool ended = false;
    std::string beside;                ///< side tasks and how far they are (side_tasks_text); empty: none
    std::vector<std::string> failures; ///< failed trials by their messages: "#21 #44: loss is NaN"
    std::string end;                   ///< why it ended, in words; empty: it has not, or is complete
    int exit_code = 0;                 ///< where it has ended
    double now_s = 0.0;                ///< study time of the newest record
    std::string as_of;                 ///< wall time of the newest record, RFC 3339; empty: not known
    std::optional<study::TrialId> best;
    std::uint32_t repeats = 1;                      ///< trials of each configuration (searcher.repeats)
    std::vector<tuner::Repetitions> configurations; ///< with repeats: complete ones with a mean, the best first
    std::string other_weights; ///< "weights of iteration 9 (0.96)", or that there are none, and why, if the best trial
                               ///< has not those of its best value
    std::string best_mean; ///< with searcher.repeats: "0.9120 +- 0.0041 (mean of 3)", of its configuration; else empty
    std::string by_mean;   ///< "#7  0.9120 +- 0.0041, by a model of ...": the best by a model; empty: results are
                           ///< not noisy, or the page is live
    bool compares_nothing = false; ///< study::compares_nothing
    std::string limits;            ///< " with latency <= 5.0": the constraints; empty: none
    std::string nearest; ///< without a best trial: the one that is nearest to the constraints, in words; empty: none
    std::vector<study::TrialId> front; ///< of several objectives, from the best to the worst in the first one
    std::vector<StretchView> lineage;  ///< of the best result, oldest first; empty: there is no best trial
    std::string again;                 ///< a study file that trains the best trial again; empty: there is none
    std::string command;               ///< the command line of a program with the best configuration; empty: no program

    std::vector<space::Parameter> parameters; ///< that vary, in the order of the study file
    std::vector<TrialView> trials;
    Origins origins; ///< more on where their configurations came from
    std::vector<BestStep> best_steps;
    std::vector<Decision> decisions;
    std::vector<RungView> rungs;       ///< by bracket, then iteration; empty: the scheduler has none
    std::vector<AttemptView> attempts; ///< in the order of their starts
    std::vector<double> busy;          ///< share of the workers that are held, in equal slices of [0, now_s]
    std::vector<StartOfHead> starts;
    std::vector<Incident> incidents;
    std::vector<HostView> hosts;
    std::string lost_ranks;     ///< that died while the study went on, in words; empty: none
    std::string out_of_service; ///< hosts and GPUs, in words; empty: none
    std::vector<std::string> versions;
    std::uint64_t expected = 0;   ///< iterations that the study will have trained in the end (expected_iterations)
    std::optional<double> left_s; ///< until then, at the pace so far; nothing: it has ended, or its pace is not known
    Training training;
    CostView cost;
    std::uint64_t ranks = 0;          ///< workers of the newest start
    std::uint64_t ranks_with_gpu = 0; ///< of these
};

/// The view of a study as of its newest record. `history` must have seen the records that `study` was made of; moved in
/// when nobody needs it any more, because of its curves: a million reports.
[[nodiscard]] StudyView study_view(const LoadedStudy& study, History history);

} // namespace ranktune::report
