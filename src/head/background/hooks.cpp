// SPDX-License-Identifier: Apache-2.0
#include "head/background/hooks.hpp"

#include <chrono>
#include <cstdio>

#include "process/command_output.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::head {
namespace {

/// Commands that may wait: trials of a millisecond end faster than any command runs.
constexpr std::size_t most_waiting = 1000;

std::string value_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string number_of(std::uint32_t value) { return std::to_string(value); }

void add_best(const tuner::Trial& trial, std::vector<std::pair<std::string, std::string>>& facts) {
    facts.emplace_back("RANKTUNE_BEST", trial.reported ? value_text(trial.best) : "");
    facts.emplace_back("RANKTUNE_CONFIGURATION", best_configuration(trial).text());
}

} // namespace

Hooks::Hooks(Observer* next, study::HookSpec spec, std::string study, std::string directory, process::Waker& waker,
             base::LogSink& log)
    : Observer(next),
      spec_(std::move(spec)),
      study_(std::move(study)),
      directory_(std::move(directory)),
      waker_(waker),
      log_(log),
      thread_([this] {
          run_all();
          return process::Background::when_asked;
      }) {}

Hooks::Facts Hooks::facts_of_trial(const tuner::Tuner& tuner, study::TrialId id) {
    const tuner::Trial& trial = tuner.state().trial(id);
    Facts facts{{"RANKTUNE_TRIAL", number_of(id.value())},
                {"RANKTUNE_STATE", std::string(study::name(trial.phase))},
                {"RANKTUNE_REASON", study::describe(trial.closed_by, trial.closed_a, trial.closed_b)},
                {"RANKTUNE_MESSAGE", base::gist(study::describe(trial.failure))},
                {"RANKTUNE_METRIC", tuner.spec().objective.metric},
                {"RANKTUNE_ITERATION", std::to_string(trial.iteration)}};
    add_best(trial, facts);
    return facts;
}

void Hooks::on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                       const HeadFigures& figures) {
    bool any = false;
    for (const study::Record& record : records) {
        if (spec_.on_trial_end.empty()) break;
        const auto* closed = std::get_if<study::TrialClosed>(&record);
        const auto* ended = std::get_if<study::AttemptEnded>(&record);
        if (closed != nullptr && tuner.state().trial(closed->trial).attempt.live) saving_.insert(closed->trial);
        const bool saved = ended != nullptr && saving_.erase(ended->trial) > 0;
        if (!saved && (closed == nullptr || saving_.contains(closed->trial))) continue;
        Facts facts = facts_of_trial(tuner, saved ? ended->trial : closed->trial);
        const std::lock_guard lock(mutex_);
        if (trials_.size() >= most_waiting)
            ++dropped_;
        else
            trials_.push_back(std::move(facts));
        any = true;
    }
    if (any) thread_.ask();
    Observer::on_records(tuner, records, figures);
}

std::optional<std::string> Hooks::note() {
    const std::lock_guard lock(mutex_);
    return std::exchange(note_, std::nullopt);
}

void Hooks::run(const std::string& key, const std::string& command, const Facts& facts) {
    std::vector<std::string> words{"env", "RANKTUNE_HOOK=" + key, "RANKTUNE_STUDY=" + study_,
                                   "RANKTUNE_STUDY_DIR=" + directory_};
    for (const auto& [name, value] : facts) words.push_back(name + "=" + value);
    words.insert(words.end(), {"sh", "-c", command});
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(spec_.timeout);
    const process::CommandOutput output = process::run_command(words, patience);
    if (output.ok()) return;
    std::string why = output.exit ? "exit code " + std::to_string(*output.exit) : "killed";
    if (!output.error.empty()) why += ": " + base::gist(output.error);
    log_.write(base::LogLevel::warning, "hook", {{"key", "hooks." + key}, {"command", command}, {"error", why}});
    if (++failures_ > 1) return; // the log has the others
    const std::lock_guard lock(mutex_);
    note_ = "hooks." + key + " failed (" + why + "); the study goes on without it, and the log names further failures";
    waker_.wake();
}

void Hooks::run_all() {
    while (true) {
        Facts facts;
        {
            const std::lock_guard lock(mutex_);
            if (trials_.empty()) break;
            if (process::Background::Clock::now() > until_) {
                dropped_ += trials_.size();
                return trials_.clear();
            }
            facts = std::move(trials_.front());
            trials_.pop_front();
        }
        run("on_trial_end", spec_.on_trial_end, facts);
    }
}

void Hooks::study_ended(const tuner::Tuner& tuner, study::StudyOutcome outcome, const std::string& reason) {
    {
        const std::lock_guard lock(mutex_);
        until_ = process::Background::Clock::now() + spec_.timeout;
    }
    thread_.stop();
    if (dropped_ > 0)
        log_.write(base::LogLevel::warning, "hook",
                   {{"key", "hooks.on_trial_end"},
                    {"left_out", std::to_string(dropped_)},
                    {"reason", "trials ended faster than the command runs"}});
    if (spec_.on_study_end.empty()) return;
    const tuner::State& state = tuner.state();
    Facts facts{{"RANKTUNE_EXIT", std::to_string(static_cast<int>(outcome))},
                {"RANKTUNE_REASON", base::gist(reason)},
                {"RANKTUNE_METRIC", tuner.spec().objective.metric},
                {"RANKTUNE_TRIALS", std::to_string(state.trials.size())},
                {"RANKTUNE_TRIAL", state.best ? number_of(state.best->value()) : ""}};
    if (state.best) add_best(state.trial(*state.best), facts);
    run("on_study_end", spec_.on_study_end, facts);
}

} // namespace ranktune::head
