// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/trial_thread.hpp"

#include <cassert>
#include <utility>

namespace ranktune::worker {

TrialThread::TrialThread(AttemptSetting setting, std::function<void()> wake,
                         std::function<void(base::TrialId, std::string_view)> log)
    : setting_(std::move(setting)),
      writer_([io = setting_.checkpoints](const auto& key, const auto& state) { return io->save(key, state); }),
      wake_(std::move(wake)),
      log_(std::move(log)) {
    setting_.writer = &writer_;
    thread_ = std::thread([this] { main(); });
}

TrialThread::~TrialThread() {
    abandon();
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void TrialThread::start(const Assignment& assignment) {
    {
        const std::lock_guard lock(mutex_);
        assert(!assignment_);
        abort_.store(false);
        contested_.store(false);
        decision_point_ = assignment.start.decision_point;
        order_.reset();
        last_go_on_.reset();
        assignment_ = assignment;
        taken_ = false;
    }
    changed_.notify_all();
}

/// Something has come for the attempt under way.
void TrialThread::tell() {
    changed_.notify_all();
    news_.wake();
}

void TrialThread::decide(const study::Decide& decide) {
    {
        const std::lock_guard lock(mutex_);
        if (decide.verdict.verb != study::Verb::go_on) {
            order_ = decide.verdict;
        } else if (decide.decision_point > decision_point_) { // ignore repeated and outdated decisions
            decision_point_ = decide.decision_point;
            last_go_on_ = decide;
        }
    }
    tell();
}

void TrialThread::interrupt(const study::Verdict& verdict) {
    {
        const std::lock_guard lock(mutex_);
        if (!order_) order_ = verdict;
    }
    tell();
}

void TrialThread::abandon() {
    {
        const std::lock_guard lock(mutex_);
        if (assignment_) abort_.store(true);
    }
    tell();
}

std::optional<RunnerEvent> TrialThread::poll() {
    const std::lock_guard lock(mutex_);
    if (events_.empty()) return std::nullopt;
    RunnerEvent event = std::move(events_.front());
    events_.pop_front();
    if (events_.size() + 1 == most_events) changed_.notify_all();
    return event;
}

std::uint64_t TrialThread::progress() const { return progress_.load(std::memory_order_relaxed); }

bool TrialThread::busy() const {
    const std::lock_guard lock(mutex_);
    return assignment_.has_value() || !events_.empty();
}

void TrialThread::push(RunnerEvent event) {
    {
        const std::lock_guard lock(mutex_);
        events_.push_back(std::move(event));
    }
    wake_();
}

void TrialThread::reported(RunnerReported report) {
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return abort_.load() || events_.size() < most_events; });
        if (abort_.load()) return; // the attempt is given up
    }
    push(std::move(report)); // there is still room: only this thread adds events
}

/// The head's answer, or go_on if there is none. Called with the lock held.
study::Verdict TrialThread::verdict_on(base::Iteration iteration) const {
    if (order_) return *order_;
    return last_go_on_ && last_go_on_->iteration == iteration ? last_go_on_->verdict : study::Verdict{};
}

study::Verdict TrialThread::verdict_after(base::Iteration iteration) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return abort_.load() || order_ || decision_point_ > iteration; });
    if (abort_.load()) throw ddp::Aborted("the trial was told to give up");
    return verdict_on(iteration);
}

std::optional<study::Verdict> TrialThread::verdict_within(base::Iteration iteration,
                                                          std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    const auto is_decided = [&] { return abort_.load() || order_ || decision_point_ > iteration; };
    // To wait for no time is a call of the kernel, too.
    const bool decided = patience.count() > 0 ? changed_.wait_for(lock, patience, is_decided) : is_decided();
    if (!decided || abort_.load())
        return std::nullopt; // the next operation of the group sees the abort flag, on all ranks
    return verdict_on(iteration);
}

/// Returns when there is an assignment, or the thread has to end. Looks after a program that waits meanwhile.
void TrialThread::await_assignment(std::unique_lock<std::mutex>& lock, Spare& spare) {
    constexpr std::chrono::milliseconds turn{20};
    const auto is_called = [this] { return quit_ || (assignment_ && !taken_); };
    while (spare.program) {
        if (changed_.wait_for(lock, turn, is_called)) return;
        lock.unlock();
        if (!spare.program->tend()) spare.program.reset();
        lock.lock();
    }
    changed_.wait(lock, is_called);
}

void TrialThread::main() {
    Spare spare; // created and destroyed on this thread, like all user objects
    std::unique_lock lock(mutex_);
    while (true) {
        await_assignment(lock, spare);
        if (!assignment_ || taken_) return;
        taken_ = true;
        const Assignment assignment = *assignment_;
        lock.unlock();
        RunnerEnded ended = run_attempt(setting_, assignment, *this, spare);
        lock.lock();
        assignment_.reset();
        events_.emplace_back(std::move(ended));
        lock.unlock();
        wake_();
        lock.lock();
    }
}

} // namespace ranktune::worker
