// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trial threads in one process as the ranks of trials, with checkpoints in memory.

#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddp/collective/thread_collective.hpp"
#include "process/wake.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "schedulers/built_in.hpp"
#include "support/known.hpp"
#include "testing/memory_io.hpp"
#include "worker/trial/trial_thread.hpp"

namespace ranktune::testing {

using ranktune::testing::any_trainable;

/// Checkpoints in memory, shared by all ranks; writes can be refused, checkpoints damaged.
class MemoryStore final : public worker::CheckpointIo {
  public:
    study::CheckpointRef save(const storage::CheckpointKey& key, const State& state) override {
        {
            const std::lock_guard lock(mutex_);
            if (refuse_ || (key.shards != 0 && refused_shard_ == key.shard)) {
                ++refused_;
                throw base::Error("no space left on device");
            }
        }
        return memory_.save(key, state);
    }
    study::MemoryState load(const study::CheckpointRef& checkpoint, const Ranks& holders) override {
        {
            const std::lock_guard lock(mutex_);
            if (damaged_ == checkpoint.path) throw storage::DamageError(checkpoint.path + " is damaged");
        }
        return memory_.load(checkpoint, holders);
    }
    std::unique_ptr<study::StateSource> open(const study::CheckpointRef& checkpoint, const Ranks& holders) override {
        if (checkpoint.shards.empty()) return std::make_unique<study::MemoryState>(load(checkpoint, holders));
        return memory_.open(checkpoint, holders);
    }
    void discard(const storage::CheckpointKey& key) noexcept override { memory_.discard(key); }
    study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source, bool move) override {
        return memory_.adopt(key, source, move);
    }
    std::string locate(const study::CheckpointRef& checkpoint) override { return memory_.locate(checkpoint); }
    void damage(const std::string& path) {
        const std::lock_guard lock(mutex_);
        damaged_ = path;
    }
    void refuse(bool on) {
        const std::lock_guard lock(mutex_);
        refuse_ = on;
    }
    void refuse_shard(std::optional<std::uint32_t> shard) {
        const std::lock_guard lock(mutex_);
        refused_shard_ = shard;
    }
    [[nodiscard]] std::size_t refused() {
        const std::lock_guard lock(mutex_);
        return refused_;
    }
    [[nodiscard]] std::size_t count() { return memory_.count(); }

  private:
    ranktune::testing::MemoryIo memory_;
    std::mutex mutex_;
    bool refuse_ = false;
    std::optional<std::uint32_t> refused_shard_;
    std::size_t refused_ = 0;
    std::string damaged_;
};

/// The events of one rank in one attempt.
struct RankLog {
    std::vector<worker::RunnerReported> reports;
    std::vector<study::CheckpointRef> saved;
    std::vector<std::string> unsaved;
    std::vector<worker::NamedPlace> named;
    std::optional<worker::RunnerEnded> ended;
};

class TrialCluster {
  public:
    /// `program` and `checkpoints` replace the defaults; both outlive this object.
    TrialCluster(int ranks, trainables::Registration trainable, const worker::ProgramSetting* program = nullptr,
                 worker::CheckpointIo* checkpoints = nullptr)
        : trainable_(std::move(trainable)) {
        spec_.max_iterations = 27;
        spec_.seed = 7;
        spec_.scheduler = schedulers::chosen("asha");
        spec_.trainable.name = trainable_.info.name;
        for (int r = 0; r < ranks; ++r) {
            worker::AttemptSetting setting{
                &spec_,
                &trainable_,
                [this, r](const worker::Assignment& assignment, const std::atomic<bool>& abort) {
                    return meeting_.form(assignment.start.ranks, rank(r), assignment.start.attempt.value(), abort);
                },
                checkpoints != nullptr ? checkpoints : &store_,
                {},
                program};
            threads_.push_back(std::make_unique<worker::TrialThread>(
                setting, [this] { waker_.wake(); },
                [this](auto, std::string_view line) {
                    const std::lock_guard lock(mutex_);
                    notes_.emplace_back(line);
                }));
        }
    }

    static base::Rank rank(int r) { return base::Rank{static_cast<std::uint32_t>(r) + 1}; }

    /// Prepares a new attempt of trial 0 on the first `ranks` threads.
    study::StartTrial& prepare(int ranks, base::Iteration decision_point, study::StartFrom from = study::Fresh{}) {
        start_ = {};
        start_.attempt = base::AttemptId{++attempts_};
        start_.incarnation = base::Incarnation{1};
        start_.configuration = configuration;
        start_.decision_point = decision_point;
        start_.between_failures = std::chrono::hours(24);
        start_.to_beat = std::numeric_limits<double>::max(); // no report is the best of its study
        if (const auto* own = std::get_if<study::CheckpointRef>(&from)) start_.iteration = own->iteration;
        start_.generation = generation;
        start_.from = std::move(from);
        for (int r = 0; r < ranks; ++r) start_.ranks.push_back(rank(r));
        return start_;
    }
    void start() {
        logs.assign(start_.ranks.size(), {});
        for (std::size_t r = 0; r < start_.ranks.size(); ++r) threads_[r]->start({start_, static_cast<int>(r)});
    }
    /// Runs the attempt and returns the logs of all ranks. `on_report` answers the leader's reports.
    template <class Answer>
    std::vector<RankLog>& run(Answer&& on_report) {
        start();
        while (!all_ended()) pump(on_report);
        return logs;
    }
    /// Pauses at the report of `iteration`.
    std::vector<RankLog>& run_until(base::Iteration iteration, study::Verb verb = study::Verb::pause) {
        return run([&](const worker::RunnerReported& report) {
            if (report.iteration == iteration) answer(iteration, verb);
        });
    }

    void answer(base::Iteration iteration, study::Verb verb, base::Iteration decision_point = 0,
                study::Reason reason = study::Reason::none) {
        study::Decide decide;
        decide.iteration = iteration;
        decide.verdict = {verb, reason, 0.0, 0.0};
        decide.decision_point = decision_point;
        threads_[0]->decide(decide);
    }
    /// Polls every rank once.
    template <class Answer>
    void pump(Answer&& on_report) {
        waker_.nap(std::chrono::milliseconds(1));
        for (std::size_t r = 0; r < logs.size(); ++r) {
            while (auto event = threads_[r]->poll()) {
                if (auto* report = std::get_if<worker::RunnerReported>(&*event)) {
                    logs[r].reports.push_back(*report);
                    on_report(*report);
                } else if (auto* saved = std::get_if<worker::RunnerSaved>(&*event)) {
                    logs[r].saved.push_back(saved->checkpoint);
                } else if (auto* unsaved = std::get_if<worker::RunnerUnsaved>(&*event)) {
                    logs[r].unsaved.push_back(unsaved->why);
                } else if (auto* named = std::get_if<worker::RunnerNamed>(&*event)) {
                    logs[r].named.push_back(named->place);
                } else {
                    logs[r].ended = std::get<worker::RunnerEnded>(*event);
                }
            }
        }
    }
    [[nodiscard]] bool all_ended() const {
        for (const auto& log : logs)
            if (!log.ended) return false;
        return true;
    }

    worker::TrialThread& thread(int r) { return *threads_[static_cast<std::size_t>(r)]; }
    study::StudySpec& spec() { return spec_; }
    /// What trials and their driver wrote to the log.
    std::vector<std::string> notes() {
        const std::lock_guard lock(mutex_);
        return notes_;
    }
    MemoryStore& store() { return store_; }
    trainables::Registration& trainable() { return trainable_; }

    space::Configuration configuration;
    std::uint32_t generation = 0;
    std::vector<RankLog> logs;

  private:
    std::mutex mutex_;
    std::vector<std::string> notes_;
    study::StudySpec spec_;
    trainables::Registration trainable_;
    ddp::ThreadMeeting meeting_;
    MemoryStore store_;
    process::Waker waker_;
    study::StartTrial start_;
    std::uint32_t attempts_ = 0;
    std::vector<std::unique_ptr<worker::TrialThread>> threads_;
};

} // namespace ranktune::testing
