// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/pareto_rung.hpp"

#include <algorithm>
#include <cmath>

#include "models/pareto.hpp"
#include "ranktune/study/schema.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {

const study::Score* ParetoRung::find(base::TrialId trial) const {
    const auto found = std::ranges::find(entries_, trial, &Entry::trial);
    return found == entries_.end() ? nullptr : &found->score;
}

std::vector<base::TrialId> ParetoRung::order_of(const std::deque<Entry>& entries) {
    std::vector<const Entry*> by_trial;
    for (const Entry& each : entries) by_trial.push_back(&each);
    std::ranges::sort(by_trial, {}, [](const Entry* each) { return each->trial; });
    std::vector<models::ParetoPoint> points;
    for (const Entry* each : by_trial) points.push_back({each->score.values(), each->score.trouble()});
    std::vector<base::TrialId> order;
    for (const std::size_t position : models::pareto_order(points)) order.push_back(by_trial[position]->trial);
    return order;
}

std::vector<base::TrialId> ParetoRung::order_with(base::TrialId trial, const study::Score& score) const {
    ParetoRung later = *this;
    later.insert(trial, score);
    return later.order();
}

void ParetoRung::insert(base::TrialId trial, const study::Score& score) {
    entries_.push_back({trial, score});
    if (entries_.size() > most) entries_.pop_front();
    ++arrivals_;
}

bool ParetoRung::erase_failure(base::TrialId trial) {
    const auto found = std::ranges::find(entries_, trial, &Entry::trial);
    if (found == entries_.end() || !std::isinf(found->score.trouble())) return false;
    entries_.erase(found);
    --arrivals_;
    return true;
}

void ParetoRung::snapshot(study::Encoder& out) const {
    out.varint(arrivals_);
    out.varint(entries_.size());
    for (const Entry& each : entries_) {
        out.varint(each.trial.value());
        study::put(out, each.score);
    }
}

void ParetoRung::restore(study::Decoder& in) {
    arrivals_ = in.varint();
    const std::size_t count = in.count();
    require_format(count <= most && count <= arrivals_, "asha", "has too many entries at a rung");
    entries_.clear();
    for (std::size_t i = 0; i < count; ++i) {
        const base::TrialId trial{static_cast<std::uint32_t>(in.varint())};
        entries_.push_back({trial, study::decoded<study::Score>(in)});
    }
}

} // namespace ranktune::schedulers
