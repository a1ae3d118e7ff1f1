// SPDX-License-Identifier: Apache-2.0
// The contract, for every scheduler of the library; and that a scheduler that breaks it is found out.
#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/testing/contract.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"
#include "support/toy_algorithms.hpp"
#include "testing/scheduler_world.hpp"

namespace scheduler_contract_test {

using namespace ranktune;
using ranktune::testing::Settings;

namespace {

/// Beside those that the suite finds by itself.
std::vector<Settings> more_settings(const std::string& name) {
    if (name == "asha")
        return {{{"eta", 2}, {"brackets", 5}, {"finish_top", 3}},
                {{"eta", 2}, {"brackets", 3}, {"allotment", "budget"}, {"delayed", true}},
                {{"variant", "stop"}, {"eta", 2}, {"brackets", 3}, {"allotment", "budget"}},
                {{"variant", "stop"}, {"eta", 2}, {"first_rung", 2}, {"brackets", 3}},
                // The last brackets have no rungs.
                {{"variant", "stop"},
                 {"rule", "ray"},
                 {"eta", 1.5},
                 {"first_rung", 0.7},
                 {"brackets", 12},
                 {"stop_last_trials", false}}};
    if (name == "median") return {{{"grace", 2.5}}, {{"grace", 0}, {"min_samples", 1}, {"hard_stop", false}}};
    return {};
}

study::StudySpec small_study(study::SchedulerSpec scheduler) {
    study::StudySpec spec;
    spec.objective.metric = "score";
    spec.max_iterations = 20;
    spec.seed = 3;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = std::move(scheduler);
    return spec;
}

enum class Fault { none, forgets, answers_anew, pauses, ends_late, throws, takes_anything, name, synchronous };

/// Stops every second trial at iteration 2; right but for its fault.
class Alternating final : public schedulers::Scheduler {
  public:
    Alternating(base::Iteration ceiling, Fault fault) : ceiling_(ceiling), fault_(fault) {}

    [[nodiscard]] std::string_view name() const override { return fault_ == Fault::name ? "other" : "alternating"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report& report, bool) const override {
        if (fault_ == Fault::answers_anew) ++asked_;
        if (fault_ == Fault::throws && report.is_nan) throw std::runtime_error("no number");
        if (report.iteration >= ceiling_)
            return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_)};
        const bool second = (stopped_ + asked_) % 2 == 1;
        if (report.iteration != 2 || !second) return {study::Verb::go_on, study::Reason::none};
        return {fault_ == Fault::pauses ? study::Verb::pause : study::Verb::stop, study::Reason::not_in_top, 2.0, 1.0};
    }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool& pool) const override {
        return pool.can_create ? schedulers::Work(schedulers::Create{}) : schedulers::NothingLeft{};
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override {
        return fault_ == Fault::ends_late ? current : current + 1;
    }
    void apply(const study::Record& record) override {
        const auto* report = std::get_if<study::Reported>(&record);
        if (report != nullptr && report->iteration == 2) ++stopped_;
    }
    void snapshot(study::Encoder& out) const override {
        out.u8(1);
        if (fault_ != Fault::forgets) out.varint(stopped_);
    }
    void restore(study::Decoder& in) override {
        if (in.u8() != 1 && fault_ != Fault::takes_anything) throw base::FormatError("another version");
        if (fault_ != Fault::forgets) stopped_ = in.varint();
    }
    [[nodiscard]] bool pauses() const override { return false; }
    [[nodiscard]] bool synchronous() const override { return fault_ == Fault::synchronous; }

  private:
    base::Iteration ceiling_;
    Fault fault_;
    std::uint64_t stopped_ = 0;
    mutable std::uint64_t asked_ = 0;
};

study::SchedulerInfo alternating(Fault fault) {
    study::SchedulerInfo info;
    info.name = "alternating";
    info.description = "every second trial stops at iteration 2.";
    info.make = [fault](const study::StudySpec& study) {
        return std::make_unique<Alternating>(study.max_iterations, fault);
    };
    return info;
}

/// The toy population, right but for what it exploits.
class Population final : public schedulers::Scheduler {
  public:
    enum class Fault { none, denies, itself, outside, answers_anew };
    Population(base::Iteration ceiling, Fault fault) : toy_(4, 2, ceiling), fault_(fault) {}

    [[nodiscard]] std::string_view name() const override { return "toy"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report& report, bool contended) const override {
        return toy_.decide(report, contended);
    }
    [[nodiscard]] schedulers::Exploit exploit(const schedulers::Report& report) const override {
        schedulers::Exploit exploit = toy_.exploit(report);
        if (fault_ == Fault::itself) exploit.donor = report.trial;
        if (fault_ == Fault::outside) exploit.configuration.set("lr", 2.0);
        if (fault_ == Fault::answers_anew) exploit.configuration.set("lr", 0.5 / ++asked_);
        return exploit;
    }
    [[nodiscard]] bool exploits() const override { return fault_ != Fault::denies; }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool& pool) const override { return toy_.next(pool); }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override {
        return toy_.next_decision_point(trial, current);
    }
    void apply(const study::Record& record) override { toy_.apply(record); }
    void snapshot(study::Encoder& out) const override { toy_.snapshot(out); }
    void restore(study::Decoder& in) override { toy_.restore(in); }
    [[nodiscard]] bool pauses() const override { return false; }

  private:
    ranktune::testing::ToyPopulation toy_;
    Fault fault_;
    mutable int asked_ = 0;
};

study::SchedulerInfo population(Population::Fault fault = Population::Fault::none) {
    study::SchedulerInfo info;
    info.name = "toy";
    info.description = "trials take better ones over.";
    info.needs_checkpoints = study::CheckpointNeed{};
    info.make = [fault](const study::StudySpec& study) {
        return std::make_unique<Population>(study.max_iterations, fault);
    };
    return info;
}

/// Pauses every trial at iteration 2, and promotes those that are paused, the first one first.
class Pausing final : public schedulers::Scheduler {
  public:
    Pausing(base::Iteration ceiling, bool waits) : ceiling_(ceiling), waits_(waits) {}

    [[nodiscard]] std::string_view name() const override { return "pausing"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report& report, bool) const override {
        if (report.iteration >= ceiling_)
            return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_)};
        const bool pauses = report.iteration >= 2 && phases_.at(report.trial.value()) != Phase::promoted;
        return pauses ? study::Verdict{study::Verb::pause, study::Reason::scheduler_limit} : study::Verdict{};
    }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool& pool) const override {
        const auto paused = std::ranges::find(phases_, Phase::paused);
        if (paused != phases_.end())
            return schedulers::Promotion{base::TrialId(static_cast<std::uint32_t>(paused - phases_.begin())), 2,
                                         ceiling_};
        return pool.can_create ? schedulers::Work(schedulers::Create{}) : schedulers::NothingLeft{};
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override {
        return current + 1;
    }
    void apply(const study::Record& record) override {
        if (std::holds_alternative<study::TrialCreated>(record)) {
            phases_.push_back(Phase::training);
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            if (report->verdict.reason != study::Reason::scheduler_limit) return;
            phases_.at(report->trial.value()) = waits_ ? Phase::told : Phase::paused;
        } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
            if (phases_.at(ended->trial.value()) == Phase::told) phases_.at(ended->trial.value()) = Phase::paused;
        } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
            std::ranges::replace(phases_, Phase::told, Phase::paused);
        } else if (const auto* promoted = std::get_if<study::TrialPromoted>(&record)) {
            phases_.at(promoted->trial.value()) = Phase::promoted;
        } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
            phases_.at(closed->trial.value()) = Phase::closed;
        }
    }
    void snapshot(study::Encoder& out) const override {
        out.u8(1);
        out.varint(phases_.size());
        for (const Phase phase : phases_) out.u8(static_cast<std::uint8_t>(phase));
    }
    void restore(study::Decoder& in) override {
        if (in.u8() != 1) throw base::FormatError("another version");
        phases_.resize(in.count());
        for (Phase& phase : phases_) {
            phase = static_cast<Phase>(in.u8());
            if (phase > Phase::closed) throw base::FormatError("no such phase");
        }
    }
    [[nodiscard]] bool pauses() const override { return true; }

  private:
    enum class Phase : std::uint8_t { training, told, paused, promoted, closed };
    base::Iteration ceiling_;
    bool waits_;
    std::vector<Phase> phases_;
};

/// `waits`: it promotes a trial only when its attempt is over.
study::SchedulerInfo pausing(bool waits) {
    study::SchedulerInfo info;
    info.name = "pausing";
    info.description = "every trial pauses once.";
    info.needs_checkpoints = study::CheckpointNeed{};
    info.make = [waits](const study::StudySpec& study) {
        return std::make_unique<Pausing>(study.max_iterations, waits);
    };
    return info;
}

/// The rules that it breaks, in one string.
std::string broken(const study::SchedulerInfo& info) {
    std::string all;
    for (const std::string& rule : ranktune::testing::check_scheduler(info)) all += rule + "\n";
    return all;
}

} // namespace

TEST_CASE("every scheduler keeps the contract", "[schedulers][contract]") {
    for (const auto& scheduler : schedulers::built_in()) {
        INFO(scheduler->name);
        CHECK(ranktune::testing::check_scheduler(*scheduler, more_settings(scheduler->name)) ==
              std::vector<std::string>{});
    }
}

TEST_CASE("whatever all trials report, a scheduler of the library trains one of them to the ceiling",
          "[schedulers][contract]") {
    using ranktune::testing::WorldOptions;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto reached = [](const study::SchedulerSpec& scheduler, study::Mode mode, auto value) {
        WorldOptions options;
        options.loss = options.failure = options.stopper = options.drain = options.restart = 0.0;
        options.checked = false;
        options.value = [value](base::TrialId trial, base::Iteration, base::RngStream&) {
            return value(trial.value());
        };
        study::StudySpec spec = small_study(scheduler);
        spec.objective.mode = mode;
        ranktune::testing::World world(spec, options);
        world.run();
        return world.reached_ceiling();
    };
    for (const auto& info : schedulers::built_in()) {
        auto all = ranktune::testing::settings_of(*info);
        for (const Settings& more : more_settings(info->name)) all.push_back(more);
        for (const Settings& settings : all) {
            INFO(info->name);
            study::SchedulerSpec scheduler = study::chosen(info, settings);
            if (info->explores) scheduler.explore = {{"lr", {0.8, 1.2}}};
            if (info->schedules) scheduler.schedule = {{"lr", {{2, 0.5}}}};
            for (const auto mode : {study::Mode::min, study::Mode::max}) {
                // Of equal values one is the best: ties go to somebody.
                for (const double value : {std::nan(""), infinity, -infinity, 0.0, 1e308, -1e308, 5e-324})
                    CHECK(reached(scheduler, mode, [value](std::uint32_t) { return value; }) > 0);
                CHECK(reached(scheduler, mode, [](std::uint32_t trial) { return 1.0 * trial; }) > 0);
                CHECK(reached(scheduler, mode, [](std::uint32_t trial) { return -1.0 * trial; }) > 0);
            }
        }
    }
}

TEST_CASE("a scheduler that breaks a rule is found out", "[schedulers][contract]") {
    const auto finds = [](Fault fault, const std::string& rule) {
        const std::string found = broken(alternating(fault));
        INFO(found);
        CHECK(found.find(rule) != std::string::npos);
    };
    CHECK(broken(alternating(Fault::none)) == "");
    finds(Fault::forgets, "a restored scheduler");
    finds(Fault::answers_anew, "the same question gets the same answer");
    finds(Fault::pauses, "fits the verb");
    finds(Fault::ends_late, "the next decision point lies ahead");
    finds(Fault::throws, "no number");
    finds(Fault::takes_anything, "a snapshot of another version is refused");
    finds(Fault::name, "the scheduler has the name of its description");
    finds(Fault::synchronous, "a scheduler that is synchronous says that it is not deterministic");
}

TEST_CASE("a scheduler that exploits, and waits for its population, keeps the contract", "[schedulers][contract]") {
    CHECK(broken(population()) == "");
    // There are donors in the worlds of the suite.
    ranktune::testing::World world(
        small_study(study::chosen(std::make_shared<const study::SchedulerInfo>(population()))), {});
    world.run();
    CHECK(world.exploits() > 10);
}

TEST_CASE("a scheduler that exploits against a rule is found out", "[schedulers][contract]") {
    using Fault = Population::Fault;
    const auto finds = [](Fault fault, const std::string& rule) {
        const std::string found = broken(population(fault));
        INFO(found);
        CHECK(found.find(rule) != std::string::npos);
    };
    finds(Fault::denies, "only a scheduler whose exploits() is true exploits trials");
    finds(Fault::itself, "a donor is another trial of the study");
    finds(Fault::outside, "the configuration of an exploit lies in the space");
    finds(Fault::answers_anew, "the same question gets the same answer");
}

TEST_CASE("a scheduler that waits for the end of attempts in deterministic studies is found out",
          "[schedulers][contract]") {
    CHECK(broken(pausing(false)) == "");
    CHECK(broken(pausing(true)).find("it does not matter when the attempt of a paused trial ends") !=
          std::string::npos);
    // One that is refused in deterministic studies may.
    study::SchedulerInfo refused = pausing(true);
    refused.not_deterministic = study::NotDeterministic{.why = ": it waits for ranks"};
    CHECK(broken(refused) == "");
    refused.not_deterministic->when = {{"eager", true}};
    CHECK(broken(refused).find("whether it goes with study.deterministic depends on 'eager', which it does not have") !=
          std::string::npos);
}

TEST_CASE("a description that cannot be used is found out", "[schedulers][contract]") {
    const auto with = [](const study::AlgorithmOption& option) {
        auto info = alternating(Fault::none);
        info.options = {option};
        return broken(info);
    };
    using Kind = study::OptionInfo::Kind;
    const std::string begin = "alternating: the description of 'alternating': option '";
    CHECK(with({"n", Kind::integer, 1, "a number"}) == "");
    CHECK(with({"type", Kind::integer, 1, "a number"}).starts_with(begin + "type' is no key"));
    CHECK(with({"N", Kind::integer, 1, "a number"}).starts_with(begin + "N' is no key"));
    CHECK(with({"n", Kind::path, "/x", "a path"}) == "");
    CHECK(with({"n", Kind::integer_list, 1, "numbers"}).starts_with(begin + "n' is neither"));
    CHECK(with({"n", Kind::integer, 1, ""}).starts_with(begin + "n' has no description"));
    CHECK(with({"n", Kind::integer, 1.0, "a number"}).starts_with(begin + "n' has a default that it does not take"));
    CHECK(with({"n", Kind::integer, 0, "a number", 1.0}).starts_with(begin + "n' has a default that it does not take"));
    CHECK(with({.name = "n", .standard = 1.0, .description = "a number", .only_with = {{"m", true}}})
              .starts_with(begin + "n' depends on 'm', which is not listed before it"));
    auto info = alternating(Fault::none);
    info.make = {};
    CHECK(broken(info).find("it has no factory") != std::string::npos);
    info = alternating(Fault::none);
    info.needs_checkpoints = {.when = {{"hard_stop", false}}};
    CHECK(broken(info).find("whether it needs checkpoints depends on 'hard_stop'") != std::string::npos);
    info.needs_checkpoints = study::CheckpointNeed{};
    CHECK(broken(info).find("a scheduler that needs checkpoints pauses trials, or exploits them") != std::string::npos);
    info = alternating(Fault::none);
    info.check = [](const study::AlgorithmCheck& check) { check.complain("type", "never works"); };
    CHECK(broken(info).find("the defaults work") != std::string::npos);
}

} // namespace scheduler_contract_test
