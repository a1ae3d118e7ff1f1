// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp/gp_data.hpp"

#include <algorithm>

namespace ranktune::searchers {

void GpData::read(const Observations& table) {
    std::size_t line = reading_.next(table);
    if (line == 0) {
        lines_.clear();
        ends_.clear();
        training_.clear();
        last_.clear();
        stops_.clear();
    }
    for (; line < table.size(); ++line) read(table[line], line);
    budget_.read(table);
    lines_.erase(lines_.begin(), lines_.lower_bound({budget_.iteration(), base::TrialId{}}));
}

void GpData::read(const Observation& line, std::size_t number) {
    switch (line.kind) {
        case Observation::Kind::asked:
            training_[line.trial] = line.point;
            break;
        case Observation::Kind::reported:
            training_[line.trial] = line.point;
            lines_.try_emplace({line.iteration, line.trial}, number);
            if (all_stops_) last_[line.trial] = {line.point, reported_value(line), number, line.iteration};
            break;
        case Observation::Kind::paused:
            training_.erase(line.trial);
            stop(line.trial);
            break;
        case Observation::Kind::over:
            training_.erase(line.trial);
            if (line.phase == study::TrialPhase::failed) last_.erase(line.trial);
            stop(line.trial);
            ends_[line.trial] = number;
            break;
    }
}

void GpData::stop(base::TrialId trial) {
    const auto last = last_.find(trial);
    if (last == last_.end()) return;
    stops_.push_back(last->second);
    last_.erase(last);
}

std::vector<GpData::Result> GpData::results() const {
    std::vector<Result> all;
    for (const LargestBudget::Point& point : budget_.points()) {
        const auto reported = lines_.find({budget_.iteration(), point.trial});
        const std::size_t line = reported != lines_.end() ? reported->second : ends_.at(point.trial);
        all.push_back({point.number, point.score, line, budget_.iteration()});
    }
    if (all.empty()) return all;
    for (const Result& stop : stops_)
        if (stop.iteration != budget_.iteration()) all.push_back(stop);
    std::ranges::sort(all, {}, &Result::line);
    return all;
}

std::vector<std::uint64_t> GpData::under_way() const {
    std::vector<std::uint64_t> points;
    for (const auto& [trial, point] : training_)
        if (!lines_.contains({budget_.iteration(), trial})) points.push_back(point);
    std::ranges::sort(points);
    return points;
}

} // namespace ranktune::searchers
