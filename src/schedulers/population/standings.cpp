// SPDX-License-Identifier: Apache-2.0
#include "schedulers/population/standings.hpp"

#include <algorithm>
#include <cmath>

#include "schedulers/checks.hpp"

namespace ranktune::schedulers {

using base::Iteration;
using base::TrialId;

Iteration ReadyPoints::after(Iteration current) const {
    const Iteration first = std::max(current + 1, burn_in);
    const Iteration point = (first + interval - 1) / interval * interval;
    return std::max(current + 1, std::min(point, ceiling));
}

Standings::Standings(const ReadyPoints& points, double quantile, bool latest)
    : points_(points), quantile_(quantile), latest_(latest), rankings_(latest ? 1 : 0) {}

const Ranking* Standings::at(Iteration iteration) const {
    return number(iteration) < rankings_.size() ? &rankings_[number(iteration)] : nullptr;
}

std::size_t Standings::group_size(std::size_t members, bool complete) const {
    if (members <= 1) return 0;
    const double share = static_cast<double>(members) * quantile_;
    const auto size = static_cast<std::size_t>(complete ? std::ceil(share) : std::floor(share));
    return std::min(size, members / 2);
}

Standings::Standing Standings::of(const Report& report, const Place& own, std::size_t population, bool complete) const {
    const Ranking* ranking = at(report.iteration);
    if (ranking == nullptr) return {};
    const study::Ranked entry{report.score.rank(), report.trial};
    // A report that is held, or was judged, is among them already.
    const bool is_there = !latest_ && own.judged == report.iteration;
    Standing standing{ranking->position(entry), ranking->size() + (is_there ? 0 : 1), 0};
    // Among the newest scores there is one of its own, which this one will replace.
    if (latest_ && own.judged > 0) {
        --standing.members;
        if (study::better({own.score, report.trial}, entry)) --standing.position;
    }
    const std::size_t point = number(report.iteration);
    const std::size_t over_elsewhere = over_ - (point < over_there_.size() ? over_there_[point] : 0);
    complete = complete || latest_ || standing.members + over_elsewhere >= population;
    standing.group = group_size(standing.members, complete);
    return standing;
}

void Standings::rank(TrialId trial, const Place& own, Iteration iteration, double score) {
    if (latest_ && own.judged > 0) remove(trial, own);
    const std::size_t point = number(iteration);
    if (rankings_.size() <= point) rankings_.resize(point + 1);
    rankings_[point].insert({score, trial});
}

void Standings::count_over(const Place& own, int change) {
    over_ += static_cast<std::size_t>(change);
    if (latest_ || own.judged == 0) return;
    const std::size_t last = number(own.judged);
    if (over_there_.size() <= last) over_there_.resize(last + 1);
    for (std::size_t point = number(points_.after(0)); point <= last; ++point)
        over_there_[point] += static_cast<std::size_t>(change);
}

void Standings::snapshot(study::Encoder& out) const {
    out.varint(rankings_.size());
    for (const Ranking& ranking : rankings_) ranking.snapshot(out);
}

void Standings::restore(study::Decoder& in) {
    over_ = 0;
    over_there_.clear();
    rankings_.assign(in.count(), Ranking{});
    for (Ranking& ranking : rankings_) ranking.restore(in);
    require_format(!latest_ || rankings_.size() == 1, "pbt", "has no ranking");
}

void Standings::check(std::size_t members, std::size_t judged) const {
    for (const Ranking& ranking : rankings_) {
        require(ranking.valid(), "pbt: a ranking is out of order");
        require(ranking.size() <= members, "pbt: a ranking has more entries than there are members");
        for (std::size_t i = 0; i < ranking.size(); ++i)
            require(ranking[i].trial.value() < members, "pbt: a ranking names nobody");
    }
    for (std::size_t point = 0; point < over_there_.size(); ++point)
        require(point < rankings_.size() && over_there_[point] <= rankings_[point].size(), "pbt: at ready point ",
                point * points_.interval, " more members are over than have been there");
    require(!latest_ || rankings_.front().size() == judged, "pbt: a member is missing in the ranking");
}

} // namespace ranktune::schedulers
