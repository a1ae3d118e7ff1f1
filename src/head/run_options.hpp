// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options of a run and its result.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/layout/layout.hpp"
#include "comm/layout/neighbours.hpp"
#include "comm/transport/transport.hpp"
#include "head/head_machine.hpp"
#include "head/observer.hpp"
#include "head/serve_head.hpp"
#include "process/signal_note.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"
#include "studydir/open_study.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::head {

/// How a study ended, for the end screen.
struct RunEnd {
    study::StudyOutcome outcome = study::StudyOutcome::ok; ///< the exit code of every rank
    std::string message;                                   ///< why, for people
    HeadFigures figures = {};
    const tuner::Tuner* tuner = nullptr; ///< null: the study never started
    std::string requeue = {};            ///< what became of the job, for people; empty: nothing to say
    bool requeued = false;               ///< the job is back in the queue
    bool called_off = false;             ///< a person asked late for a stop: no other job continues the study
    std::string tables = {};             ///< what is wrong with metrics.h5; empty: nothing
    HeadEnd::Whose whose = HeadEnd::Whose::head;
    study::Asker by = study::Asker::none; ///< who asked for this end
};

/// Rank 0 fills in everything; the other ranks only `version`, `layout`, `neighbours`, `dies_after` and `wrap`.
struct RunOptions {
    std::string version;                     ///< of this program
    std::string build_type;                  ///< of this program: "release"
    comm::Layout layout;                     ///< empty: unknown, no rank has a GPU
    comm::Neighbours* neighbours = nullptr;  ///< of this rank; null: nobody watches anybody
    process::SignalMeanings signal_meanings; ///< for signals that the launcher passes on
    /// After this time (of a worker: since its first trial began) this rank kills itself on purpose (`run --faults`);
    /// nothing: never.
    std::optional<base::Duration> dies_after = {};
    /// Wraps this rank's transport, for tests with faulty links; may be empty. On all ranks or none.
    std::function<std::unique_ptr<comm::Transport>(std::unique_ptr<comm::Transport>)> wrap;
    /// The caller (the command line) has refused the run and said why: the ranks only leave together.
    std::optional<study::StudyOutcome> refused;
    study::StudySpec spec;
    std::string study_text;     ///< the study file as given; empty: the directory's own (`run DIR`)
    std::string directory;      ///< of the study, absolute
    studydir::OpenRequest open; ///< what to do with an existing study
    /// Earlier results, for a study that begins now; nullopt: none, or it has begun.
    std::optional<study::WarmStarted> earlier = {};
    bool supervised = false; ///< by `ranktune supervise`: an existing file `stop` is meant for this start
    std::string launch;      ///< value of launch_variable, for the file `outcome`
    storage::FileSystem* files = &storage::posix_file_system(); ///< of the head; tests use a faulty one
    Observer* observer = nullptr;
    /// Trials run outside of all ranks (ask and tell): stands for the ranks, in every round of the loop, and may wait a
    /// moment for input. No death of a start is blamed on such trials.
    std::function<void(HeadMachine& head, const tuner::Tuner& tuner, const process::ProcessClock& clock)> outside;
    /// Called on rank 0 when the directory has been read, before anything starts. For a finished study only `on_end`
    /// follows. `moved_to` is the new name of an old directory (--fresh).
    std::function<void(const studydir::OpenedStudy& opened, const std::string& moved_to)> on_open;
    /// Called with one sentence for the user while waiting.
    std::function<void(const std::string&)> on_note;
    /// Called on rank 0 when the study is asked to stop, and again when somebody insists: then the study ends at once,
    /// and later messages may be lost.
    std::function<void(const EndAsked& what, const tuner::Tuner& tuner, const HeadFigures& figures)> on_stop;
    /// Called once on rank 0, when everything is over and every file is closed, before the process may `_exit`. The
    /// tuner lives until it returns.
    std::function<void(const RunEnd&)> on_end;
};

} // namespace ranktune::head
