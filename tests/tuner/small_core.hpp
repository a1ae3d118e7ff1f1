// SPDX-License-Identifier: Apache-2.0
#pragma once
// A core driven event by event, as a head would. After each event its invariants are checked, and a twin that only
// applies the records must reach the same state.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner::testing {

/// A study of four trials by `score`; `study` are more keys of [study], `more` follows the table of parameters. Without
/// a searcher there, configurations are random.
[[nodiscard]] inline std::string small_study(const std::string& study, const std::string& more) {
    const bool has_searcher = more.find("[searcher]") != std::string::npos;
    const bool has_trials = study.find("num_trials") != std::string::npos;
    return "[study]\nname = \"small\"\nmetric = \"score\"\nmode = \"max\"\nseed = 1\n" +
           std::string(has_trials ? "" : "num_trials = 4\n") + study + "\n[trainable]\nname = \"any\"\n" +
           (has_searcher ? "" : "[searcher]\ntype = \"random\"\n") + "[space]\nx = \"uniform(0, 1)\"\n" + more;
}

class SmallCore {
  public:
    explicit SmallCore(const std::string& text)
        : SmallCore(study::parse_study(text, "small.toml", {},
                                       ranktune::testing::known({ranktune::testing::any_trainable("any")}))) {}
    explicit SmallCore(study::StudySpec spec)
        : spec_(std::move(spec)), core_(std::make_unique<Tuner>(spec_)), twin_(std::make_unique<Tuner>(spec_)) {
        Output out;
        core_->create("uuid", study::resolved_toml(spec_), "test", out);
        take(out);
    }

    /// Before the first head.
    void warm_start(const study::WarmStarted& earlier) {
        Output out;
        core_->warm_start(earlier, out);
        take(out);
    }
    /// A start with another study file.
    void change(const std::string& resolved) {
        Output out;
        core_->change(resolved, "test", now_, out);
        take(out);
    }
    /// A new head with one worker on each of these hosts.
    void reopen(TrialId id) {
        Output out;
        core_->reopen(id, true, now_, out);
        take(out);
    }
    void began(const std::vector<std::string>& hosts, std::optional<study::JobDeath> death = {}) {
        study::Began began{incarnation_ = incarnation_.next(), {}, "2026-11-20T14:02:11Z", std::move(death)};
        for (std::uint32_t i = 0; i < hosts.size(); ++i) began.workers.push_back({Rank{i + 1}, hosts[i], 0});
        step(std::move(began));
    }
    void report(std::uint32_t trial, Iteration iteration, double value) {
        step(study::ReportArrived{
            TrialId{trial}, attempt(trial), incarnation_, iteration, 1.0 * iteration, {{"score", value}}});
    }
    void saved(std::uint32_t trial, Iteration iteration, std::optional<double> value = {}) {
        const std::string path = std::to_string(trial) + "/" + std::to_string(iteration);
        step(study::CheckpointSaved{TrialId{trial}, attempt(trial), incarnation_, {iteration, path, 10, 1, value}});
    }
    void over(std::uint32_t trial, AttemptOutcome outcome, const study::Failure& failure = {}) {
        step(study::AttemptOver{TrialId{trial}, attempt(trial), incarnation_, outcome, failure});
    }
    /// As the head's background thread does.
    void answer_tickets() {
        for (const auto& ticket : std::vector<Ticket>(state().tickets.open()))
            if (!ticket.answered)
                step(study::Prepared{ticket.number, (*core_->preparation(ticket.number))().configuration, ""});
    }
    void gone(std::uint32_t rank, bool guilty = false, const std::string& why = "silent") {
        step(study::RankGone{Rank{rank}, why, guilty});
    }
    void step(study::EventBody body) {
        now_ += std::chrono::seconds(1);
        step_at(now_, std::move(body));
    }
    void step_at(StudyTime at, study::EventBody body) {
        now_ = at;
        const study::Event event{at, std::move(body)};
        Output out;
        core_->step(event, out);
        if (seen) seen(event, out, twin_->state());
        take(out);
    }

    [[nodiscard]] const Tuner& core() const { return *core_; }
    [[nodiscard]] const State& state() const { return core_->state(); }
    [[nodiscard]] const Trial& trial(std::uint32_t id) const { return state().trial(TrialId{id}); }
    [[nodiscard]] AttemptId attempt(std::uint32_t trial) const { return state().trial(TrialId{trial}).attempt.id; }
    [[nodiscard]] Incarnation incarnation() const { return incarnation_; }
    [[nodiscard]] StudyTime now() const { return now_; }
    /// Of the last event.
    [[nodiscard]] const std::vector<study::Record>& records() const { return last_.records; }
    [[nodiscard]] const std::vector<study::Command>& commands() const { return last_.commands; }
    /// The first record of this kind that the last event led to; null: none.
    template <class T>
    [[nodiscard]] const T* record() const {
        const auto found = std::find_if(last_.records.begin(), last_.records.end(),
                                        [](const study::Record& record) { return std::holds_alternative<T>(record); });
        return found == last_.records.end() ? nullptr : &std::get<T>(*found);
    }

    /// Called after each event with its output and with the state before it.
    std::function<void(const study::Event&, const Output&, const State& before)> seen;

  private:
    void take(Output& out) {
        for (const auto& record : out.records) twin_->apply(record);
        core_->check_invariants();
        REQUIRE(twin_->digest() == core_->digest());
        last_ = std::move(out);
    }

    study::StudySpec spec_;
    std::unique_ptr<Tuner> core_;
    std::unique_ptr<Tuner> twin_;
    Output last_;
    Incarnation incarnation_;
    StudyTime now_{};
};

} // namespace ranktune::tuner::testing
