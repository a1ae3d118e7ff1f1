// SPDX-License-Identifier: Apache-2.0
// PASHA against its definition: everything computed anew, after each report.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/asha/curve_noise.hpp"
#include "schedulers/asha/progressive_asha.hpp"
#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace pasha_plain_test {

using namespace ranktune;
using namespace ranktune::schedulers;

namespace {

using base::Iteration;

/// As numpy.percentile(values, 90).
double percentile_90(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t tenths = 9 * (values.size() - 1);
    const double at = values[tenths / 10];
    if (tenths % 10 == 0) return at;
    return at + (values[tenths / 10 + 1] - at) * (static_cast<double>(tenths % 10) / 10.0);
}

/// CurveNoise without memory of earlier comparisons.
class PlainNoise {
  public:
    void add(std::uint32_t trial, Iteration iteration, double score) {
        if (curves_.size() <= trial) curves_.resize(trial + 1);
        curves_[trial].emplace_back(iteration, score);
        if (iteration > above_ && counted_.size() < CurveNoise::most_curves &&
            std::ranges::find(counted_, trial) == counted_.end())
            counted_.push_back(trial);
    }
    void restart(Iteration above) {
        above_ = above;
        counted_.clear();
    }
    [[nodiscard]] std::optional<double> estimate() const {
        std::vector<double> distances;
        for (std::size_t j = 0; j < counted_.size(); ++j)
            for (std::size_t i = 0; i < j; ++i)
                if (const auto distance = noise_of(counted_[i], counted_[j])) distances.push_back(*distance);
        return distances.empty() ? std::nullopt : std::optional(percentile_90(distances));
    }

  private:
    [[nodiscard]] std::optional<double> noise_of(std::uint32_t a, std::uint32_t b) const {
        std::vector<bool> orders; // changes of who is better
        std::optional<double> newest;
        for (const auto& [at_a, of_a] : curves_[a]) {
            for (const auto& [at_b, of_b] : curves_[b]) {
                if (at_a != at_b) continue;
                const bool a_is_better = study::better({of_a, TrialId(a)}, {of_b, TrialId(b)});
                if (orders.empty() || orders.back() != a_is_better) orders.push_back(a_is_better);
                newest = at_a > above_ ? std::optional(std::abs(of_a - of_b)) : std::nullopt;
            }
        }
        return orders.size() >= 3 ? newest : std::nullopt;
    }
    std::vector<std::vector<std::pair<Iteration, double>>> curves_;
    std::vector<std::uint32_t> counted_;
    Iteration above_ = 0;
};

/// The ceiling of ProgressiveAsha, from the reports.
class PlainPasha {
  public:
    explicit PlainPasha(std::vector<Iteration> levels) : levels_(std::move(levels)) { noise_.restart(levels_[0]); }

    void report(std::uint32_t trial, Iteration iteration, double score) {
        const bool at_ceiling = top_ + 1 == levels_.size();
        if (!at_ceiling) noise_.add(trial, iteration, score);
        const auto rung = static_cast<std::size_t>(std::ranges::find(levels_, iteration) - levels_.begin());
        if (rung == levels_.size()) return;
        if (scores_.size() <= trial) scores_.resize(trial + 1);
        scores_[trial].push_back(score);
        if (at_ceiling || rung != top_) return;
        epsilon_ = noise_.estimate().value_or(epsilon_);
        ++comparisons_;
        if (is_consistent()) return;
        ++top_;
        if (top_ + 1 < levels_.size()) noise_.restart(levels_[top_ - 1]);
    }
    [[nodiscard]] Iteration top() const { return levels_[top_]; }
    [[nodiscard]] int comparisons() const { return comparisons_; }

  private:
    [[nodiscard]] bool is_consistent() const {
        std::vector<study::Ranked> below;
        std::vector<study::Ranked> own;
        for (std::uint32_t i = 0; i < scores_.size(); ++i) {
            if (scores_[i].size() != top_ + 1) continue;
            below.push_back({scores_[i][top_ - 1], TrialId(i)});
            own.push_back({scores_[i][top_], TrialId(i)});
        }
        std::ranges::sort(below, study::better);
        std::ranges::sort(own, study::better);
        for (std::size_t i = 0; i < own.size(); ++i)
            if (std::abs(scores_[own[i].trial.value()][top_ - 1] - below[i].score) > epsilon_) return false;
        return true;
    }
    std::vector<Iteration> levels_;
    PlainNoise noise_;
    std::size_t top_ = 1;
    double epsilon_ = 0.0;
    std::vector<std::vector<double>> scores_; ///< of each trial, rung by rung
    int comparisons_ = 0;
};

struct Training {
    TrialId trial;
    Iteration next = 1;
};

double score_of(std::uint64_t seed, const Training& at, double noise) {
    base::RngStream random(seed, base::Purpose::curve, at.trial.value(), 0);
    const double limit = random.uniform();
    base::RngStream error(seed, base::Purpose::curve, at.trial.value(), static_cast<std::uint32_t>(at.next));
    return limit * (1.0 - std::exp(-0.5 * static_cast<double>(at.next))) + noise * error.uniform();
}

/// Eight trials at a time, in random turns. Returns how often the top rose and how often it could have.
std::pair<int, int> compare_with_plain(std::uint64_t seed, double noise, std::uint32_t trials) {
    Driver d(spec_of(chosen("pasha", {{"eta", 2}}), 32), false);
    PlainPasha plain({1, 2, 4, 8, 16, 32});
    std::vector<Training> running;
    base::RngStream random(seed, base::Purpose::fault, 0);
    int rises = 0;
    while (d.trials() < trials) {
        while (running.size() < 8) {
            const auto promotion = d.next({.can_create = true, .active = true});
            if (promotion) d.promote(*promotion);
            running.push_back(promotion ? Training{promotion->trial, promotion->from + 1} : Training{d.add(), 1});
        }
        Training& at = running[random.below(running.size())];
        const double score = score_of(seed, at, noise);
        const Iteration before = plain.top();
        plain.report(at.trial.value(), at.next, score);
        rises += plain.top() != before ? 1 : 0;
        const Verdict verdict = d.report(at.trial, at.next++, score);
        REQUIRE(dynamic_cast<const ProgressiveAsha&>(d.scheduler()).top() == plain.top());
        if (verdict.verb == Verb::go_on) continue;
        if (verdict.verb == Verb::stop) d.close(at.trial, study::TrialPhase::finished, Reason::max_iterations);
        std::swap(at, running.back());
        running.pop_back();
        if (random.below(50) == 0) d.replace_by_restored();
    }
    return {rises, plain.comparisons()};
}

} // namespace

TEST_CASE("noise: the estimate is that of the definition, and its bound never above it", "[schedulers][pasha]") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        base::RngStream random(seed, base::Purpose::fault, 1);
        CurveNoise noise;
        PlainNoise plain;
        const bool is_large = seed == 0; // more than 256 curves
        std::vector<Iteration> trained(is_large ? 300 : 12);
        const int steps = is_large ? 2400 : 600;
        int bounds = 0;
        for (int step = 0; step < steps; ++step) {
            const auto trial = static_cast<std::uint32_t>(random.below(trained.size()));
            trained[trial] += 1 + random.below(2);
            const double score = 0.1 * static_cast<double>(random.below(8)); // with equal ones
            noise.add(TrialId(trial), trained[trial], score);
            plain.add(trial, trained[trial], score);
            if (step == steps / 2) {
                noise.restart(3);
                plain.restart(3);
            }
            if (random.below(is_large ? 100 : 5) > 0) continue;
            const std::optional<double> expected = plain.estimate();
            if (const auto bound = noise.at_least()) {
                ++bounds;
                REQUIRE(expected.value() >= *bound);
            }
            if (random.below(2) == 0) continue;
            REQUIRE(noise.estimate() == expected);
            REQUIRE(noise.valid());
            noise.watch(0.1 * static_cast<double>(random.below(8)));
        }
        CHECK(bounds > 0);
    }
}

TEST_CASE("PASHA's ceiling rises exactly when the definition says so", "[schedulers][pasha]") {
    int rises = 0;
    int comparisons = 0;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        const double noises[] = {0.0, 0.02, 0.1, 0.3, 1.0, 3.0};
        const auto [rose, compared] = compare_with_plain(seed, noises[seed % 6], 150);
        rises += rose;
        comparisons += compared;
    }
    // More than the first 256 curves, and an estimate that stays far above what the ranking needs.
    const auto [rose, compared] = compare_with_plain(99, 30.0, 700);
    CHECK(rises > 20);
    CHECK(comparisons + compared > 5 * (rises + rose));
}

} // namespace pasha_plain_test
