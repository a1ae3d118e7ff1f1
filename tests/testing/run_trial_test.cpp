// SPDX-License-Identifier: Apache-2.0
// The runner for users' tests: runs a trial as a study would, and finds its mistakes.

#include "ranktune/testing/run_trial.hpp"

#include <array>
#include <atomic>
#include <span>
#include <stdexcept>
#include <thread>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace ranktune::testing {
namespace {

using trainables::FunctionContext;
using trainables::TrialContext;

enum class Fault { none, forgets_momentum, forgets_blob, counts_from_scratch, ranks_differ };
std::atomic<Fault> fault{Fault::none}; // static, because trainables are made without arguments

/// x and its momentum; the blob counts the steps.
struct Momentum final : trainables::Trainable {
    void setup(TrialContext& context) override {
        lr = context.configuration().at("lr").as_double();
        rank = context.rank();
    }
    trainables::Metrics step(TrialContext& context) override {
        double gradient = x - 3.0;
        context.group().all_reduce(std::span(&gradient, 1));
        momentum = 0.5 * momentum + gradient / context.size();
        x -= lr * momentum;
        ++steps;
        if (fault == Fault::ranks_differ && rank == 1) x += 1.0;
        return {{"x", x}, {"steps", static_cast<double>(steps)}, {"nan", std::nan("")}};
    }
    void save(study::StateSink& sink) const override {
        sink.put("x", std::span(&x, 1));
        if (fault != Fault::forgets_momentum) sink.put("momentum", std::span(&momentum, 1));
        const std::array<std::byte, 1> count{static_cast<std::byte>(fault == Fault::forgets_blob ? extra++ : steps)};
        sink.blob("steps", count);
    }
    void load(study::StateSource& source) override {
        source.get("x", std::span(&x, 1));
        if (fault != Fault::forgets_momentum) source.get("momentum", std::span(&momentum, 1));
        if (fault != Fault::counts_from_scratch) steps = static_cast<int>(source.blob("steps").at(0));
    }
    double lr = 0.0;
    double x = 0.0;
    double momentum = 0.0;
    int steps = 0;
    int rank = 0;
    static inline std::atomic<int> extra{0};
};

/// A vector of ten numbers in parts; each step adds its own index.
struct Sharded final : trainables::Trainable {
    static constexpr std::uint64_t rows = 10;
    void setup(TrialContext& context) override {
        const auto ranks = static_cast<std::uint64_t>(context.size());
        const auto rank = static_cast<std::uint64_t>(context.rank());
        first = rows * rank / ranks;
        mine.assign(rows * (rank + 1) / ranks - first, 0.0);
    }
    trainables::Metrics step(TrialContext& context) override {
        double sum = 0.0;
        for (std::size_t i = 0; i < mine.size(); ++i) sum += mine[i] += static_cast<double>(first + i);
        context.group().all_reduce(std::span(&sum, 1));
        return {{"sum", sum}};
    }
    void save(study::StateSink& sink) const override {
        sink.put_rows<double>("parts", mine, {rows}, first, mine.size());
    }
    void load(study::StateSource& source) override {
        source.get_rows<double>("parts", mine, {rows}, first, mine.size());
    }
    std::uint64_t first = 0;
    std::vector<double> mine;
};

study::TrainableInfo sharded_info() {
    study::TrainableInfo info;
    info.sharded = true;
    return info;
}

TrialOptions with_lr(int ranks = 1) {
    fault = Fault::none;
    TrialOptions options;
    options.configuration = space::Configuration({{"lr", 0.25}});
    options.ranks = ranks;
    options.max_iterations = 6;
    return options;
}

double value_of(const study::MemoryState& state, const std::string& name) {
    study::MemoryState copy = state;
    double value = 0.0;
    copy.get<double>(name, std::span(&value, 1));
    return value;
}

} // namespace

TEST_CASE("a trainable finds the files of [data] by name", "[testing]") {
    TrialOptions options = with_lr();
    options.data = {{.name = "train", .path = "/d/train.h5"}};
    std::string missing;
    trainables::Registration looks;
    looks.function = [&](trainables::FunctionContext& context) {
        CHECK(context.data("train").path == "/d/train.h5");
        try {
            static_cast<void>(context.data("trian"));
        } catch (const base::UsageError& error) {
            missing = error.what();
        }
    };
    static_cast<void>(run_trial(looks, options));
    CHECK(missing == "[data] of the study file has no file 'trian'; did you mean 'train'?; it has train");
}

TEST_CASE("a trial runs to its ceiling and is stopped with a checkpoint", "[testing]") {
    for (const int ranks : {1, 2, 3}) {
        const TrialRun run = run_trial(trainable<Momentum>(), with_lr(ranks));
        CHECK(run.failure.empty());
        CHECK(run.end == TrialRun::End::stopped);
        REQUIRE(run.reports.size() == 6);
        CHECK(run.reports[2].iteration == 3);
        CHECK(run.reports[2].at("steps") == 3.0);
        CHECK(run.last("steps") == 6.0);
        REQUIRE(run.checkpoints.size() == 1);
        CHECK(run.checkpoint().iteration == 6);
        CHECK(value_of(run.checkpoint().state, "x") == run.last("x"));
        CHECK(run.unread.empty());
    }
}

TEST_CASE("a trial is paused, and goes on on another number of ranks", "[testing]") {
    TrialOptions options = with_lr(2);
    options.pause_after = 4;
    const TrialRun paused = run_trial(trainable<Momentum>(), options);
    CHECK(paused.end == TrialRun::End::paused);
    CHECK(paused.reports.size() == 4);
    options.pause_after = 0;
    options.from = paused.checkpoint();
    options.ranks = 3;
    const TrialRun on = run_trial(trainable<Momentum>(), options);
    REQUIRE(on.reports.size() == 2);
    CHECK(on.reports[0].iteration == 5);
    CHECK(on.last("steps") == 6.0);
    CHECK(on.last("x") == Approx(run_trial(trainable<Momentum>(), with_lr(1)).last("x")));
}

TEST_CASE("a trial saves on the way, and resumes from any of its checkpoints", "[testing]") {
    TrialOptions options = with_lr(2);
    options.max_iterations = 200;
    options.checkpoint_every = 10;
    const TrialRun run = run_trial(trainable<Momentum>(), options);
    REQUIRE(run.checkpoints.size() >= 2);
    CHECK(run.checkpoint().iteration == 200);
    options.from = run.checkpoints.front();
    CHECK(run_trial(trainable<Momentum>(), options).last("x") == run.last("x"));
}

TEST_CASE("a resume that is exact has no difference, on any number of ranks", "[testing]") {
    for (const int ranks : {1, 2, 3}) {
        CHECK(resume_difference(trainable<Momentum>(), with_lr(ranks), 3).empty());
        CHECK(resume_difference(trainable<Sharded>(sharded_info()), with_lr(ranks), 3).empty());
    }
}

TEST_CASE("state that a resume forgets is found and named", "[testing]") {
    const auto difference = [](Fault wrong, const std::vector<std::string>& ignored = {}) {
        const TrialOptions options = with_lr(2);
        fault = wrong;
        return resume_difference(trainable<Momentum>(), options, 3, ignored);
    };
    CHECK(difference(Fault::forgets_momentum).starts_with("iteration 4: 'x' is "));
    CHECK(difference(Fault::counts_from_scratch) == "iteration 4: 'steps' is 1 after the resume, and 4 without it");
    CHECK(difference(Fault::counts_from_scratch, {"steps"}) == "checkpoint of iteration 6: blob 'steps' differs");
    CHECK(difference(Fault::forgets_blob, {"steps"}) == "checkpoint of iteration 6: blob 'steps' differs");
    CHECK(difference(Fault::forgets_momentum, {"x"}) == "checkpoint of iteration 6: tensor 'x' differs");
    study::TrainableInfo stateless;
    stateless.can_checkpoint = false;
    CHECK(resume_difference(trainable<Momentum>(stateless), with_lr(), 3) ==
          "the trial saves nothing when it is paused");
    CHECK_THROWS_AS(resume_difference(trainable<Momentum>(), with_lr(), 6), base::UsageError);
}

TEST_CASE("an exception on a rank is the failure, with its rank", "[testing]") {
    const auto fails = function([](FunctionContext& context) {
        static_cast<void>(context.report({{"x", 1.0}}));
        if (context.rank() == 1) throw std::runtime_error("no data");
        while (context.report({{"x", 1.0}})) {
        }
    });
    const TrialRun run = run_trial(fails, with_lr(3));
    CHECK(run.end == TrialRun::End::failed);
    CHECK(run.failure == "rank 1: no data");
    CHECK(run.reports.size() == 2); // rank 0 learns of it at its next report
    CHECK_THROWS_AS(run.checkpoint(), base::UsageError);
    CHECK(resume_difference(fails, with_lr(2), 3) == "the trial that runs through fails: rank 1: no data");
}

TEST_CASE("ranks that disagree are found", "[testing]") {
    SECTION("they hold different parameters") {
        const TrialOptions options = with_lr(2);
        fault = Fault::ranks_differ;
        CHECK(run_trial(trainable<Momentum>(), options).failure ==
              "rank 0: the ranks of the trial hold different parameters at iteration 6");
    }
    SECTION("they call different operations") {
        const TrialRun run = run_trial(function([](FunctionContext& context) {
                                           if (context.rank() == 1) context.group().barrier();
                                           while (context.report({})) {
                                           }
                                       }),
                                       with_lr(2));
        CHECK(run.failure.find("different operations") != std::string::npos);
    }
    SECTION("one waits for the other, for ever") {
        std::atomic<bool> leave{false};
        TrialOptions options = with_lr(2);
        options.time_limit = std::chrono::milliseconds(50);
        const TrialRun run = run_trial(function([&](FunctionContext& context) {
                                           while (context.rank() == 1 && !leave) std::this_thread::yield();
                                           try {
                                               static_cast<void>(context.report({}));
                                           } catch (...) {
                                               leave = true;
                                               throw;
                                           }
                                       }),
                                       options);
        CHECK(run.end == TrialRun::End::failed);
        CHECK(run.failure == "the trial did not end within 50 ms; reports made: 1");
    }
}

TEST_CASE("a function sees its trial, and ends on its own", "[testing]") {
    TrialOptions options = with_lr();
    options.configuration.set("momentun", 0.9);
    options.seed = 11;
    options.trial = 5;
    options.cpus_per_rank = 3;
    options.devices = {"0"};
    const TrialRun run = run_trial(function([](FunctionContext& context) {
                                       const bool right = context.seed() == 11 && context.trial().value() == 5 &&
                                                          context.cpus_per_rank() == 3 &&
                                                          context.max_iterations() == 6 &&
                                                          context.devices() == std::vector<std::string>{"0"};
                                       context.log("lr " + context.configuration().at("lr").text());
                                       static_cast<void>(context.report({{"right", right ? 1.0 : 0.0}}));
                                   }),
                                   options);
    CHECK(run.end == TrialRun::End::finished);
    CHECK(run.last("right") == 1.0);
    CHECK(run.log == std::vector<std::string>{"lr 0.25"});
    CHECK(run.unread == std::vector<std::string>{"momentun"});
    CHECK(run.checkpoints.empty());
    CHECK_THROWS_WITH(run.last("loss"), "no metric 'loss' was reported; there are right");
}

TEST_CASE("a function that is paused without having said how to save fails", "[testing]") {
    TrialOptions options = with_lr();
    options.pause_after = 2;
    const TrialRun run = run_trial(function([](FunctionContext& context) {
                                       while (context.report({})) {
                                       }
                                   }),
                                   options);
    CHECK(run.failure.find("never called checkpoints(save, load)") != std::string::npos);
}

TEST_CASE("options that make no sense are refused", "[testing]") {
    CHECK_THROWS_AS(run_trial(trainable<Momentum>(), with_lr(0)), base::UsageError);
    TrialOptions none = with_lr();
    none.max_iterations = 0;
    CHECK_THROWS_AS(run_trial(trainable<Momentum>(), none), base::UsageError);
    CHECK_THROWS_AS(run_trial({}, with_lr()), base::UsageError);
}

} // namespace ranktune::testing
