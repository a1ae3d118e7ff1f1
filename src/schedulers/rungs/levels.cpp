// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/levels.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ranktune/base/rng.hpp"

namespace ranktune::schedulers {

std::vector<base::Iteration> integer_levels(base::Iteration first, std::uint64_t eta, base::Iteration ceiling,
                                            std::uint32_t bracket) {
    assert(first >= 1 && eta >= 2 && ceiling >= 1);
    std::vector<base::Iteration> levels;
    base::Iteration level = first;
    for (std::uint32_t k = 0; level < ceiling; ++k) {
        if (k >= bracket) levels.push_back(level);
        if (level > (ceiling - 1) / eta) break; // the next one is >= ceiling, or does not fit into 64 bits
        level *= eta;
    }
    levels.push_back(ceiling);
    return levels;
}

std::vector<base::Iteration> ray_levels(double first, double eta, base::Iteration ceiling, std::uint32_t bracket,
                                        std::size_t limit) {
    assert(first > 0.0 && eta > 1.0);
    std::vector<base::Iteration> levels;
    double level = first;
    for (std::uint32_t k = 0; level <= static_cast<double>(ceiling) && levels.size() <= limit; ++k) {
        if (k >= bracket) levels.push_back(static_cast<base::Iteration>(std::ceil(level)));
        level *= eta;
    }
    return levels;
}

BracketDraw::BracketDraw(std::uint64_t seed, const std::vector<std::size_t>& rungs) : seed_(seed) {
    assert(!rungs.empty());
    // Powers of 1/e by multiplication: exp() differs in the last bit between C libraries, and the draw must not.
    constexpr double one_over_e = 0.36787944117144233;
    const std::size_t most = *std::max_element(rungs.begin(), rungs.end());
    double sum = 0.0;
    for (const std::size_t count : rungs) {
        double weight = 1.0;
        for (std::size_t i = count; i < most; ++i) weight *= one_over_e;
        sum += weight;
        cumulative_.push_back(sum);
    }
}

std::uint32_t BracketDraw::operator()(base::TrialId trial) const {
    if (cumulative_.size() == 1) return 0;
    base::RngStream stream(seed_, base::Purpose::bracket, trial.value());
    const double at = stream.uniform() * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
    return static_cast<std::uint32_t>(found - cumulative_.begin());
}

BracketRounds::BracketRounds(const std::vector<std::uint64_t>& trials) {
    assert(!trials.empty());
    std::uint64_t sum = 0;
    for (const std::uint64_t count : trials) {
        assert(count >= 1);
        sum += count;
        cumulative_.push_back(sum);
    }
}

std::uint32_t BracketRounds::operator()(base::TrialId trial) const {
    const std::uint64_t at = trial.value() % cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return static_cast<std::uint32_t>(found - cumulative_.begin());
}

std::vector<std::uint64_t> budget_round(const std::vector<std::vector<base::Iteration>>& levels, std::uint64_t eta) {
    assert(!levels.empty());
    // B / c = rungs * ceiling * eta^K / (sum of level_k * eta^(K - k)): 128 bits suffice for ceilings up to 10^16.
    __extension__ using Wide = unsigned __int128;
    std::vector<std::uint64_t> trials;
    for (const std::vector<base::Iteration>& rungs : levels) {
        assert(!rungs.empty());
        Wide cost = 0;
        Wide scale = 1; // eta^k
        for (std::size_t k = 0; k < rungs.size(); ++k) {
            if (k > 0) scale *= eta;
            cost = (k == 0 ? 0 : cost * eta) + rungs[k];
        }
        const Wide budget = Wide{levels.front().size()} * rungs.back() * scale;
        trials.push_back(static_cast<std::uint64_t>((budget + cost - 1) / cost));
    }
    return trials;
}

std::function<std::uint32_t(base::TrialId)> bracket_choice(Allotment allotment, std::uint64_t seed,
                                                           const std::vector<std::vector<base::Iteration>>& levels,
                                                           std::uint64_t eta) {
    if (allotment == Allotment::budget) return BracketRounds(budget_round(levels, eta));
    std::vector<std::size_t> rungs;
    for (const auto& bracket : levels) rungs.push_back(bracket.size());
    return BracketDraw(seed, rungs);
}

void merge(std::vector<Scheduler::RungView>& views, const Scheduler::RungView& rung) {
    const auto at = std::ranges::lower_bound(views, rung.iteration, {}, &Scheduler::RungView::iteration);
    if (at == views.end() || at->iteration != rung.iteration) {
        views.insert(at, rung);
        return;
    }
    at->entries += rung.entries;
    at->promoted += rung.promoted;
}

} // namespace ranktune::schedulers
