// SPDX-License-Identifier: Apache-2.0
#include "drivers/group/attempt.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "drivers/group/checkpoint_error.hpp"
#include "drivers/group/disturbed_error.hpp"
#include "drivers/group/group_collective.hpp"
#include "drivers/group/objective_value.hpp"
#include "drivers/group/stopwatch.hpp"
#include "drivers/group/trial_checkpoints.hpp"
#include "drivers/program/program_trial.hpp"
#include "drivers/set_up_error.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::drivers {
namespace {

using study::AttemptOutcome;
using study::Verb;
using Clock = Stopwatch::Clock;

space::Configuration merged(const study::StartTrial& start, const study::StudySpec& spec) {
    space::Configuration all = start.configuration;
    for (const auto& option : spec.trainable.options.entries()) all.set(option.name, option.value);
    return all;
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

AttemptOutcome outcome_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const CheckpointError& known) {
        return known.outcome();
    } catch (const SetUpError&) {
        return AttemptOutcome::unstarted;
    } catch (const DisturbedError&) {
        return AttemptOutcome::disturbed;
    } catch (const std::bad_alloc&) {
        return AttemptOutcome::disturbed;
    } catch (const std::system_error&) { // std::ios_base::failure and std::filesystem::filesystem_error among them
        return AttemptOutcome::disturbed;
    } catch (const base::IoError&) {
        return AttemptOutcome::disturbed;
    } catch (...) {
        return AttemptOutcome::failed;
    }
}

/// What the leader says to its group after an iteration, in one number: a verb, and what to do before going on.
constexpr std::uint64_t verb_bits = 3;
static_assert(static_cast<std::uint64_t>(Verb::discard) <= verb_bits);
constexpr std::uint64_t without_state_bit = 16; ///< pauses without a checkpoint, and starts from the beginning later
static_assert((verb_bits & (TrialCheckpoints::compare_bit | TrialCheckpoints::take_bit)) == 0);
static_assert((without_state_bit & (verb_bits | TrialCheckpoints::compare_bit | TrialCheckpoints::take_bit)) == 0);

/// While it lives, user code waits for the head, itself or through its leader.
class Waiting {
  public:
    explicit Waiting(AttemptPort& port) : port_(port) { port_.waits(true); }
    ~Waiting() { port_.waits(false); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

  private:
    AttemptPort& port_;
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
          iteration_(assignment.start.iteration),
          watch_(assignment.start.seconds),
          checkpoints_(setting, assignment, port, iteration_) {}

    RunnerEnded run();
    /// What the trainable has not looked at of its configuration, if it may take any key. What decides about ranks or
    /// other parameters has been of use all the same.
    [[nodiscard]] std::vector<std::string> unread() const;

    // ---- TrialContext ----
    [[nodiscard]] base::TrialId trial() const override { return assignment_.start.trial; }
    [[nodiscard]] std::uint64_t seed() const override { return setting_.spec->seed; }
    [[nodiscard]] const space::Configuration& configuration() const override { return configuration_; }
    [[nodiscard]] base::Iteration max_iterations() const override { return setting_.spec->max_iterations; }
    [[nodiscard]] base::Iteration iteration() const override { return iteration_; }
    [[nodiscard]] int cpus_per_rank() const override {
        return static_cast<int>(setting_.spec->resources.cpus_per_rank);
    }
    [[nodiscard]] std::vector<std::string> devices() const override { return setting_.devices.devices; }
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
    void watch();
    void train_class();
    [[nodiscard]] bool take_over_spare();
    void train_function();
    void train_program();
    void restore(const std::function<void(study::StateSource&)>& load);
    using SaveState = std::function<void(study::StateSink&)>;
    [[nodiscard]] Verb finish_iteration(const trainables::Metrics& metrics, const SaveState& save_state);
    [[nodiscard]] std::uint64_t verdict_for_all(const trainables::Metrics& metrics, bool can_save);
    [[nodiscard]] std::uint64_t leaders_word(const trainables::Metrics& metrics, bool can_save);
    [[nodiscard]] bool may_pause_without_state(const study::Verdict& pause) const;
    void end_with_checkpoint(Verb verb, const SaveState& save_state);
    [[nodiscard]] const study::CheckpointRef* checkpoint() const {
        return study::checkpoint_of(assignment_.start.from);
    }

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    AttemptPort& port_;
    Spare& spare_;
    using Looks = std::vector<std::atomic<bool>>; ///< one per entry of configuration_: any thread of the trial may look
    space::Configuration configuration_;
    std::shared_ptr<Looks> looks_; ///< null: not watched
    base::Iteration iteration_;
    Stopwatch watch_;
    std::optional<double> value_; ///< the objective after the last iteration
    std::unique_ptr<GroupCollective> group_;
    TrialCheckpoints checkpoints_;                     // after group_: destroyed before it
    std::unique_ptr<trainables::Trainable> trainable_; // the same
    std::vector<std::size_t> owed_;
    AttemptOutcome outcome_ = AttemptOutcome::finished;
    // function form
    std::function<void(study::StateSink&)> save_;
    bool restored_ = false;
    bool told_to_end_ = false;
    bool pauses_without_state_ = false;
    std::exception_ptr end_error_;
};

RunnerEnded Attempt::run() {
    RunnerEnded ended = form_and_train();
    checkpoints_.close(port_.abort_flag().load());
    if (port_.abort_flag().load()) ended = {AttemptOutcome::lost, ""};
    ended.unread = unread();
    return ended;
}

void Attempt::watch() {
    looks_ = std::make_shared<Looks>(configuration_.size());
    configuration_.watch([looks = looks_](std::size_t i) { (*looks)[i].store(true, std::memory_order_relaxed); });
}

std::vector<std::string> Attempt::unread() const {
    if (!looks_) return {};
    const std::vector<bool> looked(looks_->begin(), looks_->end()); // before this function looks itself
    std::vector<std::string> names;
    for (std::size_t i = 0; i < looked.size(); ++i)
        if (!looked[i]) names.push_back(configuration_.entries()[i].name);
    const study::StudySpec& spec = *setting_.spec;
    const auto used_otherwise = [&spec](const std::string& name) {
        const auto decides = [&name](const space::Parameter& parameter) {
            if (!parameter.condition) return false;
            const auto& mentioned = parameter.condition->names();
            return std::find(mentioned.begin(), mentioned.end(), name) != mentioned.end();
        };
        const auto& parameters = spec.space.parameters();
        return name == spec.resources.ranks_parameter || std::any_of(parameters.begin(), parameters.end(), decides);
    };
    std::erase_if(names, used_otherwise);
    return names;
}

RunnerEnded Attempt::form_and_train() {
    if (port_.abort_flag().load()) return {AttemptOutcome::lost, ""};
    try {
        group_ = std::make_unique<GroupCollective>(setting_.form(assignment_, port_.abort_flag()), port_);
        checkpoints_.join(*group_);
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
    const AttemptOutcome outcome = outcome_of(error);
    try {
        group_->fail(owed_);
    } catch (...) { // Aborted, or the other ranks parted on their own: either way nobody waits for this rank
        if (port_.abort_flag().load()) return {AttemptOutcome::lost, ""};
    }
    return {outcome, std::move(message)};
}

void Attempt::train() {
    const bool any_option = !setting_.spec->trainable.program && setting_.trainable->info.any_option;
    if (any_option && assignment_.leads() && checkpoint() == nullptr) watch();
    port_.progressed();
    watch_.start();
    if (setting_.spec->trainable.program)
        train_program();
    else if (setting_.trainable->factory)
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
    const SaveState save_state = [this](study::StateSink& sink) { trainable_->save(sink); };
    while (verb == Verb::go_on) {
        const auto metrics = trainable_->step(*this);
        verb = finish_iteration(metrics, save_state);
    }
    end_with_checkpoint(verb, save_state);
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

void Attempt::train_program() {
    ProgramTrial program(setting_, assignment_, configuration_, *group_, port_, watch_);
    outcome_ = program.run();
}

/// Collective.
void Attempt::restore(const std::function<void(study::StateSource&)>& load) {
    if (checkpoint() != nullptr) checkpoints_.restore(*checkpoint(), load);
}

/// Collective. Tells the head, and all ranks what it says; checkpoints on the way.
Verb Attempt::finish_iteration(const trainables::Metrics& metrics, const SaveState& save_state) {
    watch_.stop();
    ++iteration_;
    port_.progressed();
    const bool can_save = setting_.trainable->info.can_checkpoint && save_state;
    const std::uint64_t word = verdict_for_all(metrics, can_save);
    const auto verb = static_cast<Verb>(word & verb_bits);
    pauses_without_state_ = (word & without_state_bit) != 0;
    value_ = objective_value(metrics, setting_.spec->objective);
    checkpoints_.settle(word, verb == Verb::go_on);
    watch_.start();
    if ((word & TrialCheckpoints::take_bit) != 0) checkpoints_.take(iteration_, watch_.seconds(), value_, save_state);
    return verb;
}

/// Collective. The leader waits for the head, the others for the leader. (Not all of them at once: a reduction that
/// does not come to its end hangs on the leader.)
std::uint64_t Attempt::verdict_for_all(const trainables::Metrics& metrics, bool can_save) {
    if (!assignment_.leads()) {
        const Waiting waiting(port_);
        return group_->min_max(0).second; // the leader's word wins
    }
    const std::uint64_t word = leaders_word(metrics, can_save);
    if (group_->size() > 1) return group_->min_max(word).second;
    if (port_.abort_flag().load()) throw ddp::Aborted("the trial was told to give up");
    return word;
}

std::uint64_t Attempt::leaders_word(const trainables::Metrics& metrics, bool can_save) {
    RunnerReported report{iteration_, watch_.seconds(), {}};
    report.metrics.reserve(metrics.size());
    for (const auto& [name, value] : metrics) report.metrics.push_back({name, value});
    const study::Verdict verdict = [&] {
        const Waiting waiting(port_);
        port_.reported(std::move(report));
        return port_.verdict_after(iteration_);
    }();
    // Who lends its ranks and has no way to save starts from scratch later: that is no failure.
    const bool unsaved = verdict.reason == study::Reason::yielded && !can_save;
    const Verb verb = unsaved ? Verb::discard : verdict.verb;
    const bool without_state = verb == Verb::pause && !can_save && may_pause_without_state(verdict);
    return static_cast<std::uint64_t>(verb) | (without_state ? without_state_bit : 0) |
           checkpoints_.plan(iteration_, watch_.seconds(), verdict, can_save);
}

bool Attempt::may_pause_without_state(const study::Verdict& pause) const {
    return goes_on_later(pause) || setting_.spec->scheduler.restart_paused;
}

/// Collective. After a verdict other than go_on.
void Attempt::end_with_checkpoint(Verb verb, const SaveState& save_state) {
    outcome_ = verb == Verb::pause ? AttemptOutcome::paused : AttemptOutcome::stopped;
    if (!setting_.trainable->info.can_checkpoint || verb == Verb::discard || pauses_without_state_) return;
    if (!save_state) {
        if (verb == Verb::stop) return;
        throw CheckpointError(
            AttemptOutcome::stateless,
            without_state_text(iteration_,
                               "the training function never called checkpoints(save, load): call it before "
                               "the first report; or say can_checkpoint = false in its TrainableInfo",
                               setting_.spec->scheduler));
    }
    checkpoints_.save_last(iteration_, value_, save_state);
}

bool Attempt::report(const trainables::Metrics& metrics) {
    if (setting_.trainable->factory)
        throw base::Error("TrialContext::report is for functions; a Trainable returns its metrics from step()");
    if (told_to_end_) return false;
    if (!restored_)
        throw base::Error("the trial goes on from a checkpoint: call checkpoints(save, load) before the first report");
    const Verb verb = finish_iteration(metrics, save_);
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
