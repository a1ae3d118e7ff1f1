// SPDX-License-Identifier: Apache-2.0
// The contract, for every scheduler of the library; and that a scheduler that breaks it is found out.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/testing/contract.hpp"
#include "schedulers/built_in.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using ranktune::testing::Settings;

namespace {

/// Beside those that the suite finds by itself.
std::vector<Settings> more_settings(const std::string& name) {
    if (name == "asha")
        return {{{"eta", 2}, {"brackets", 5}, {"finish_top", 3}},
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

enum class Fault { none, forgets, answers_anew, pauses, ends_late, throws, takes_anything, name };

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
    finds(Fault::ends_late, "decisions lie ahead");
    finds(Fault::throws, "no number");
    finds(Fault::takes_anything, "a snapshot of another version is refused");
    finds(Fault::name, "the scheduler has the name of its description");
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
    CHECK(with({"n", Kind::path, "x", "a path"}).starts_with(begin + "n' is neither"));
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
