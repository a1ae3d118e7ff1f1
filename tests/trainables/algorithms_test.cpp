// SPDX-License-Identifier: Apache-2.0
// An algorithm that a program registers: study files set its options as those of built-in ones.
#include "ranktune/trainables/algorithms.hpp"

#include <memory>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/searchers/stateless.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/spec.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace registry_test {

using namespace ranktune;
using namespace ranktune::trainables;
using Kind = study::OptionInfo::Kind;

namespace {

/// Trains every trial to the end; the tests are about its options.
class Idle final : public schedulers::Scheduler {
  public:
    [[nodiscard]] std::string_view name() const override { return "idle"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report&, bool) const override { return {}; }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool&) const override { return schedulers::NothingLeft{}; }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override {
        return current + 1;
    }
    void apply(const study::Record&) override {}
    void snapshot(study::Encoder&) const override {}
    void restore(study::Decoder&) override {}
    [[nodiscard]] bool pauses() const override { return true; }
};

study::SchedulerInfo idle() {
    study::SchedulerInfo info;
    info.name = "idle";
    info.description = "nothing is judged.";
    info.options = {
        {.name = "mood",
         .kind = Kind::string,
         .standard = "calm",
         .description = "How.",
         .accepted = {"calm", "eager"},
         .foreign_words = {{"quiet", "calm"}}},
        {.name = "haste",
         .kind = Kind::number,
         .standard = 1.0,
         .description = "How much.",
         .low = 0.5,
         .high = 8.0,
         .only_with = {{"mood", "eager"}},
         .foreign_names = {{"Speedy", "hurry"}}},
        {.name = "grace", .kind = Kind::integer, .standard = 2, .description = "When.", .low = 0.0},
        {.name = "label", .kind = Kind::string, .standard = "", .description = "A word.", .may_change = true},
    };
    info.foreign_names = {"lazy"};
    info.needs_checkpoints = study::CheckpointNeed{};
    info.make = [](const study::StudySpec&) { return std::make_unique<Idle>(); };
    return info;
}

class First final : public searchers::StatelessSearcher {
  public:
    explicit First(const space::SearchSpace& space) : space_(space) {}
    [[nodiscard]] std::string_view name() const override { return "first"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t,
                                                              const searchers::Observations&) const override {
        return space_.sample(0, base::TrialId(0));
    }

  private:
    const space::SearchSpace& space_;
};

study::SearcherInfo first() {
    study::SearcherInfo info;
    info.name = "first";
    info.description = "always the same.";
    info.make = [](const study::StudySpec& spec) { return std::make_unique<First>(spec.space); };
    return info;
}

/// Registers once, whichever test runs first.
study::Known known() {
    static const bool registered = [] {
        register_scheduler(idle());
        register_searcher(first());
        return true;
    }();
    static_cast<void>(registered);
    return {{ranktune::testing::any_trainable()}, known_algorithms()};
}

study::StudySpec parsed(const std::string& rest, study::Known algorithms = known()) {
    return study::parse_study(
        "[study]\nname = \"s\"\nmetric = \"m\"\nmode = \"min\"\nnum_trials = 2\nmax_iterations = 9\n"
        "[trainable]\nname = \"any\"\n[space]\nx = [1, 2]\n" +
            rest,
        "/s.toml", {}, algorithms);
}

std::string mistake(const std::string& rest) {
    try {
        static_cast<void>(parsed(rest));
        return "";
    } catch (const study::StudyFileError& error) {
        std::string all;
        for (const study::Mistake& found : error.mistakes())
            all += std::to_string(found.line) + ":" + std::to_string(found.column) + " " + found.key + ": " +
                   found.message + "\n";
        return all;
    }
}

} // namespace

TEST_CASE("an algorithm of a program is chosen by its name, with its options", "[algorithms]") {
    const auto spec =
        parsed("[searcher]\ntype = \"first\"\n[scheduler]\ntype = \"idle\"\nmood = \"eager\"\nhaste = 2\n");
    CHECK(spec.searcher.algorithm->name == "first");
    CHECK(spec.searcher.algorithm->make(spec)->suggest(7, {})->size() == 1);
    CHECK(spec.scheduler.algorithm->make(spec)->name() == "idle");
    CHECK(spec.scheduler.options.at("haste") == 2.0);
    CHECK(spec.scheduler.options.at("grace") == 2);
    const std::string resolved = study::resolved_toml(spec);
    CHECK(resolved.find("[scheduler]\ntype = \"idle\"\nmood = \"eager\"\nhaste = 2.0\ngrace = 2\nlabel = \"\"\n") !=
          std::string::npos);
    CHECK(study::resolved_toml(study::parse_resolved_study(resolved, "/r.toml", known_algorithms())) == resolved);
}

TEST_CASE("mistakes in its options are reported like those in options of built-in algorithms", "[algorithms]") {
    using ranktune::testing::listed;
    using ranktune::testing::names_of;
    using ranktune::testing::owners_of;
    const auto all = known().algorithms.schedulers; // the registered one is the last
    REQUIRE(all.back()->name == "idle");
    const std::string begin = "[scheduler]\ntype = \"idle\"\n";
    CHECK(mistake(begin) == "");
    CHECK(mistake(begin + "mood = \"eagre\"\n") ==
          "13:8 scheduler.mood: unknown value \"eagre\"; accepted: \"calm\" or \"eager\"; did you mean \"eager\"?\n");
    CHECK(
        mistake(begin + "mood = \"quiet\"\n") ==
        "13:8 scheduler.mood: unknown value \"quiet\"; accepted: \"calm\" or \"eager\"; here it is called \"calm\"\n");
    CHECK(mistake(begin + "haste = 2\n") == "13:1 scheduler.haste: is a key of mood \"eager\" only\n");
    CHECK(mistake(begin + "mood = \"eager\"\nhaste = 9\n") ==
          "14:9 scheduler.haste: needs a number from 0.5 to 8, not 9\n");
    CHECK(mistake(begin + "mood = \"eager\"\nhurry = 9\n") == "14:1 scheduler.hurry: is Speedy's name; here: haste\n");
    CHECK(mistake(begin + "grace = -1\n") == "13:9 scheduler.grace: needs an integer >= 0, not -1\n");
    CHECK(mistake(begin + "labell = \"x\"\n") == "13:1 scheduler.labell: unknown key; did you mean 'label'?\n");
    CHECK(mistake(begin + "eta = 3\n") ==
          "13:1 scheduler.eta: is a key of type " + listed(owners_of(all, "eta")) + " only\n");
    CHECK(mistake("[scheduler]\ntype = \"fifo\"\ngrace = 3\n") ==
          "13:1 scheduler.grace: is a key of type " + listed(owners_of(all, "grace")) + " only\n");
    CHECK(mistake("[scheduler]\ntype = \"lazy\"\n") == "12:8 scheduler.type: unknown value \"lazy\"; accepted: " +
                                                           listed(names_of(all, [](const auto&) { return true; })) +
                                                           "; here it is called \"idle\"\n");
    CHECK(mistake(begin + "[checkpoint]\nat_rungs = true\n") ==
          "14:1 checkpoint.at_rungs: only scheduler.type = " +
              listed(names_of(all, [](const auto& info) { return info.has_rungs; })) + " has rungs\n");
}

TEST_CASE("a scheduler that always pauses needs a trainable that can save", "[algorithms]") {
    study::Known stateless = known();
    stateless.trainables.front().can_checkpoint = false;
    try {
        static_cast<void>(parsed("[scheduler]\ntype = \"idle\"\n", stateless));
        FAIL("a trainable without checkpoints was accepted");
    } catch (const study::StudyFileError& error) {
        CHECK(error.mistakes().front().message ==
              "\"idle\" pauses trials, and the trainable 'any' cannot save checkpoints");
        CHECK(error.mistakes().front().key == "scheduler.type");
    }
}

TEST_CASE("an option with may_change may change in a study that goes on", "[algorithms]") {
    study::StudySpec now = parsed("[scheduler]\ntype = \"idle\"\n");
    const study::StudySpec later = parsed("[scheduler]\ntype = \"idle\"\nlabel = \"x\"\n");
    const auto found = study::differences(now, later);
    CHECK(found == std::vector<study::KeyChange>{{"scheduler.label", "\"\"", "\"x\"", true}});
    study::take_over(now, later);
    CHECK(now.scheduler.options.at("label") == "x");
    const auto other = study::differences(now, parsed("[scheduler]\ntype = \"idle\"\nlabel = \"x\"\ngrace = 3\n"));
    CHECK(other == std::vector<study::KeyChange>{{"scheduler.grace", "2", "3", false}});
    CHECK_FALSE(study::differences(now, parsed("")).front().may_change);
}

TEST_CASE("what cannot be registered, and a study of another program", "[algorithms]") {
    static_cast<void>(known());
    CHECK_THROWS_WITH(register_scheduler(idle()), "a scheduler named 'idle' exists already");
    auto wrong = idle();
    wrong.name = "Idle";
    CHECK_THROWS_AS(register_scheduler(wrong), base::UsageError);
    auto grid = first();
    grid.name = "grid";
    CHECK_THROWS_WITH(register_searcher(grid), "a searcher named 'grid' exists already");

    const std::string resolved = study::resolved_toml(parsed("[scheduler]\ntype = \"idle\"\n"));
    study::Algorithms others = known_algorithms();
    others.schedulers.resize(3);
    CHECK_THROWS_WITH(study::parse_resolved_study(resolved, "/r.toml", others),
                      "the study has scheduler.type = \"idle\", which this program does not have; use the program that "
                      "runs the study");
}

} // namespace registry_test
