// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run is asked for and what comes of it.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "comm/transport/transport.hpp"
#include "head/head_machine.hpp"
#include "head/observer.hpp"
#include "head/serve_head.hpp"
#include "layout/layout.hpp"
#include "process/signal_note.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"
#include "studydir/open_study.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::head {

/// How a study ended, for the end screen.
struct RunEnd {
    study::StudyOutcome outcome = study::StudyOutcome::ok; ///< the exit code of every rank
    std::string message;                                   ///< why, in words for people
    HeadFigures figures = {};
    const tuner::Tuner* tuner = nullptr; ///< null: the study never started
    std::string requeue = {};            ///< what became of the job, in words; empty: nothing to say
    bool requeued = false;               ///< the job is back in the queue
    bool called_off = false;             ///< late, by a person: no other job goes on with the study
    std::string tables = {};             ///< what is wrong with metrics.h5, in words; empty: nothing
    HeadEnd::Whose whose = HeadEnd::Whose::head;
    study::Asker by = study::Asker::none; ///< whoever asked for it
};

/// Rank 0 fills in everything; the other ranks `version`, `layout` and `wrap` only.
struct RunOptions {
    std::string version;                     ///< of this program
    std::string build_type;                  ///< of this program: "release"
    layout::Layout layout;                   ///< empty: not known, no rank has a GPU
    process::SignalMeanings signal_meanings; ///< of what the launcher passes on
    /// Puts something around this rank's end of all links, for tests of what links can do; may be empty. On all ranks
    /// or on none.
    std::function<std::unique_ptr<comm::Transport>(std::unique_ptr<comm::Transport>)> wrap;
    /// The caller (the command line) has refused already, and has said why: the ranks only leave together.
    std::optional<study::StudyOutcome> refused;
    study::StudySpec spec;
    std::string study_text;     ///< the study file as it was given; empty: the one that the directory has (`run DIR`)
    std::string directory;      ///< of the study, absolute
    studydir::OpenRequest open; ///< how an existing study is met
    bool supervised = false; ///< by `ranktune supervise`: what the file `stop` asks for was meant for this start, too
    std::string launch;      ///< value of launch_variable, for the file `outcome`
    storage::FileSystem* files = &storage::posix_file_system(); ///< of the head, for tests of disks that fail
    Observer* observer = nullptr;
    /// Called on rank 0 when the directory has been looked at, before anything is started; also when the study is
    /// finished, and then nothing follows but `on_end`. `moved_to` is the new name of an old directory (--fresh).
    std::function<void(const studydir::OpenedStudy& opened, const std::string& moved_to)> on_open;
    /// One sentence for people who wait.
    std::function<void(const std::string&)> on_note;
    /// Called on rank 0 when the study was asked to stop, and again when somebody insists: then the study ends at once,
    /// and nothing said later is sure to be heard.
    std::function<void(const EndAsked& what, const tuner::Tuner& tuner, const HeadFigures& figures)> on_stop;
    /// Called on rank 0, once, when everything is over and every file is closed, before the process may `_exit`. The
    /// tuner lives until it returns.
    std::function<void(const RunEnd&)> on_end;
};

} // namespace ranktune::head
