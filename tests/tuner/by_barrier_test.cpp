// SPDX-License-Identifier: Apache-2.0
// Asynchronous studies with a synchronous scheduler: reports at a barrier wait for each other. Here every even
// iteration is a barrier, and its reports are judged in the order 2, 1, 0, ...: neither as they arrive, nor by number.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "admission_snapshot.hpp"
#include "tuner/admission/by_barrier.hpp"
#include "tuner/values.hpp"

namespace ranktune::tuner::by_barrier_test {
namespace {

using testing::broken;
using testing::in_phase;
using Numbers = std::vector<std::uint32_t>;

class HighestFirst final : public schedulers::Scheduler {
  public:
    [[nodiscard]] bool synchronous() const override { return true; }
    [[nodiscard]] bool is_barrier(TrialId, Iteration iteration) const override { return iteration % 2 == 0; }
    [[nodiscard]] std::optional<TrialId> next_verdict(Iteration barrier) const override {
        for (auto at = held_.rbegin(); at != held_.rend(); ++at)
            if (at->first == barrier) return at->second;
        return {};
    }
    void apply(const study::Record& record) override {
        if (const auto* early = std::get_if<study::ReportHeld>(&record)) held_.emplace(early->iteration, early->trial);
        if (const auto* report = std::get_if<study::Reported>(&record)) held_.erase({report->iteration, report->trial});
    }
    [[nodiscard]] std::string_view name() const override { return "test"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report&, bool) const override { return {}; }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool&) const override { return schedulers::NothingLeft{}; }
    [[nodiscard]] Iteration next_decision_point(TrialId, Iteration current) const override { return current + 1; }
    void snapshot(study::Encoder&) const override {}
    void restore(study::Decoder&) override {}
    [[nodiscard]] bool pauses() const override { return false; }

  private:
    std::set<std::pair<Iteration, TrialId>> held_;
};

/// Trials that train on a rank each. Changes them as the core does before it lets the strategy apply a record. What may
/// take effect does, at once.
class Scene {
  public:
    explicit Scene(std::uint32_t trials) {
        placement_.begin(testing::workers_on(std::vector<std::string>(trials, "a")));
        for (std::uint32_t i = 0; i < trials; ++i) {
            trials_->add(in_phase(TrialPhase::running));
            trials_->at(TrialId{i}).attempt.ranks = {Rank{i + 1}};
            apply(study::TrialStarted{TrialId{i}, AttemptId{1}, {}, {Rank{i + 1}}, Fresh{}});
        }
    }

    [[nodiscard]] const ByBarrier& admission() const { return *admission_; }
    [[nodiscard]] Trial& trial(std::uint32_t id) { return trials_->at(TrialId{id}); }
    /// Like set_phase of the core, without a record: damage.
    void damage(std::uint32_t id, TrialPhase phase) { trials_->set_phase(TrialId{id}, phase); }
    /// "0@1 1@1": what has taken effect since the last call.
    [[nodiscard]] std::string news() { return std::exchange(log_, {}); }

    void report(std::uint32_t id, Iteration iteration) {
        const TrialId trial{id};
        const Standing standing = admission_->standing(trial, iteration);
        REQUIRE((standing == Standing::next || standing == Standing::early));
        trials_->at(trial).attempt.iteration = iteration;
        if (standing == Standing::next)
            admit({trial, AttemptId{1}, iteration, 0.0, {}});
        else
            apply(study::ReportHeld{trial, AttemptId{1}, {}, iteration, 0.0, {}});
    }
    void ended(std::uint32_t id, AttemptOutcome outcome, TrialPhase left, bool retry = false) {
        trials_->end_attempt(TrialId{id});
        trials_->set_phase(TrialId{id}, left);
        if (!retry && ends_trial(outcome)) admission_->end({TrialId{id}, outcome, {}});
        apply(study::AttemptEnded{TrialId{id}, AttemptId{1}, {}, outcome, retry, {}});
    }
    void start(std::uint32_t id) {
        const study::TrialStarted started{TrialId{id}, AttemptId{2}, {}, trial(id).attempt.ranks, Fresh{}};
        trials_->begin_attempt(started, trial(id).attempt.iteration);
        apply(started);
    }
    void ask_to_yield(std::uint32_t id) { apply(study::YieldAsked{TrialId{id}, {}}); }
    void drain(Reason reason) { apply(study::DrainBegan{{}, reason, {}, Asker::none}); }

    [[nodiscard]] study::Bytes snapshot() const { return testing::snapshot_of(*trials_, *admission_); }
    /// Replaces trials and strategy by what these bytes keep.
    void restore(const study::Bytes& bytes) {
        auto trials = std::make_unique<Trials>();
        auto admission = std::make_unique<ByBarrier>(*trials, placement_, scheduler_);
        testing::restore_from(bytes, *trials, *admission);
        admission_ = std::move(admission);
        trials_ = std::move(trials);
        admission_->check_invariants();
        REQUIRE(snapshot() == bytes);
    }

  private:
    void apply(const study::Record& record) {
        scheduler_.apply(record);
        admission_->apply(record);
        while (const auto fact = admission_->next()) {
            if (const auto* report = std::get_if<ReportFact>(&*fact))
                admit(*report);
            else
                close(std::get<EndFact>(*fact));
        }
        admission_->check_invariants();
    }
    void admit(const ReportFact& fact) {
        log_ += (log_.empty() ? "" : " ") + std::to_string(fact.trial.value()) + "@" + std::to_string(fact.iteration);
        Trial& t = trials_->at(fact.trial);
        t.iteration = fact.iteration;
        if (t.phase == TrialPhase::paused) trials_->set_phase(fact.trial, TrialPhase::waiting);
        apply(study::Reported{fact.trial, fact.attempt, {}, fact.iteration, 0.0, {}, {}});
    }
    void close(const EndFact& fact) {
        log_ += (log_.empty() ? "#" : " #") + std::to_string(fact.trial.value());
        trials_->set_phase(fact.trial, TrialPhase::failed);
        apply(study::TrialClosed{fact.trial, {}, TrialPhase::failed, Reason::exception, 0, 0, {}});
    }

    HighestFirst scheduler_;
    Placement placement_;
    std::unique_ptr<Trials> trials_ = std::make_unique<Trials>();
    std::unique_ptr<ByBarrier> admission_ = std::make_unique<ByBarrier>(*trials_, placement_, scheduler_);
    std::string log_;
};

/// Up to barrier 2 and beyond it, restored from a snapshot after each report or not.
std::string played(bool restores) {
    Scene s(3);
    std::string log;
    const std::vector<std::pair<std::uint32_t, Iteration>> reports = {{0, 1}, {0, 2}, {2, 1}, {1, 1}, {1, 2},
                                                                      {2, 2}, {2, 3}, {2, 4}, {1, 3}, {0, 3}};
    for (const auto& [trial, iteration] : reports) {
        s.report(trial, iteration);
        if (restores) s.restore(s.snapshot());
        if (const std::string news = s.news(); !news.empty()) log += (log.empty() ? "" : " ") + news;
    }
    return log;
}

} // namespace

TEST_CASE("Reports at a barrier take effect when all have got there, in the order that the scheduler says", "[tuner]") {
    Scene s(3);
    s.report(0, 1); // no barrier
    CHECK(s.news() == "0@1");
    CHECK(s.admission().standing(TrialId{0}, 2) == Standing::early);
    s.report(0, 2);
    s.report(2, 2);
    CHECK(s.news().empty());
    CHECK(s.admission().at_barrier(TrialId{0}));
    CHECK(s.admission().is_parked(TrialId{0}));
    CHECK_FALSE(s.admission().at_barrier(TrialId{1}));
    REQUIRE(s.admission().held(TrialId{0})->size() == 1);
    CHECK(s.admission().held(TrialId{1})->empty());
    s.report(1, 2);
    CHECK(s.news() == "2@2 1@2 0@2");
    CHECK_FALSE(s.admission().is_parked(TrialId{0}));
    s.report(2, 4);
    CHECK(s.news().empty()); // the next barrier
}

TEST_CASE("A barrier does not wait for a trial that was lost on its way, whose report then comes late", "[tuner]") {
    Scene s(3);
    s.report(0, 2);
    s.report(1, 2);
    s.ended(2, AttemptOutcome::lost, TrialPhase::waiting, true);
    CHECK(s.news() == "1@2 0@2");
    s.start(2);
    CHECK(s.admission().standing(TrialId{2}, 2) == Standing::next);
    s.report(2, 2);
    CHECK(s.news() == "2@2");
    s.report(0, 4);
    s.report(1, 4);
    CHECK(s.news().empty()); // it is waited for again
}

TEST_CASE("A barrier does not wait for a trial that failed, or that wants more ranks than there are", "[tuner]") {
    Scene s(3);
    s.trial(1).wanted_ranks = 4;
    s.report(0, 2);
    s.ended(1, AttemptOutcome::failed, TrialPhase::waiting, true);
    CHECK(s.news().empty()); // trial 2 is on its way
    s.ended(2, AttemptOutcome::failed, TrialPhase::waiting);
    CHECK(s.news() == "#2 0@2");
}

TEST_CASE("A trial at a barrier gives its ranks to one in line, and goes on after its verdict", "[tuner]") {
    Scene s(2);
    s.report(1, 2);
    CHECK_FALSE(s.admission().surplus(0, false)); // nobody wants its rank
    s.ended(0, AttemptOutcome::failed, TrialPhase::waiting, true);
    CHECK(s.admission().surplus(0, false) == TrialId{1});
    CHECK_FALSE(s.admission().surplus(1, false)); // there is a free one
    CHECK(s.admission().to_yield({}, 1, 0) == TrialId{1});
    s.ask_to_yield(1);
    CHECK(s.admission().is_leaving(TrialId{1}));
    CHECK_FALSE(s.admission().surplus(0, false));
    CHECK_FALSE(s.admission().to_yield({}, 1, 0)); // its rank comes back
    s.restore(s.snapshot());
    CHECK(s.admission().is_leaving(TrialId{1}));
    s.ended(1, AttemptOutcome::paused, TrialPhase::paused);
    CHECK_FALSE(s.admission().is_leaving(TrialId{1}));
    CHECK(s.admission().at_barrier(TrialId{1}));
    CHECK_FALSE(s.admission().is_parked(TrialId{1}));
    s.start(0);
    s.report(0, 2);
    CHECK(s.news() == "1@2 0@2");
    CHECK(s.admission().wants_ranks(TrialId{1}));
}

TEST_CASE("A drain leaves reports at their barrier for the next start, unless the study has no more time", "[tuner]") {
    Scene s(3);
    s.report(1, 2);
    s.report(0, 2);
    s.drain(Reason::draining);
    s.ended(2, AttemptOutcome::paused, TrialPhase::paused);
    CHECK(s.news().empty());
    s.drain(Reason::study_time);
    CHECK(s.news() == "0@2 1@2"); // by number: nothing is left to choose
}

TEST_CASE("A snapshot keeps what waits at a barrier", "[tuner]") {
    CHECK(played(false) == "0@1 2@1 1@1 2@2 1@2 0@2 2@3 1@3 0@3");
    CHECK(played(true) == played(false));
}

TEST_CASE("A snapshot with reports of trials that were never created is refused", "[tuner]") {
    Scene s(2);
    s.report(1, 2);
    study::Bytes bytes;
    study::Encoder out(bytes);
    s.admission().snapshot(out);
    const Trials none;
    const Placement placement;
    const HighestFirst scheduler;
    ByBarrier other(none, placement, scheduler);
    study::Decoder in(bytes);
    CHECK(ranktune::testing::error_of<base::FormatError>([&] { other.restore(in); }) ==
          "a barrier holds a trial that was never created");
}

TEST_CASE("Invariants detect damage at a barrier", "[tuner]") {
    Scene s(2);
    s.report(1, 2);
    CHECK(broken(s.admission()).empty());
    s.damage(1, TrialPhase::waiting);
    CHECK(broken(s.admission()) == "trial #1 waits at a barrier but is waiting");
    s.damage(1, TrialPhase::paused);
    CHECK(broken(s.admission()) == "trial #1 and the lists of those on their way to the barrier disagree");
    s.damage(1, TrialPhase::running);
    s.damage(0, TrialPhase::paused);
    CHECK(broken(s.admission()) == "trial #0 and the lists of those on their way to the barrier disagree");
    s.damage(0, TrialPhase::running);
    CHECK(broken(s.admission()).empty());
    s.ask_to_yield(1);
    std::vector<Rank> more = s.trial(1).attempt.ranks;
    more.push_back(Rank{2});
    s.trial(1).attempt.ranks = more;
    CHECK(broken(s.admission()) == "the number of ranks that come back is off");
}

} // namespace ranktune::tuner::by_barrier_test
