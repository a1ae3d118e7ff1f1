// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/progressive_asha.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <variant>

#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {

constexpr std::uint8_t pasha_version = 1;

/// The two lowest rungs, if there are two.
std::size_t first_top(const std::vector<base::Iteration>& levels) {
    return std::min<std::size_t>(1, levels.size() - 1);
}

} // namespace

ProgressiveAsha::ProgressiveAsha(const Options& options, const study::Objective& objective)
    : options_(options),
      levels_(integer_levels(options.first_rung, options.eta, options.ceiling, 0)),
      asha_({.first_rung = options.first_rung,
             .eta = options.eta,
             .ceiling = options.ceiling,
             .finish_top = options.finish_top,
             .num_trials = options.num_trials,
             .top = first_top(levels_)},
            objective),
      top_(first_top(levels_)),
      epsilon_(options.epsilon.value_or(0.0)) {
    assert(std::isfinite(epsilon_) && epsilon_ >= 0.0);
    if (top_ > 0) noise_.restart(levels_[top_ - 1]);
}

void ProgressiveAsha::apply(const study::Record& record) {
    const auto* report = std::get_if<study::Reported>(&record);
    if (report == nullptr) {
        asha_.apply(record);
        if (std::holds_alternative<study::TrialCreated>(record)) scores_.emplace_back();
        return;
    }
    const auto rung = asha_.enters(report->trial, report->iteration);
    const double score = asha_.score(*report);
    const bool estimates = !options_.epsilon && top_ + 1 < levels_.size();
    if (estimates && !asha_.finishing(report->trial)) noise_.add(report->trial, report->iteration, score);
    asha_.apply(record);
    // A trial of finish_top that failed and was reopened may be beyond the top, or have passed rungs without a score.
    if (rung && *rung <= top_ && *rung == scores_[report->trial.value()].entered) entered(report->trial, score);
}

/// Whether the trial is in the ranking of the top.
bool ProgressiveAsha::ranked(const Scores& scores) const {
    return top_ > 0 && scores.entered == top_ + 1 && std::isfinite(scores.own) && std::isfinite(scores.below);
}

void ProgressiveAsha::entered(base::TrialId trial, double score) {
    Scores& scores = scores_[trial.value()];
    scores = {scores.entered + 1, score, scores.own};
    if (top_ + 1 == levels_.size() || !ranked(scores)) return;
    ranking_.insert(trial, scores.below, scores.own);
    if (!is_consistent()) raise();
}

/// As `ranking_.consistent` with the estimate, which is computed only if a bound of it does not suffice: what is
/// consistent with less than epsilon is so with epsilon. The next bound is half-way between what suffices and the
/// estimate.
bool ProgressiveAsha::is_consistent() {
    if (options_.epsilon) return ranking_.consistent(epsilon_);
    if (const auto bound = noise_.at_least(); bound && ranking_.consistent(*bound)) return true;
    const auto estimate = noise_.estimate();
    if (!ranking_.consistent(estimate.value_or(epsilon_))) return false;
    if (estimate && std::isfinite(*estimate)) noise_.watch(0.5 * ranking_.sufficient() + 0.5 * *estimate);
    return true;
}

double ProgressiveAsha::epsilon() const {
    if (options_.epsilon) return epsilon_;
    CurveNoise noise = noise_;
    return noise.estimate().value_or(epsilon_);
}

void ProgressiveAsha::raise() {
    if (!options_.epsilon) epsilon_ = noise_.estimate().value_or(epsilon_);
    ++top_;
    asha_.raise_top(top_);
    ranking_.clear(); // nobody has been entered at the new top: finish_top's trials are left out
    if (top_ + 1 == levels_.size()) {
        noise_ = {}; // nothing is compared any more
    } else {
        noise_.restart(levels_[top_ - 1]);
    }
}

// The ranking is not written: it follows from the scores.
void ProgressiveAsha::snapshot(study::Encoder& out) const {
    out.u8(pasha_version);
    out.varint(top_);
    out.f64(epsilon_);
    out.varint(scores_.size());
    for (const Scores& scores : scores_) {
        out.varint(scores.entered);
        if (scores.entered > 0) out.f64(scores.own);
        if (scores.entered > 1) out.f64(scores.below);
    }
    noise_.snapshot(out);
    asha_.snapshot(out);
}

void ProgressiveAsha::restore(study::Decoder& in) {
    require_format(in.u8() == pasha_version, "pasha", "has another version");
    top_ = in.varint();
    require_format(top_ >= first_top(levels_) && top_ < levels_.size(), "pasha", "has other rungs");
    epsilon_ = in.f64();
    require_format(std::isfinite(epsilon_) && epsilon_ >= 0.0, "pasha", "has no epsilon");
    ranking_.clear();
    scores_.assign(in.count(), Scores{});
    for (std::size_t i = 0; i < scores_.size(); ++i) {
        Scores& scores = scores_[i];
        scores.entered = in.varint();
        require_format(scores.entered <= levels_.size(), "pasha", "names an unknown rung");
        if (scores.entered > 0) scores.own = in.f64();
        if (scores.entered > 1) scores.below = in.f64();
        require_format(!std::isnan(scores.own) && !std::isnan(scores.below), "pasha", "has a score that is none");
        if (top_ + 1 < levels_.size() && ranked(scores))
            ranking_.insert(base::TrialId(static_cast<base::TrialId::rep>(i)), scores.below, scores.own);
    }
    noise_.restore(in);
    asha_.raise_top(top_);
    asha_.restore(in);
    require_invariants(*this, "pasha");
}

void ProgressiveAsha::check_invariants() const {
    asha_.check_invariants();
    require(noise_.valid(), "pasha: a learning curve is out of order");
    require(ranking_.valid(), "pasha: the ranking of the top is out of order");
    std::size_t at_top = 0;
    for (const Scores& scores : scores_) {
        // Trials are promoted up to the top only.
        require(scores.entered <= top_ + 1, "pasha: a trial was entered above the top");
        if (ranked(scores)) ++at_top;
    }
    require(top_ + 1 == levels_.size() || at_top == ranking_.size(), "pasha: the ranking of the top lacks a trial");
}

} // namespace ranktune::schedulers
