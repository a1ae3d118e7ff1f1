// SPDX-License-Identifier: Apache-2.0
#pragma once
// A worker machine with a scripted runner.

#include <csignal>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/wire/recorder.hpp"
#include "worker/worker_machine.hpp"

namespace ranktune::testing {

/// Records the calls; the test supplies the events.
class ScriptedRunner final : public worker::Runner {
  public:
    bool prepared() override { return is_prepared; }
    void stage() override { calls.push_back("stage"); }
    void start(const worker::Assignment& assignment) override {
        calls.push_back("start #" + std::to_string(assignment.start.trial.value()));
        started = assignment;
    }
    void decide(const study::Decide& decide) override { calls.push_back("decide " + std::to_string(decide.iteration)); }
    void interrupt(const study::Verdict&) override { calls.push_back("interrupt"); }
    void contest() override { calls.push_back("contest"); }
    void abandon() override { calls.push_back("abandon"); }
    std::optional<worker::RunnerEvent> poll() override {
        if (events.empty()) return std::nullopt;
        worker::RunnerEvent event = std::move(events.front());
        events.pop_front();
        return event;
    }
    std::uint64_t progress() const override { return steps; }
    bool waits() const override { return waiting; }

    std::vector<std::string> calls;
    std::optional<worker::Assignment> started;
    std::deque<worker::RunnerEvent> events;
    bool waiting = false;
    bool is_prepared = true;
    std::uint64_t steps = 100; ///< not 0: earlier attempts have made progress
};

/// Rank `self`, welcomed at 0 s by incarnation 1: heartbeat every second, head time-out 60 s, abort grace 30 s.
class WorkerFixture {
  public:
    explicit WorkerFixture(Rank self, base::Duration progress_timeout = {}) : self_(self) {
        machine = std::make_unique<worker::WorkerMachine>(
            worker::WorkerOptions{.rank = self,
                                  .version = "0.1.0",
                                  .host = "node1",
                                  .gpus = 2,
                                  .join_timeout = 120s,
                                  .ranks = 4,
                                  .signal_rank = [this](Rank rank, int signal) { signals.emplace_back(rank, signal); },
                                  .kill_silent =
                                      [this](Rank rank, bool at_once) {
                                          killed.emplace_back(rank, at_once);
                                          return at_once ? process::Killing::done : killing;
                                      }},
            out,
            [this](const comm::Welcome&) {
                auto made = std::make_unique<ScriptedRunner>();
                runner = made.get();
                return made;
            },
            log_, at(0s));
        out.take<comm::Hello>(head);
        from(head, comm::Welcome{Incarnation(1), "[study]\n", "/study", 1s, 60s, 30s, progress_timeout}, at(0s));
        REQUIRE(runner != nullptr);
    }

    template <class T>
    void from(Rank sender, const T& message, StudyTime now) {
        machine->on_message(sender, bytes_of(message), now);
    }
    /// One round of the loop; drops the heartbeat.
    void tick(StudyTime now) {
        machine->on_tick(now);
        out.drop<comm::Heartbeat>();
    }
    void happened(worker::RunnerEvent event, StudyTime now) {
        runner->events.push_back(std::move(event));
        tick(now);
    }
    void check_calls(const std::vector<std::string>& expected) const { CHECK(runner->calls == expected); }

    const Rank head = base::head_rank;
    Recorder out;
    ScriptedRunner* runner = nullptr;
    std::vector<std::pair<Rank, int>> signals;         ///< to ranks of its node
    std::vector<std::pair<Rank, bool>> killed;         ///< ranks of its node, and whether at once
    process::Killing killing = process::Killing::done; ///< what becomes of those that need not die at once
    std::unique_ptr<worker::WorkerMachine> machine;

  private:
    Rank self_;
    base::NullLog log_;
};

inline comm::AttemptKey key_for(std::uint32_t trial, std::uint32_t attempt = 1) {
    return {TrialId(trial), AttemptId(attempt), Incarnation(1)};
}
inline study::StartTrial start_of(const comm::AttemptKey& key, std::vector<Rank> ranks) {
    return {.trial = key.trial,
            .attempt = key.attempt,
            .incarnation = key.incarnation,
            .ranks = std::move(ranks),
            .configuration = {},
            .from = study::Fresh{},
            .holders = {}};
}
inline study::Abandon abandon_of(const comm::AttemptKey& key, std::vector<Rank> living) {
    return {key.trial, key.attempt, key.incarnation, std::move(living)};
}
inline study::Decide decide_of(const comm::AttemptKey& key, base::Iteration iteration) {
    return {key.trial, key.attempt, key.incarnation, iteration, {}, iteration + 1};
}

} // namespace ranktune::testing
