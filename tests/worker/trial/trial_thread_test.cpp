// SPDX-License-Identifier: Apache-2.0
// The trial thread with good and bad user code, on one to three ranks that are threads.

#include <atomic>

#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "trainables/builtin.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

using namespace ranktune::worker;
namespace {

using study::AttemptOutcome;
using study::Verb;

/// Where a Faulty trial throws, and on which rank.
enum class Place { nowhere, setup, load, step, inside_reduction, save, different_parameters };

struct Plan {
    Place place = Place::nowhere;
    int rank = 0;
    base::Iteration iteration = 2;
    bool odd_exception = false;
    std::atomic<int> steps[3] = {};
    std::atomic<int> objects{0};
};

/// Sums one gradient per step over all ranks, and fails where the plan says.
class Faulty final : public trainables::Trainable {
  public:
    explicit Faulty(Plan& plan) : plan_(plan) { ++plan_.objects; }
    ~Faulty() override { --plan_.objects; }

    void setup(trainables::TrialContext& context) override {
        rank_ = context.rank();
        maybe(Place::setup);
        reducer_ = std::make_unique<ddp::GradientReducer>(context.group(), std::vector<std::size_t>{5, 300, 7}, 64);
        size_ = context.size();
    }
    trainables::Metrics step(trainables::TrialContext& context) override {
        iteration_ = context.iteration() + 1;
        maybe(Place::step);
        reducer_->begin();
        try {
            for (std::size_t i = 3; i-- > 0;) {
                for (auto& value : reducer_->gradient(i)) value = 1.0F;
                if (i == 1) maybe(Place::inside_reduction);
                reducer_->ready(i);
            }
            reducer_->finish();
        } catch (...) {
            reducer_->fail();
            throw;
        }
        for (std::size_t i = 0; i < 3; ++i)
            for (const float value : reducer_->gradient(i)) sum_ += value;
        ++plan_.steps[rank_];
        return {{"sum", sum_}, {"rank", rank_}};
    }
    void save(study::StateSink& sink) const override {
        maybe(Place::save);
        const double value = plan_.place == Place::different_parameters && plan_.rank == rank_ ? sum_ + 1.0 : sum_;
        sink.put<double>("sum", std::span(&value, 1));
    }
    void load(study::StateSource& source) override {
        maybe(Place::load);
        source.get<double>("sum", std::span(&sum_, 1));
    }

  private:
    void maybe(Place place) const {
        if (plan_.place != place || plan_.rank != rank_) return;
        if ((place == Place::step || place == Place::inside_reduction) && iteration_ != plan_.iteration) return;
        if (plan_.odd_exception) throw 42;
        throw base::Error("thrown on purpose");
    }

    Plan& plan_;
    int rank_ = 0;
    int size_ = 1;
    base::Iteration iteration_ = 0;
    double sum_ = 0.0;
    std::unique_ptr<ddp::GradientReducer> reducer_;
};

trainables::Registration faulty(Plan& plan) {
    return {any_trainable("faulty"), [&plan] { return std::make_unique<Faulty>(plan); }, {}};
}

void check_outcomes(const std::vector<RankLog>& logs, AttemptOutcome outcome) {
    for (const auto& log : logs) CHECK(log.ended->outcome == outcome);
}

/// Only the rank that threw has a message.
void check_blame(const std::vector<RankLog>& logs, std::uint32_t rank, const std::string& words) {
    for (std::uint32_t r = 0; r < logs.size(); ++r) {
        if (r == rank) {
            CHECK(logs[r].ended->failure == study::Failure{words, rank});
        } else {
            CHECK(logs[r].ended->failure.empty());
        }
    }
}

} // namespace

TEST_CASE("a trial goes on without waiting until its decision point, then obeys", "[trial]") {
    for (const int ranks : {1, 2, 3}) {
        Plan plan;
        TrialCluster cluster(ranks, faulty(plan));
        cluster.prepare(ranks, 3);
        auto& logs = cluster.run_until(3);
        REQUIRE(logs[0].reports.size() == 3);
        CHECK(logs[0].reports[2].iteration == 3);
        CHECK(logs[0].reports[2].metrics[0] == study::NamedMetric{"sum", 3.0 * 312.0 * ranks});
        CHECK(logs[0].reports[2].metrics[1] == study::NamedMetric{"rank", 0.0});
        REQUIRE(logs[0].saved.size() == 1);
        CHECK(logs[0].saved[0].iteration == 3);
        check_outcomes(logs, AttemptOutcome::paused);
        for (int r = 0; r < ranks; ++r) CHECK(plan.steps[r] == 3); // all ranks ended at the same iteration
        for (std::size_t r = 1; r < logs.size(); ++r) {
            CHECK(logs[r].reports.empty());
            CHECK(logs[r].saved.empty());
        }
        CHECK(plan.objects == 0);
    }
}

TEST_CASE("a trial that is told to go on stops at the next decision point it was given", "[trial]") {
    Plan plan;
    TrialCluster cluster(2, faulty(plan));
    cluster.prepare(2, 1);
    auto& logs = cluster.run([&](const RunnerReported& report) {
        if (report.iteration == 1) cluster.answer(1, Verb::go_on, 4);
        if (report.iteration == 4) cluster.answer(4, Verb::stop);
    });
    CHECK(logs[0].reports.size() == 4);
    CHECK(logs[0].saved.size() == 1);
    check_outcomes(logs, AttemptOutcome::stopped);
}

TEST_CASE("a verdict that arrives late and an interruption are obeyed at the next report", "[trial]") {
    Plan plan;
    TrialCluster cluster(2, faulty(plan));
    SECTION("late verdict") {
        cluster.prepare(2, 27);
        auto& logs = cluster.run_until(1, Verb::stop);
        check_outcomes(logs, AttemptOutcome::stopped);
        CHECK(plan.steps[0] == plan.steps[1]);
        CHECK(logs[0].saved.at(0).iteration == logs[0].reports.back().iteration);
    }
    SECTION("interruption") {
        cluster.prepare(2, 27);
        auto& logs = cluster.run([&](const RunnerReported& report) {
            if (report.iteration == 1) cluster.thread(0).interrupt({Verb::pause, study::Reason::draining, 0, 0});
        });
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(plan.steps[0] == plan.steps[1]);
    }
}

TEST_CASE("an exception on one rank fails the trial on all of them and keeps the ranks usable", "[trial]") {
    for (const auto place : {Place::setup, Place::step, Place::inside_reduction, Place::save}) {
        for (const int ranks : {1, 2, 3}) {
            for (int thrower = 0; thrower < ranks; ++thrower) {
                Plan plan;
                plan.place = place;
                plan.rank = thrower;
                plan.odd_exception = thrower == 1;
                TrialCluster cluster(ranks, faulty(plan));
                cluster.prepare(ranks, 3);
                auto& failed = cluster.run_until(3);
                check_outcomes(failed, AttemptOutcome::failed);
                check_blame(failed, thrower,
                            plan.odd_exception ? "an exception that is not a std::exception" : "thrown on purpose");
                CHECK(plan.objects == 0);
                CHECK(cluster.store().count() == 0);
                plan.place = Place::nowhere;
                cluster.prepare(ranks, 3);
                check_outcomes(cluster.run_until(3), AttemptOutcome::paused);
            }
        }
    }
}

TEST_CASE("ranks that all throw at once all have a message", "[trial]") {
    TrialCluster cluster(3, {any_trainable("bad"), {}, [](trainables::FunctionContext& context) {
                                 throw base::Error("no data on rank " + std::to_string(context.rank()));
                             }});
    cluster.prepare(3, 1);
    auto& logs = cluster.run_until(1);
    for (std::uint32_t r = 0; r < 3; ++r) {
        CHECK(logs[r].ended->outcome == AttemptOutcome::failed);
        CHECK(logs[r].ended->failure == study::Failure{"no data on rank " + std::to_string(r), r});
    }
}

TEST_CASE("ranks that hold different parameters fail the trial, and nothing is stored", "[trial]") {
    Plan plan;
    plan.place = Place::different_parameters;
    plan.rank = 1;
    TrialCluster cluster(2, faulty(plan));
    cluster.prepare(2, 2);
    auto& logs = cluster.run_until(2);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(logs[0].ended->failure ==
          study::Failure{"the ranks of the trial hold different parameters at iteration 2", 0});
    CHECK(cluster.store().count() == 0);
}

TEST_CASE("a paused trial goes on from its checkpoint on another number of ranks", "[trial]") {
    Plan plan;
    TrialCluster cluster(3, faulty(plan));
    cluster.prepare(1, 2);
    const auto checkpoint = cluster.run_until(2)[0].saved.at(0);
    auto& start = cluster.prepare(3, 3, checkpoint);
    start.seconds = 100.0;
    auto& logs = cluster.run_until(3);
    check_outcomes(logs, AttemptOutcome::paused);
    REQUIRE(logs[0].reports.size() == 1);
    CHECK(logs[0].reports[0].iteration == 3);
    CHECK(logs[0].reports[0].seconds > 100.0);
    CHECK(logs[0].reports[0].metrics[0].value == 2 * 312.0 + 3 * 312.0);

    SECTION("a rank that cannot load fails the trial") {
        plan.place = Place::load;
        plan.rank = 2;
        cluster.prepare(3, 3, checkpoint);
        auto& failed = cluster.run_until(3);
        check_outcomes(failed, AttemptOutcome::failed);
        check_blame(failed, 2, "thrown on purpose");
    }
    SECTION("a checkpoint that is missing now is unreachable, and nothing is trained") {
        cluster.prepare(2, 3, study::CheckpointRef{2, "nowhere", 0, 0});
        auto& away = cluster.run_until(3);
        CHECK(away[0].ended->outcome == AttemptOutcome::unreachable);
        CHECK(away[1].ended->outcome ==
              AttemptOutcome::failed); // its leader could not load: the leader's message counts
        CHECK(away[0].reports.empty());
        check_blame(away, 0, "no checkpoint nowhere");
    }
    SECTION("a damaged one is unreadable") {
        cluster.store().damage(checkpoint.path);
        cluster.prepare(2, 3, checkpoint);
        CHECK(cluster.run_until(3)[0].ended->outcome == AttemptOutcome::unreadable);
    }
}

TEST_CASE("a last checkpoint that cannot be written is not the trial's fault", "[trial]") {
    Plan plan;
    TrialCluster cluster(2, faulty(plan));
    cluster.store().refuse(true);
    cluster.prepare(2, 1);
    auto& logs = cluster.run_until(1);
    CHECK(logs[0].ended->outcome == AttemptOutcome::unsaved);
    CHECK(logs[1].ended->outcome == AttemptOutcome::paused);
    CHECK(logs[0].ended->failure == study::Failure{"no space left on device", 0});
    CHECK(logs[0].saved.empty());
}

TEST_CASE("a trainable without checkpoints is paused and stopped without one", "[trial]") {
    Plan plan;
    TrialCluster cluster(2, faulty(plan));
    cluster.trainable().info.can_checkpoint = false;
    cluster.prepare(2, 1);
    auto& logs = cluster.run_until(1);
    check_outcomes(logs, AttemptOutcome::paused);
    CHECK(logs[0].saved.empty());
}

TEST_CASE("an abandoned trial is lost on every rank, wherever its ranks wait", "[trial]") {
    Plan plan;
    TrialCluster cluster(3, faulty(plan));
    SECTION("the leader waits for a verdict, the others for the leader") {
        cluster.prepare(3, 1);
        auto& logs = cluster.run([&](const RunnerReported&) {
            for (int r = 0; r < 3; ++r) cluster.thread(r).abandon();
        });
        check_outcomes(logs, AttemptOutcome::lost);
        CHECK(cluster.store().count() == 0);
    }
    SECTION("one rank never comes") {
        cluster.prepare(3, 1);
        cluster.logs.assign(2, {});
        auto& start = cluster.prepare(3, 1);
        for (int r = 0; r < 2; ++r) cluster.thread(r).start({start, r}); // rank 2 died before
        for (int r = 0; r < 2; ++r) cluster.thread(r).abandon();
        while (!cluster.all_ended()) cluster.pump([](const RunnerReported&) {});
        check_outcomes(cluster.logs, AttemptOutcome::lost);
    }
    // The threads can run other trials afterwards.
    cluster.prepare(3, 2);
    check_outcomes(cluster.run_until(2), AttemptOutcome::paused);
}

TEST_CASE("the built-in curve runs, and its planned failures carry their rank", "[trial]") {
    TrialCluster cluster(2, trainables::curve_registration());
    cluster.configuration.set("fail_rate", 1.0);
    cluster.configuration.set("fail_iteration", 2);
    cluster.configuration.set("fail_rank", 1);
    cluster.prepare(2, 3);
    auto& logs = cluster.run_until(3);
    check_outcomes(logs, AttemptOutcome::failed);
    check_blame(logs, 1, "curve was told to fail at iteration 2");
    cluster.configuration.set("fail_rate", 0.0);
    cluster.prepare(2, 3);
    auto& fine = cluster.run_until(3);
    check_outcomes(fine, AttemptOutcome::paused);
    CHECK(fine[0].reports[0].metrics[0].name == "score");
}

} // namespace ranktune::testing
