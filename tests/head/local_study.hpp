// SPDX-License-Identifier: Apache-2.0
#pragma once
// A whole study in one process: head and workers are threads, messages go over the loopback transport, trials run on
// real trial threads, files are in a temporary directory.

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/transport/transport.hpp"
#include "ddp/collective/thread_collective.hpp"
#include "head/head_run.hpp"
#include "process/wake.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "simulate/transport/loopback.hpp"
#include "storage/journal/journal.hpp"
#include "support/files.hpp"
#include "support/known.hpp"
#include "worker/serve_worker.hpp"
#include "worker/worker_runner.hpp"

namespace ranktune::testing {

using ranktune::testing::TemporaryDirectory;

inline study::StudySpec spec_from(const std::string& toml) {
    return study::parse_study(toml, "/study.toml", {}, ranktune::testing::known(trainables::known_trainables()));
}

/// Runs worker `rank` of a loopback study once.
inline worker::WorkerEnd run_local_worker(simulate::LoopbackHub& hub, ddp::ThreadMeeting& meeting, std::uint32_t rank) {
    const auto transport = hub.endpoint(base::Rank{rank});
    const base::Rank me{rank};
    worker::WorkerOptions options;
    options.rank = me;
    options.version = "test";
    options.host = "here";
    process::Waker waker;
    worker::WorkerLog log(me);
    const process::ProcessClock clock;
    const worker::FormGroup form = [&meeting, me](const worker::Assignment& assignment,
                                                  const std::atomic<bool>& abort) {
        const auto& start = assignment.start;
        return meeting.form(start.ranks, me, start.trial.value() * 1000ULL + start.attempt.value(), abort);
    };
    worker::WorkerMachine worker(
        options, *transport, worker::make_trial_runner(storage::posix_file_system(), form, options.host, log, waker),
        log, clock.now());
    return worker::serve_worker(*transport, worker, clock, waker, nullptr);
}

struct LocalStudy {
    head::HeadRunEnd head;
    std::vector<worker::WorkerEnd> workers;
    std::string message;
    std::string directory;
};

inline head::RunOptions local_options(const std::string& toml, const std::string& directory) {
    head::RunOptions options;
    options.version = "test";
    options.spec = spec_from(toml);
    options.study_text = toml;
    options.directory = directory;
    return options;
}

/// Runs the study to its end on `workers` worker threads.
inline LocalStudy run_local_study(head::RunOptions options, std::uint32_t workers) {
    LocalStudy study;
    study.directory = options.directory;
    options.on_end = [&](const head::RunEnd& end) { study.message = end.message; };
    simulate::LoopbackHub hub(workers + 1);
    ddp::ThreadMeeting meeting;
    study.workers.resize(workers);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 1; rank <= workers; ++rank)
        threads.emplace_back([&, rank] { study.workers[rank - 1] = run_local_worker(hub, meeting, rank); });
    const auto transport = hub.endpoint(base::head_rank);
    study.head = head::run_head(*transport, nullptr, options, "none");
    for (auto& thread : threads) thread.join();
    return study;
}
inline LocalStudy run_local_study(const std::string& toml, std::uint32_t workers, const std::string& directory,
                                  head::Observer* observer = nullptr) {
    head::RunOptions options = local_options(toml, directory);
    options.observer = observer;
    return run_local_study(std::move(options), workers);
}

/// The state of a study, from its journal.
inline std::unique_ptr<tuner::Tuner> replay(const std::string& toml, const std::string& directory) {
    auto tuner = std::make_unique<tuner::Tuner>(spec_from(toml));
    storage::read_journal(storage::posix_file_system(), directory,
                          [&](study::Record&& record) { tuner->apply(record); });
    tuner->check_invariants();
    return tuner;
}

} // namespace ranktune::testing
