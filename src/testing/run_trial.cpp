// SPDX-License-Identifier: Apache-2.0
#include "ranktune/testing/run_trial.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "ddp/collective/thread_collective.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "schedulers/built_in.hpp"
#include "testing/memory_io.hpp"
#include "worker/trial/attempt.hpp"

namespace ranktune::testing {
namespace {

using base::Iteration;
using study::AttemptOutcome;
using study::Verb;

constexpr const char* from_path = "from.h5";

/// The study of one trial: what all ranks share and do.
class Trial {
  public:
    Trial(const trainables::Registration& trainable, const TrialOptions& options);
    [[nodiscard]] TrialRun run();

  private:
    class Port;

    void run_rank(int rank);
    [[nodiscard]] study::Verdict verdict_after(Iteration iteration) const;
    [[nodiscard]] worker::AttemptSetting setting_of(int rank, worker::CheckpointWriter& writer);
    [[nodiscard]] TrialRun result();

    const TrialOptions& options_;
    trainables::Registration trainable_;
    study::StudySpec spec_;
    study::StartTrial start_;
    ddp::ThreadMeeting meeting_;
    MemoryIo io_;
    std::atomic<bool> abort_{false};

    std::mutex mutex_; ///< of all below
    std::condition_variable changed_;
    int over_ = 0; ///< ranks that have ended
    bool late_ = false;
    std::vector<worker::RunnerEnded> ended_; ///< by rank
    std::vector<study::CheckpointRef> saved_;
    TrialRun run_;
};

/// The head as a rank sees it: always present, answers at once.
class Trial::Port final : public worker::AttemptPort {
  public:
    explicit Port(Trial& trial) : trial_(trial) {}
    void reported(worker::RunnerReported report) override {
        Report told{report.iteration, {}};
        for (auto& metric : report.metrics) told.metrics.emplace_back(std::move(metric.name), metric.value);
        const std::lock_guard lock(trial_.mutex_);
        trial_.run_.reports.push_back(std::move(told));
    }
    void saved(study::CheckpointRef checkpoint) override {
        const std::lock_guard lock(trial_.mutex_);
        trial_.saved_.push_back(std::move(checkpoint));
    }
    void unsaved(std::string) override {} // memory is never full
    [[nodiscard]] study::Verdict verdict_after(Iteration iteration) override {
        if (trial_.abort_.load()) throw ddp::Aborted("the trial was told to give up");
        return trial_.verdict_after(iteration);
    }
    [[nodiscard]] std::optional<study::Verdict> verdict_within(Iteration iteration,
                                                               std::chrono::milliseconds) override {
        return trial_.verdict_after(iteration);
    }
    void progressed() noexcept override {}
    void waits(bool) noexcept override {}
    [[nodiscard]] const std::atomic<bool>& abort_flag() const override { return trial_.abort_; }
    void log(base::TrialId, std::string_view line) override {
        const std::lock_guard lock(trial_.mutex_);
        trial_.run_.log.emplace_back(line);
    }

  private:
    Trial& trial_;
};

Trial::Trial(const trainables::Registration& trainable, const TrialOptions& options)
    : options_(options), trainable_(trainable) {
    if (options.ranks < 1) throw base::UsageError("a trial has at least one rank");
    if (options.max_iterations < 1) throw base::UsageError("a trial has at least one iteration");
    if (!trainable.factory && !trainable.function)
        throw base::UsageError("the registration has neither a class nor a function");
    trainable_.info.any_option = true; // no study file was checked: watch which options are read
    spec_.max_iterations = options.max_iterations;
    spec_.seed = options.seed;
    spec_.data = options.data;
    spec_.scheduler = schedulers::chosen("asha"); // pauses trials and resumes them from their checkpoints
    spec_.resources.ranks = static_cast<std::uint32_t>(options.ranks);
    spec_.resources.cpus_per_rank = static_cast<std::uint32_t>(options.cpus_per_rank);
    using Interval = study::CheckpointSpec::Interval;
    spec_.checkpoint.interval = options.checkpoint_every > 0 ? Interval::iterations : Interval::none;
    spec_.checkpoint.iterations = options.checkpoint_every;
    start_.trial = base::TrialId{options.trial};
    start_.attempt = base::AttemptId{1};
    start_.incarnation = base::Incarnation{1};
    start_.configuration = options.configuration;
    for (int rank = 0; rank < options.ranks; ++rank) start_.ranks.emplace_back(static_cast<std::uint32_t>(rank) + 1);
    if (!options.from) return;
    study::CheckpointRef from{options.from->iteration, from_path, 0, 0};
    if (trainable_.info.sharded) from.shards = {0};
    io_.put(storage::paths_of(from.path, from.shards.size()).front(), options.from->state);
    start_.from = from;
    start_.iteration = from.iteration;
}

TrialRun Trial::run() {
    ended_.resize(start_.ranks.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options_.ranks; ++rank) threads.emplace_back([this, rank] { run_rank(rank); });
    {
        std::unique_lock lock(mutex_);
        late_ = !changed_.wait_for(lock, options_.time_limit, [this] { return over_ == options_.ranks; });
        if (late_) abort_.store(true);
    }
    for (std::thread& thread : threads) thread.join();
    return result();
}

/// Runs on the rank's thread.
void Trial::run_rank(int rank) {
    Port port(*this);
    worker::Spare spare;
    worker::CheckpointWriter writer([this](const auto& key, const auto& state) { return io_.save(key, state); });
    worker::RunnerEnded ended = run_attempt(setting_of(rank, writer), {start_, rank}, port, spare);
    const std::lock_guard lock(mutex_);
    ended_[static_cast<std::size_t>(rank)] = std::move(ended);
    ++over_;
    changed_.notify_all();
}

worker::AttemptSetting Trial::setting_of(int rank, worker::CheckpointWriter& writer) {
    const auto form = [this, rank](const worker::Assignment&, const std::atomic<bool>& abort) {
        return meeting_.form(start_.ranks, start_.ranks[static_cast<std::size_t>(rank)], 1, abort);
    };
    return {&spec_,
            &trainable_,
            form,
            &io_,
            {options_.devices, false},
            nullptr,
            process::memory_bytes() / start_.ranks.size(),
            &writer};
}

study::Verdict Trial::verdict_after(Iteration iteration) const {
    if (iteration == options_.pause_after) return {Verb::pause, study::Reason::rung, 0.0, 0.0};
    if (iteration >= options_.max_iterations) return {Verb::stop, study::Reason::max_iterations, 0.0, 0.0};
    return {};
}

TrialRun Trial::result() {
    const std::lock_guard lock(mutex_);
    for (const auto& checkpoint : saved_) run_.checkpoints.push_back({checkpoint.iteration, io_.all_of(checkpoint)});
    run_.unread = ended_.front().unread;
    bool failed = late_;
    for (const auto& ended : ended_) {
        failed = failed || (ended.outcome != AttemptOutcome::finished && ended.outcome != AttemptOutcome::stopped &&
                            ended.outcome != AttemptOutcome::paused);
        if (run_.failure.empty()) run_.failure = study::describe(ended.failure);
    }
    if (late_)
        run_.failure = "the trial did not end within " + std::to_string(options_.time_limit.count()) +
                       " ms; reports made: " + std::to_string(run_.reports.size());
    const AttemptOutcome outcome = ended_.front().outcome;
    run_.end = failed                                ? TrialRun::End::failed
               : outcome == AttemptOutcome::finished ? TrialRun::End::finished
               : outcome == AttemptOutcome::paused   ? TrialRun::End::paused
                                                     : TrialRun::End::stopped;
    return std::move(run_);
}

/// Bit for bit: NaN equals NaN, and 0 differs from -0.
bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

std::string digits_of(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

/// The difference between two reports of one iteration.
std::string difference(const Report& through, const Report& resumed, const std::vector<std::string>& ignored) {
    const std::string where = "iteration " + std::to_string(through.iteration) + ": ";
    if (through.metrics.size() != resumed.metrics.size()) return where + "other metrics are reported";
    for (std::size_t i = 0; i < through.metrics.size(); ++i) {
        const auto& [name, value] = through.metrics[i];
        const auto& [other_name, other] = resumed.metrics[i];
        if (name != other_name) return where + "other metrics are reported";
        if (std::ranges::find(ignored, name) != ignored.end() || same_bits(value, other)) continue;
        return where + "'" + name + "' is " + digits_of(other) + " after the resume, and " + digits_of(value) +
               " without it";
    }
    return {};
}

/// The difference between two checkpoints of one iteration. Both may hold sharded tensors in parts.
std::string difference(const Checkpoint& through, const Checkpoint& resumed) {
    const std::string where = "checkpoint of iteration " + std::to_string(through.iteration) + ": ";
    const study::MemoryState a = through.state.whole();
    const study::MemoryState b = resumed.state.whole();
    if (a.stored_tensors().size() != b.stored_tensors().size()) return where + "other tensors are saved";
    for (std::size_t i = 0; i < a.stored_tensors().size(); ++i) {
        const auto& tensor = a.stored_tensors()[i];
        const auto& other = b.stored_tensors()[i];
        if (tensor.info != other.info) return where + "tensor '" + tensor.info.name + "' has another name or shape";
        if (tensor.bytes != other.bytes) return where + "tensor '" + tensor.info.name + "' differs";
    }
    if (a.stored_blobs().size() != b.stored_blobs().size()) return where + "other blobs are saved";
    for (std::size_t i = 0; i < a.stored_blobs().size(); ++i) {
        const auto& blob = a.stored_blobs()[i];
        const auto& other = b.stored_blobs()[i];
        if (blob.name != other.name || blob.bytes != other.bytes) return where + "blob '" + blob.name + "' differs";
    }
    return {};
}

} // namespace

double Report::at(std::string_view metric) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) {
        if (name == metric) return value;
        names.push_back(name);
    }
    throw base::UsageError("no metric '" + std::string(metric) + "' was reported; there are " + base::join(names));
}

double TrialRun::last(std::string_view metric) const {
    if (reports.empty()) throw base::UsageError("the trial has reported nothing: " + failure);
    return reports.back().at(metric);
}

const Checkpoint& TrialRun::checkpoint() const {
    if (checkpoints.empty()) throw base::UsageError("the trial has saved nothing: " + failure);
    return checkpoints.back();
}

TrialRun run_trial(const trainables::Registration& trainable, const TrialOptions& options) {
    return Trial(trainable, options).run();
}

std::string resume_difference(const trainables::Registration& trainable, const TrialOptions& options,
                              base::Iteration iteration, const std::vector<std::string>& ignored) {
    if (iteration < 1 || iteration >= options.max_iterations)
        throw base::UsageError("nothing can follow a pause after iteration " + std::to_string(iteration));
    const TrialRun through = run_trial(trainable, options);
    if (!through.failure.empty()) return "the trial that runs through fails: " + through.failure;
    TrialOptions to_pause = options;
    to_pause.pause_after = iteration;
    const TrialRun paused = run_trial(trainable, to_pause);
    if (!paused.failure.empty()) return "the trial that is paused fails: " + paused.failure;
    if (paused.end != TrialRun::End::paused) return "the trial has ended before iteration " + std::to_string(iteration);
    if (paused.checkpoints.empty()) return "the trial saves nothing when it is paused";
    TrialOptions from_there = options;
    from_there.from = paused.checkpoint();
    const TrialRun resumed = run_trial(trainable, from_there);
    if (!resumed.failure.empty()) return "the trial that goes on from the checkpoint fails: " + resumed.failure;
    if (paused.reports.size() + resumed.reports.size() != through.reports.size())
        return "it reports " + std::to_string(paused.reports.size() + resumed.reports.size()) +
               " times with a resume, and " + std::to_string(through.reports.size()) + " times without";
    for (std::size_t i = 0; i < resumed.reports.size(); ++i) {
        std::string text = difference(through.reports[paused.reports.size() + i], resumed.reports[i], ignored);
        if (!text.empty()) return text;
    }
    if (through.checkpoints.empty() && resumed.checkpoints.empty()) return {}; // it ended on its own
    return difference(through.checkpoint(), resumed.checkpoint());
}

} // namespace ranktune::testing
