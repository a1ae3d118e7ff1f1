// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "context.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace ranktune;
using testing::Context;

namespace {

space::Configuration configuration(std::vector<std::pair<std::string, space::Value>> entries) {
    return space::Configuration(std::move(entries));
}

std::unique_ptr<trainables::Trainable> make() { return trainables::find_trainable("curve").factory(); }

double score(const trainables::Metrics& metrics) { return metrics.at(0).second; }

} // namespace

TEST_CASE("a curve follows a - b * i^-c", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context context(*group, configuration({{"a", 0.9}, {"b", 0.4}, {"c", 1.0}}));
    const auto curve = make();
    curve->setup(context);
    CHECK(score(curve->step(context)) == Approx(0.5));
    CHECK(score(curve->step(context)) == Approx(0.7));
    static_cast<void>(curve->step(context));
    CHECK(score(curve->step(context)) == Approx(0.8));
}

TEST_CASE("a curve goes on after a checkpoint as if nothing had happened, noise included", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context context(*group, configuration({{"noise", 0.1}, {"state_bytes", 100}}), 7);
    const auto whole = make();
    whole->setup(context);
    study::MemoryState state;
    static_cast<void>(whole->step(context));
    static_cast<void>(whole->step(context));
    whole->save(state);
    CHECK(state.bytes() >= 100);
    const auto resumed = make();
    resumed->setup(context);
    resumed->load(state);
    for (int i = 0; i < 5; ++i) CHECK(score(resumed->step(context)) == score(whole->step(context)));

    Context other_trial(*group, configuration({{"noise", 0.1}}), 8);
    const auto other = make();
    other->setup(other_trial);
    const auto again = make();
    again->setup(context);
    CHECK(score(other->step(other_trial)) != score(again->step(context)));
}

TEST_CASE("a curve fails on the one rank and at the iteration that it was told", "[trainables]") {
    const auto thrown = testing::on_ranks(3, [](ddp::Collective& group) {
        Context context(group, configuration({{"fail_rate", 1.0}, {"fail_iteration", 3}, {"fail_rank", 1}}));
        const auto curve = make();
        curve->setup(context);
        for (int i = 0; i < 5; ++i) static_cast<void>(curve->step(context));
    });
    CHECK(thrown == std::vector<std::string>{"", "curve was told to fail at iteration 3", ""});
}

TEST_CASE("the share of the trials that fail is about the fail rate, each on one rank", "[trainables]") {
    int failed = 0;
    for (std::uint32_t trial = 0; trial < 400; ++trial) {
        int ranks = 0;
        for (const std::string& text : testing::on_ranks(2, [&](ddp::Collective& group) {
                 Context context(group, configuration({{"fail_rate", 0.25}}), trial);
                 const auto curve = make();
                 curve->setup(context);
                 for (int i = 0; i < 10; ++i) static_cast<void>(curve->step(context));
             }))
            ranks += text.empty() ? 0 : 1;
        CHECK(ranks <= 1);
        failed += ranks;
    }
    CHECK(failed > 60);
    CHECK(failed < 140);
}

TEST_CASE("a curve can report NaN", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context context(*group, configuration({{"nan_rate", 1.0}}));
    const auto curve = make();
    curve->setup(context);
    CHECK(std::isnan(score(curve->step(context))));
}

TEST_CASE("a learning rate away from 0.01 costs the curve some of its score", "[trainables]") {
    const auto group = ddp::make_self_collective();
    Context best(*group, configuration({{"lr", 0.01}}));
    Context worse(*group, configuration({{"lr", 1.0}}));
    const auto a = make();
    const auto b = make();
    a->setup(best);
    b->setup(worse);
    CHECK(score(a->step(best)) - score(b->step(worse)) == Approx(0.4));
}
