// SPDX-License-Identifier: Apache-2.0
#include "ranktune/searchers/observations.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/schema.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {
namespace {

/// Trials that a table may skip: with searcher.repeats it has only the first trial of a configuration.
constexpr std::size_t most_repeats = 1000;

/// Position of a trial among those of its study, or among the earlier ones.
std::size_t slot_of(base::TrialId trial) { return trial.value() - (is_earlier(trial) ? first_earlier_trial : 0U); }

} // namespace

std::vector<double> Observations::point(std::uint64_t number) const {
    std::vector<double> unit(dimensions_);
    for (std::size_t i = 0; i < dimensions_; ++i) unit[i] = coordinates_[number * dimensions_ + i];
    return unit;
}

Observations Observations::first(std::size_t lines) const {
    Observations view(dimensions_);
    view.lines_ = lines_.first(lines);
    // Points are numbered in the order in which they are asked for.
    for (std::size_t i = view.lines_.size(); i-- > 0;) {
        if (view.lines_[i].kind != Observation::Kind::asked) continue;
        view.points_ = view.lines_[i].point + 1;
        break;
    }
    view.earlier_ = std::min(earlier_, view.points_);
    view.coordinates_ = coordinates_.first(view.points_ * dimensions_);
    view.grid_points_ = grid_points_.first(view.points_);
    view.constraints_ = constraints_;
    view.distances_ = distances_;
    return view;
}

std::vector<std::uint64_t>& Observations::newest_of(base::TrialId trial) {
    return is_earlier(trial) ? point_of_earlier_ : point_of_;
}

std::uint64_t Observations::newest(base::TrialId trial) { return newest_of(trial).at(slot_of(trial)); }

/// Its coordinates are there already.
void Observations::add_point(base::TrialId trial, base::Iteration iteration, std::uint64_t grid_point) {
    grid_points_.push_back(grid_point);
    auto& numbers = newest_of(trial);
    if (slot_of(trial) >= numbers.size()) numbers.resize(slot_of(trial) + 1, 0);
    numbers[slot_of(trial)] = points_;
    if (is_earlier(trial)) earlier_ = points_ + 1;
    lines_.push_back(
        {Observation::Kind::asked, study::TrialPhase::waiting, trial, points_++, iteration, {}, Observation::no_one});
}

void Observations::earlier(const study::EarlierTrial& trial, const space::SearchSpace& space, study::Mode mode) {
    const base::TrialId id{first_earlier_trial + static_cast<std::uint32_t>(point_of_earlier_.size())};
    asked(id, 0, space, trial.configuration);
    base::Iteration last = 0;
    for (const auto& [iteration, value] : trial.results) {
        last = iteration;
        reported(id, iteration, study::score(value, mode));
    }
    over(id, last, trial.failed ? study::TrialPhase::failed : study::TrialPhase::finished);
}

void Observations::asked(base::TrialId trial, base::Iteration iteration, const space::SearchSpace& space,
                         const space::Configuration& configuration) {
    for (const double coordinate : coordinates_of(space, configuration)) coordinates_.push_back(coordinate);
    add_point(trial, iteration, space.grid_point(configuration));
}

void Observations::reported(base::TrialId trial, base::Iteration iteration, const study::Score& score,
                            std::span<const double> distances) {
    lines_.push_back({Observation::Kind::reported, study::TrialPhase::running, trial, newest(trial), iteration, score,
                      distances.empty() ? Observation::no_one : distances_.size()});
    if (!distances.empty()) constraints_ = distances.size();
    for (const double distance : distances) distances_.push_back(distance);
}

std::vector<double> Observations::distances(std::size_t line) const {
    std::vector<double> all;
    if (const std::uint64_t at = lines_[line].limits; at != Observation::no_one)
        for (std::size_t i = 0; i < constraints_; ++i) all.push_back(distances_[at + i]);
    return all;
}

void Observations::over(base::TrialId trial, base::Iteration iteration, study::TrialPhase phase) {
    lines_.push_back({Observation::Kind::over, phase, trial, newest(trial), iteration, {}, Observation::no_one});
}

void Observations::paused(base::TrialId trial, base::Iteration iteration) {
    lines_.push_back({Observation::Kind::paused,
                      study::TrialPhase::paused,
                      trial,
                      newest(trial),
                      iteration,
                      {},
                      Observation::no_one});
}

Observations Observations::moved(const space::SearchSpace& from, const space::SearchSpace& to) const {
    const space::SearchSpace plain(from.parameters()); // points of earlier studies may break its rules
    Observations moved(to.dimensions());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Observation& line = lines_[i];
        switch (line.kind) {
            case Observation::Kind::asked:
                moved.asked(line.trial, line.iteration, to,
                            configuration_at(plain, point(line.point), grid_point(line.point)));
                break;
            case Observation::Kind::reported:
                moved.reported(line.trial, line.iteration, line.score, distances(i));
                break;
            case Observation::Kind::paused:
                moved.paused(line.trial, line.iteration);
                break;
            case Observation::Kind::over:
                moved.over(line.trial, line.iteration, line.phase);
                break;
        }
    }
    return moved;
}

void Observations::snapshot(study::Encoder& out) const {
    out.varint(dimensions_);
    out.varint(lines_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        const Observation& line = lines_[i];
        out.u8(static_cast<std::uint8_t>(line.kind));
        out.varint(line.trial.value());
        out.varint(line.iteration);
        if (line.kind == Observation::Kind::over) out.u8(static_cast<std::uint8_t>(line.phase));
        if (line.kind == Observation::Kind::reported) {
            study::put(out, line.score);
            const std::vector<double> distances = this->distances(i);
            out.varint(distances.size());
            for (const double distance : distances) out.f64(distance);
        }
        if (line.kind != Observation::Kind::asked) continue;
        for (std::size_t d = 0; d < dimensions_; ++d) out.f64(coordinates_[line.point * dimensions_ + d]);
        out.varint(grid_points_[line.point]);
    }
}

void Observations::restore_report(base::TrialId trial, base::Iteration iteration, study::Decoder& in) {
    const study::Score score = study::decoded<study::Score>(in);
    std::vector<double> distances(in.count());
    for (double& distance : distances) distance = in.f64();
    if (!distances.empty() && constraints_ > 0 && distances.size() != constraints_)
        throw base::FormatError("a table of observations has reports with more constraints than others");
    reported(trial, iteration, score, distances);
}

void Observations::restore(study::Decoder& in) {
    if (in.varint() != dimensions_) throw base::FormatError("a table of observations belongs to another space");
    const std::size_t lines = in.count();
    for (std::size_t i = 0; i < lines; ++i) {
        const std::uint8_t kind = in.u8();
        if (kind > static_cast<std::uint8_t>(Observation::Kind::paused))
            throw base::FormatError("a table of observations has an unknown line");
        const std::uint64_t number = in.varint();
        const base::TrialId trial{static_cast<std::uint32_t>(number)};
        const base::Iteration iteration = in.varint();
        if (static_cast<Observation::Kind>(kind) == Observation::Kind::asked) {
            const bool late = is_earlier(trial) && !point_of_.empty();
            if (late || slot_of(trial) > newest_of(trial).size() + most_repeats)
                throw base::FormatError("a table of observations names trials out of order");
            for (std::size_t d = 0; d < dimensions_; ++d) coordinates_.push_back(in.f64());
            add_point(trial, iteration, in.varint());
            continue;
        }
        if (slot_of(trial) >= newest_of(trial).size())
            throw base::FormatError("a table of observations names an unknown trial");
        if (static_cast<Observation::Kind>(kind) == Observation::Kind::reported)
            restore_report(trial, iteration, in);
        else if (static_cast<Observation::Kind>(kind) == Observation::Kind::paused)
            paused(trial, iteration);
        else
            over(trial, iteration, static_cast<study::TrialPhase>(in.u8()));
    }
}

Searcher::Preparation Searcher::prepare(std::uint64_t, Observations) const {
    throw std::logic_error(std::string(name()) + " prepares no suggestions");
}

} // namespace ranktune::searchers
