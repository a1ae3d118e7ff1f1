// SPDX-License-Identifier: Apache-2.0
#include "drivers/group/attempt.hpp"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/group/group_collective.hpp"
#include "drivers/group/state_exchange.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::drivers {
namespace {

using study::AttemptOutcome;
using study::Verb;
using Clock = std::chrono::steady_clock;

space::Configuration merged(const study::StartTrial& start, const study::StudySpec& spec) {
    space::Configuration all = start.configuration;
    for (const auto& option : spec.trainable.options.entries()) all.set(option.name, option.value);
    return all;
}

base::Iteration first_iteration(const study::StartFrom& from) {
    const auto* checkpoint = std::get_if<study::CheckpointRef>(&from);
    return checkpoint != nullptr ? checkpoint->iteration : 0;
}

std::string what_is_flying(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& known) {
        return known.what();
    } catch (...) {
        return "an exception that is not a std::exception";
    }
}

/// Training time: runs while user code runs.
class Stopwatch {
  public:
    explicit Stopwatch(double seconds) : seconds_(seconds) {}
    void start() { began_ = Clock::now(); }
    void stop() {
        if (began_) seconds_ += std::chrono::duration<double>(Clock::now() - *began_).count();
        began_.reset();
    }
    [[nodiscard]] double seconds() const { return seconds_; }

  private:
    double seconds_;
    std::optional<Clock::time_point> began_;
};

/// The state of one attempt on one rank, and what user code sees of it.
class Attempt final : public trainables::TrialContext {
  public:
    Attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port, Spare& spare)
        : setting_(setting),
          assignment_(assignment),
          port_(port),
          spare_(spare),
          configuration_(merged(assignment.start, *setting.spec)),
          iteration_(first_iteration(assignment.start.from)),
          watch_(assignment.start.seconds) {}

    RunnerEnded run();

    // ---- TrialContext ----
    [[nodiscard]] base::TrialId trial() const override { return assignment_.start.trial; }
    [[nodiscard]] std::uint64_t seed() const override { return setting_.spec->seed; }
    [[nodiscard]] const space::Configuration& configuration() const override { return configuration_; }
    [[nodiscard]] base::Iteration max_iterations() const override { return setting_.spec->max_iterations; }
    [[nodiscard]] base::Iteration iteration() const override { return iteration_; }
    [[nodiscard]] int cpus_per_rank() const override {
        return static_cast<int>(setting_.spec->resources.cpus_per_rank);
    }
    [[nodiscard]] int rank() const override { return group_->rank(); }
    [[nodiscard]] int size() const override { return group_->size(); }
    [[nodiscard]] ddp::Collective& collective() override { return *group_; }
    [[nodiscard]] bool report(const trainables::Metrics& metrics) override;
    void checkpoints(std::function<void(study::StateSink&)> save,
                     std::function<void(study::StateSource&)> load) override;
    void log(std::string_view line) override { port_.log(trial(), line); }

  private:
    [[nodiscard]] RunnerEnded form_and_train();
    [[nodiscard]] RunnerEnded failed_here(const std::exception_ptr& error);
    void train();
    void train_class();
    [[nodiscard]] bool take_over_spare();
    void train_function();
    void restore(const std::function<void(study::StateSource&)>& load);
    [[nodiscard]] Verb finish_iteration(const trainables::Metrics& metrics);
    void end_with_checkpoint(Verb verb, const std::function<void(study::StateSink&)>& save);
    void save(const std::function<void(study::StateSink&)>& save);
    [[nodiscard]] const study::CheckpointRef* checkpoint() const {
        return std::get_if<study::CheckpointRef>(&assignment_.start.from);
    }

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    AttemptPort& port_;
    Spare& spare_;
    space::Configuration configuration_;
    base::Iteration iteration_;
    Stopwatch watch_;
    std::unique_ptr<GroupCollective> group_;
    std::unique_ptr<trainables::Trainable> trainable_; // after group_: destroyed before it
    std::vector<std::size_t> owed_;
    AttemptOutcome outcome_ = AttemptOutcome::finished;
    // function form
    std::function<void(study::StateSink&)> save_;
    bool restored_ = false;
    bool told_to_end_ = false;
    std::exception_ptr end_error_;
};

RunnerEnded Attempt::run() {
    if (std::holds_alternative<study::Donor>(assignment_.start.from))
        return {AttemptOutcome::failed, "starting from another trial's state is not supported"};
    RunnerEnded ended = form_and_train();
    if (port_.abort_flag().load()) ended = {AttemptOutcome::lost, ""};
    return ended;
}

RunnerEnded Attempt::form_and_train() {
    if (port_.abort_flag().load()) return {AttemptOutcome::lost, ""};
    try {
        group_ = std::make_unique<GroupCollective>(setting_.form(assignment_, port_.abort_flag()), port_);
    } catch (const ddp::Aborted&) {
        return {AttemptOutcome::lost, ""};
    } catch (...) {
        return {AttemptOutcome::failed, "cannot form the group: " + what_is_flying(std::current_exception())};
    }
    try {
        train();
        watch_.stop();
        return {outcome_, ""};
    } catch (const ddp::Aborted&) {
        return {AttemptOutcome::lost, ""};
    } catch (const ddp::PeerFailed&) {
        return {AttemptOutcome::failed, ""}; // the rank that failed says why
    } catch (...) {
        return failed_here(std::current_exception());
    }
}

RunnerEnded Attempt::failed_here(const std::exception_ptr& error) {
    std::string message = "rank " + std::to_string(assignment_.group_rank) + ": " + what_is_flying(error);
    try {
        group_->fail(owed_);
    } catch (...) { // Aborted, or the other ranks parted on their own: either way nobody waits for this rank
        if (port_.abort_flag().load()) return {AttemptOutcome::lost, ""};
    }
    return {AttemptOutcome::failed, std::move(message)};
}

void Attempt::train() {
    port_.progressed();
    watch_.start();
    if (setting_.trainable->factory)
        train_class();
    else
        train_function();
}

void Attempt::train_class() {
    if (!take_over_spare()) {
        trainable_ = setting_.trainable->factory();
        trainable_->setup(*this);
    }
    owed_ = trainable_->owed_buckets();
    restore([this](study::StateSource& source) { trainable_->load(source); });
    // Until here a failing rank owes no gradient buckets, from here on it knows which: nobody may begin a training step
    // while another rank can still fail without knowing.
    group_->barrier();
    Verb verb = Verb::go_on;
    while (verb == Verb::go_on) {
        const auto metrics = trainable_->step(*this);
        verb = finish_iteration(metrics);
    }
    end_with_checkpoint(verb, [this](study::StateSink& sink) { trainable_->save(sink); });
    if (setting_.trainable->info.can_reset) spare_ = {std::move(trainable_), group_->size()};
}

/// Collective. Whether the trainable of the trial before goes on with this one, on all ranks; a rank that ran something
/// else before says no.
bool Attempt::take_over_spare() {
    if (!setting_.trainable->info.can_reset) return false;
    Spare spare = std::exchange(spare_, {});
    const auto on_all = [this](bool here) {
        return group_->size() == 1 ? here : group_->min_max(here ? 1 : 0).first == 1;
    };
    if (!on_all(spare.trainable && spare.size == group_->size())) return false;
    if (!on_all(spare.trainable->reset_config(*this))) return false;
    trainable_ = std::move(spare.trainable);
    return true;
}

void Attempt::train_function() {
    restored_ = checkpoint() == nullptr;
    setting_.trainable->function(*this);
    if (end_error_) std::rethrow_exception(end_error_); // even if the function caught it
    // All ranks must have returned for the same reason: one that still reports fails together with these.
    if (!told_to_end_) group_->barrier();
}

/// Collective. Rank 0 reads the checkpoint, all load it.
void Attempt::restore(const std::function<void(study::StateSource&)>& load) {
    if (checkpoint() == nullptr) return;
    study::MemoryState state;
    if (assignment_.leads()) state = setting_.checkpoints->load(*checkpoint());
    broadcast_state(*group_, state);
    load(state);
}

/// Collective. Tells the head, and all ranks what it says.
Verb Attempt::finish_iteration(const trainables::Metrics& metrics) {
    watch_.stop();
    ++iteration_;
    port_.progressed();
    auto verb = static_cast<std::uint64_t>(Verb::go_on);
    if (assignment_.leads()) {
        RunnerReported report{iteration_, watch_.seconds(), {}};
        report.metrics.reserve(metrics.size());
        for (const auto& [name, value] : metrics) report.metrics.push_back({name, value});
        port_.reported(std::move(report));
        verb = static_cast<std::uint64_t>(port_.verdict_after(iteration_).verb);
    }
    if (group_->size() > 1)
        verb = group_->min_max(verb).second; // go_on is 0: the leader's word wins, in one reduction
    else if (port_.abort_flag().load())
        throw ddp::Aborted("the trial was told to give up");
    watch_.start();
    return static_cast<Verb>(verb);
}

/// Collective. After a verdict other than go_on.
void Attempt::end_with_checkpoint(Verb verb, const std::function<void(study::StateSink&)>& save_state) {
    outcome_ = verb == Verb::pause ? AttemptOutcome::paused : AttemptOutcome::stopped;
    if (!setting_.trainable->info.can_checkpoint || verb == Verb::discard) return;
    if (!save_state) {
        if (verb == Verb::stop) return;
        throw base::Error("the trial was to pause, but the training function never called checkpoints(save, load)");
    }
    save(save_state);
}

void Attempt::save(const std::function<void(study::StateSink&)>& save_state) {
    study::MemoryState state;
    save_state(state);
    const bool same = same_parameters(*group_, state);
    group_->part(); // that was the last operation: whatever happens now strands nobody
    if (!same)
        throw base::Error("the ranks of the trial hold different parameters at iteration " +
                          std::to_string(iteration_));
    if (!assignment_.leads()) return;
    const auto& start = assignment_.start;
    port_.saved(setting_.checkpoints->save({start.trial, iteration_, start.incarnation, start.attempt}, state));
}

bool Attempt::report(const trainables::Metrics& metrics) {
    if (setting_.trainable->factory)
        throw base::Error("TrialContext::report is for functions; a Trainable returns its metrics from step()");
    if (told_to_end_) return false;
    if (!restored_)
        throw base::Error("the trial goes on from a checkpoint: call checkpoints(save, load) before the first report");
    const Verb verb = finish_iteration(metrics);
    if (verb == Verb::go_on) return true;
    told_to_end_ = true;
    try {
        end_with_checkpoint(verb, save_);
    } catch (...) {
        end_error_ = std::current_exception();
        throw;
    }
    return false;
}

void Attempt::checkpoints(std::function<void(study::StateSink&)> save_state,
                          std::function<void(study::StateSource&)> load) {
    if (setting_.trainable->factory)
        throw base::Error("TrialContext::checkpoints is for functions; a Trainable has save() and load()");
    save_ = std::move(save_state);
    if (restored_) return;
    restore(load);
    restored_ = true;
}

} // namespace

RunnerEnded run_attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port, Spare& spare) {
    try {
        Attempt attempt(setting, assignment, port, spare);
        return attempt.run();
    } catch (...) { // the configuration could not even be put together
        return {AttemptOutcome::failed, what_is_flying(std::current_exception())};
    }
}

} // namespace ranktune::drivers
