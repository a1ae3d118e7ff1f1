// SPDX-License-Identifier: Apache-2.0
// The function form of a trainable on the trial thread.

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/catch.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

using namespace ranktune::worker;
namespace {

using study::AttemptOutcome;
using study::Verb;

trainables::Registration function(trainables::TrainFunction body) {
    return {any_trainable("function"), {}, std::move(body)};
}

/// Counts to `last`, with a state that can be saved.
void count_to(trainables::FunctionContext& context, std::uint64_t last) {
    std::uint64_t count = 0;
    context.checkpoints([&](study::StateSink& sink) { sink.put<std::uint64_t>("count", std::span(&count, 1)); },
                        [&](study::StateSource& source) { source.get<std::uint64_t>("count", std::span(&count, 1)); });
    while (count < last) {
        ++count;
        if (!context.report({{"count", static_cast<double>(count)}})) return;
    }
}

} // namespace

TEST_CASE("a function is paused at a report and goes on from its checkpoint", "[trial]") {
    for (const int ranks : {1, 3}) {
        TrialCluster cluster(ranks, function([](trainables::FunctionContext& context) { count_to(context, 100); }));
        cluster.prepare(ranks, 2);
        auto& first = cluster.run_until(2);
        for (const auto& log : first) CHECK(log.ended->outcome == AttemptOutcome::paused);
        const auto checkpoint = first[0].saved.at(0);
        CHECK(checkpoint.iteration == 2);
        cluster.prepare(ranks, 5, checkpoint);
        auto& second = cluster.run_until(5, Verb::stop);
        for (const auto& log : second) CHECK(log.ended->outcome == AttemptOutcome::stopped);
        REQUIRE(second[0].reports.size() == 3);
        CHECK(second[0].reports[0].iteration == 3);
        CHECK(second[0].reports[0].metrics[0].value == 3.0);
    }
}

TEST_CASE("a function that returns on its own has finished its trial", "[trial]") {
    TrialCluster cluster(2, function([](trainables::FunctionContext& context) { count_to(context, 4); }));
    cluster.prepare(2, 27);
    auto& logs = cluster.run_until(27);
    CHECK(logs[0].reports.size() == 4);
    for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::finished);
}

TEST_CASE("the leader names the options that a function never read", "[trial]") {
    const auto reads_lr = [](trainables::FunctionContext& context) {
        if (!context.configuration().contains("lr")) throw std::logic_error("no lr"); // on two threads: no CHECK here
        count_to(context, 4);
    };
    TrialCluster cluster(2, function(reads_lr));
    for (const char* name : {"lr", "momentun", "ranks", "kind", "depth"}) cluster.configuration.set(name, 0.5);
    cluster.spec().trainable.options.set("batch_sise", 32.0);
    cluster.spec().resources.ranks_parameter = "ranks";
    const space::Domain any = space::FloatRange{0.0, 1.0, false, 0.0};
    cluster.spec().space = space::SearchSpace({{"kind", any, {}}, {"depth", any, space::Condition::parse("kind > 0")}});
    cluster.prepare(2, 27);
    auto& logs = cluster.run_until(27);
    CHECK((logs[0].ended->unread == std::vector<std::string>{"momentun", "depth", "batch_sise"}));
    CHECK(logs[1].ended->unread.empty());

    cluster.trainable().info.any_option = false; // it lists its options, so the study file was checked
    cluster.prepare(2, 27);
    CHECK(cluster.run_until(27)[0].ended->unread.empty());
}

TEST_CASE("a function that reports again after it was told to end is told again", "[trial]") {
    int more = 0;
    TrialCluster cluster(1, function([&](trainables::FunctionContext& context) {
                             while (context.report({{"x", 1.0}})) {
                             }
                             while (more < 3 && !context.report({{"x", 2.0}})) ++more;
                         }));
    cluster.prepare(1, 1);
    auto& logs = cluster.run_until(1, Verb::stop);
    CHECK(more == 3);
    CHECK(logs[0].reports.size() == 1);
    CHECK(logs[0].ended->outcome == AttemptOutcome::stopped);
}

TEST_CASE("a function without save cannot be paused, and says so", "[trial]") {
    TrialCluster cluster(2, function([](trainables::FunctionContext& context) {
                             while (context.report({{"x", 1.0}})) {
                             }
                         }));
    cluster.prepare(2, 1);
    auto& logs = cluster.run_until(1);
    CHECK(logs[0].ended->outcome == AttemptOutcome::stateless);
    CHECK(logs[0].ended->failure.message.find("never called checkpoints(save, load)") != std::string::npos);
}

TEST_CASE("a function without save is paused without a checkpoint by the end of the job", "[trial]") {
    TrialCluster cluster(2, function([](trainables::FunctionContext& context) {
                             while (context.report({{"x", 1.0}})) {
                             }
                         }));
    auto reason = study::Reason::draining;
    SECTION("and by a scheduler that starts paused trials from the beginning") {
        set_option(cluster.spec().scheduler, {"restart_paused", true});
        reason = study::Reason::rung;
    }
    cluster.prepare(2, 2);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        if (report.iteration == 2) cluster.answer(2, Verb::pause, 0, reason);
    });
    for (const auto& log : logs) {
        CHECK(log.ended->outcome == AttemptOutcome::paused);
        CHECK(log.ended->failure.empty());
        CHECK(log.saved.empty());
    }
    cluster.prepare(2, 27); // from the beginning
    CHECK(cluster.run_until(27, Verb::stop)[0].reports.at(0).iteration == 1);
}

TEST_CASE("a failed save is not forgotten when the function catches it", "[trial]") {
    TrialCluster cluster(2, function([](trainables::FunctionContext& context) {
                             try {
                                 count_to(context, 100);
                             } catch (const std::exception&) { // swallows the error
                             }
                         }));
    cluster.store().refuse(true);
    cluster.prepare(2, 2);
    auto& logs = cluster.run_until(2);
    CHECK(logs[0].ended->outcome == AttemptOutcome::unsaved);
    CHECK(logs[0].ended->failure == study::Failure{"no space left on device", 0});
}

TEST_CASE("ranks that return from a function at different places fail together", "[trial]") {
    TrialCluster cluster(2, function([](trainables::FunctionContext& context) {
                             if (context.rank() == 1) return; // reports less often than rank 0
                             while (context.report({{"x", 1.0}})) {
                             }
                         }));
    cluster.prepare(2, 27);
    auto& logs = cluster.run_until(27);
    for (const auto& log : logs) CHECK(log.ended->outcome == AttemptOutcome::failed);
    CHECK(logs[0].ended->failure.message.find("different operations") != std::string::npos);
}

TEST_CASE("a function that goes on from a checkpoint has to load it before it reports", "[trial]") {
    TrialCluster cluster(1, function([](trainables::FunctionContext& context) {
                             while (context.report({{"x", 1.0}})) {
                             }
                         }));
    cluster.prepare(1, 5, study::CheckpointRef{2, "somewhere", 0, 0});
    auto& logs = cluster.run_until(5);
    CHECK(logs[0].ended->outcome == AttemptOutcome::failed);
    CHECK(logs[0].ended->failure.message.find("call checkpoints(save, load)") != std::string::npos);
}

TEST_CASE("user code that reports waits until its reports are taken", "[trial]") {
    std::atomic<std::uint64_t> made{0};
    TrialCluster cluster(1, function([&](trainables::FunctionContext& context) {
                             do made.fetch_add(1);
                             while (context.report({}));
                         }));
    cluster.prepare(1, 1'000'000'000);
    cluster.start();
    // It reaches the limit, and waits.
    while (made.load() <= TrialThread::most_events || !cluster.thread(0).waits()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(made.load() == TrialThread::most_events + 1);
    CHECK(cluster.thread(0).waits());
    std::uint64_t taken = 0;
    while (taken < 1000) cluster.pump([&](const RunnerReported&) { ++taken; });
    CHECK(made.load() <= taken + TrialThread::most_events + 1);

    SECTION("until it must stop") {
        cluster.thread(0).interrupt({study::Verb::stop, study::Reason::none, 0.0, 0.0});
        while (!cluster.all_ended()) cluster.pump([](const RunnerReported&) {});
        CHECK(cluster.logs[0].ended->outcome == study::AttemptOutcome::stopped);
    }
    SECTION("or is given up, even if nobody polls") {
        while (!cluster.thread(0).waits()) std::this_thread::yield();
        cluster.thread(0).abandon();
        while (!cluster.all_ended()) cluster.pump([](const RunnerReported&) {});
        CHECK(cluster.logs[0].ended->outcome == study::AttemptOutcome::lost);
    }
    CHECK_FALSE(cluster.thread(0).waits());
}

TEST_CASE("ranks that wait for their leader have not hung, and a leader that waits for them may have", "[trial]") {
    const int slow = GENERATE(0, 1);
    std::atomic<bool> go{false};
    TrialCluster cluster(2, function([&](trainables::FunctionContext& context) {
                             while (context.rank() == slow && !go.load()) std::this_thread::yield();
                             static_cast<void>(context.report({}));
                         }));
    cluster.prepare(2, 27);
    cluster.start();
    if (slow == 0) {
        while (!cluster.thread(1).waits()) std::this_thread::yield();
    } else {
        while (cluster.logs[0].reports.empty()) cluster.pump([](const RunnerReported&) {});
        while (cluster.thread(0).waits()) std::this_thread::yield();
        CHECK_FALSE(cluster.thread(1).waits());
    }
    CHECK_FALSE(cluster.thread(0).waits());
    go.store(true);
    while (!cluster.all_ended()) cluster.pump([](const RunnerReported&) {});
    CHECK_FALSE(cluster.thread(0).waits());
    CHECK_FALSE(cluster.thread(1).waits());
}

} // namespace ranktune::testing
