// SPDX-License-Identifier: Apache-2.0
// One object for several trials: Trainable::reset_config.

#include <atomic>
#include <memory>

#include "support/catch.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

namespace {

struct Counts {
    std::atomic<int> setups{0};
    std::atomic<int> resets{0};
    std::atomic<int> unwilling_rank{-1};
};

class Reusable final : public trainables::Trainable {
  public:
    explicit Reusable(Counts& counts) : counts_(counts) {}
    void setup(trainables::TrialContext& context) override {
        ++counts_.setups;
        context.group().barrier();
    }
    bool reset_config(trainables::TrialContext& context) override {
        ++counts_.resets;
        context.group().barrier();
        iterations_ = 0;
        return context.rank() != counts_.unwilling_rank;
    }
    trainables::Metrics step(trainables::TrialContext&) override { return {{"n", ++iterations_}}; }
    void save(study::StateSink& sink) const override { sink.put<double>("n", std::span(&iterations_, 1)); }
    void load(study::StateSource& source) override { source.get<double>("n", std::span(&iterations_, 1)); }

  private:
    Counts& counts_;
    double iterations_ = 0.0;
};

trainables::Registration reusable(Counts& counts) {
    study::TrainableInfo info = any_trainable("reusable");
    info.can_reset = true;
    return {info, [&counts] { return std::make_unique<Reusable>(counts); }, {}};
}

} // namespace

TEST_CASE("the object of the previous trial is reused by the next one on as many ranks", "[trial]") {
    Counts counts;
    TrialCluster cluster(2, reusable(counts));
    cluster.prepare(2, 1);
    static_cast<void>(cluster.run_until(1));
    CHECK(counts.setups == 2);
    cluster.prepare(2, 1);
    const auto& logs = cluster.run_until(1);
    CHECK(counts.setups == 2);
    CHECK(counts.resets == 2);
    CHECK(logs[0].reports[0].metrics[0] == study::NamedMetric{"n", 1.0});
}

TEST_CASE("what the object of an earlier trial read before is no option that nobody reads", "[trial]") {
    Counts counts;
    TrialCluster cluster(1, reusable(counts));
    cluster.spec().trainable.options.set("data", "digits.h5");
    cluster.prepare(1, 1);
    CHECK((cluster.run_until(1)[0].ended->unread == std::vector<std::string>{"data"}));
    cluster.prepare(1, 1);
    CHECK(cluster.run_until(1)[0].ended->unread.empty());
    CHECK(counts.resets == 1);
}

TEST_CASE("one unwilling rank, or another number of ranks, makes all ranks set up a new object", "[trial]") {
    Counts counts;
    TrialCluster cluster(2, reusable(counts));
    cluster.prepare(2, 1);
    static_cast<void>(cluster.run_until(1));
    counts.unwilling_rank = 1;
    cluster.prepare(2, 1);
    static_cast<void>(cluster.run_until(1));
    CHECK(counts.resets == 2);
    CHECK(counts.setups == 4);
    cluster.prepare(1, 1);
    static_cast<void>(cluster.run_until(1));
    CHECK(counts.resets == 2);
    CHECK(counts.setups == 5);
    // Rank 0 now holds an object of a group of one, rank 1 of a group of two: they agree to reuse neither.
    cluster.prepare(2, 1);
    static_cast<void>(cluster.run_until(1));
    CHECK(counts.resets == 2);
    CHECK(counts.setups == 7);
}

} // namespace ranktune::testing
