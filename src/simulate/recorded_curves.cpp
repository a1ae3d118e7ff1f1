// SPDX-License-Identifier: Apache-2.0
#include "simulate/recorded_curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/number_in.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::simulate {
namespace {

using base::Iteration;

constexpr std::uint32_t draw_pace = 0x8000'0002U;

double share(double value, double lower, double upper, bool log) {
    if (log) return value <= 0.0 ? 0.0 : share(std::log(value), std::log(lower), std::log(upper), false);
    return upper > lower ? std::clamp((value - lower) / (upper - lower), 0.0, 1.0) : 0.5;
}

/// Where a number lies in its domain; outside it: at the nearer end.
double place_in(const space::Domain& domain, double value) {
    if (const auto* range = std::get_if<space::FloatRange>(&domain))
        return share(value, range->lower, range->upper, range->log);
    if (const auto* range = std::get_if<space::IntRange>(&domain))
        return share(value, static_cast<double>(range->lower), static_cast<double>(range->upper), range->log);
    const auto& normal = std::get<space::Normal>(domain);
    return 0.5 * std::erfc((normal.mean - value) / (normal.sd * std::sqrt(2.0)));
}

const std::vector<space::Value>* list_of(const space::Domain& domain) {
    if (const auto* choice = std::get_if<space::Choice>(&domain)) return &choice->values;
    if (const auto* grid = std::get_if<space::Grid>(&domain)) return &grid->values;
    return nullptr;
}

/// Neighbours in the list are alike: so the user says, or they are numbers.
bool is_ordered(const space::Domain& domain) {
    if (const auto* choice = std::get_if<space::Choice>(&domain); choice != nullptr && choice->ordered) return true;
    return std::ranges::all_of(*list_of(domain), [](const space::Value& value) { return value.is_number(); });
}

bool means(const space::Value& value, const std::string& text) {
    if (value.text() == text) return true;
    return value.is_number() && base::number_in<double>(text) == value.as_double();
}

} // namespace

/// Qualities and times of iterations 1, 2, ...
class RecordedCurves::Measured final : public Curve {
  public:
    std::vector<double> qualities;
    std::vector<double> seconds; ///< of each iteration; empty: those of the model
    Iteration measured = 0;      ///< iterations with data
    /// A further iteration takes one of these, drawn: their mean has slow iterations in it, and groups that wait for
    /// each other wait for the slowest.
    std::vector<double> further_s;
    double jitter = 0.0;
    std::uint64_t seed = 0;
    std::uint32_t number = 0;

    [[nodiscard]] double quality(const Progress& progress) const override {
        return qualities[index(progress.iterations)] + progress.lead;
    }
    [[nodiscard]] Progress progress_at(double quality) const override {
        auto at = std::ranges::find_if(qualities, [&](double one) { return one >= quality; });
        if (at == qualities.end()) at = std::ranges::max_element(qualities, worse);
        return {static_cast<double>(at - qualities.begin() + 1), quality - *at};
    }
    [[nodiscard]] Progress resumed(double quality, double iterations) const override {
        const double here = qualities[index(iterations)];
        // A curve that has diverged is no less measured.
        return {iterations, std::isfinite(here) ? quality - here : 0.0};
    }
    [[nodiscard]] Step step(const Progress& progress, Iteration iteration) const override {
        const auto next = static_cast<std::size_t>(progress.iterations);
        if (next < seconds.size()) return {0.0, seconds[next]};
        base::RngStream random(seed, base::Purpose::curve, number,
                               static_cast<std::uint32_t>(iteration) & 0x7FFF'FFFFU);
        const double one = further_s[further_s.size() == 1 ? 0 : random.below(further_s.size())];
        return {0.0, jitter == 0.0 ? one : one * (1.0 + jitter * (2.0 * random.uniform() - 1.0))};
    }
    [[nodiscard]] bool is_known(const Progress& progress) const override {
        return progress.iterations <= static_cast<double>(measured);
    }

  private:
    [[nodiscard]] static bool worse(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; }
    [[nodiscard]] std::size_t index(double iterations) const {
        return std::min(static_cast<std::size_t>(std::max(iterations, 1.0)), qualities.size()) - 1;
    }
};

RecordedCurves::RecordedCurves(std::shared_ptr<const Recordings> recordings, const CurveModel& curves,
                               const TimeModel& time, const study::StudySpec& spec)
    : recordings_(std::move(recordings)),
      time_(times_of(time, *recordings_)),
      mode_(spec.objective.mode),
      ceiling_(spec.max_iterations),
      seed_(curves.seed.value_or(spec.seed)),
      curves_(recordings_->curves.size()) {
    if (recordings_->metric != spec.objective.metric)
        throw base::UsageError(recordings_->origin + " was read for the metric '" + recordings_->metric + "', not '" +
                               spec.objective.metric + "'");
    match(spec.space);
    for (const auto& recording : recordings_->curves) points_.push_back(point(recording));
}

RecordedCurves::~RecordedCurves() = default;

// ---- configurations

void RecordedCurves::match(const space::SearchSpace& space) {
    const auto& names = recordings_->parameters;
    if (names.empty()) return;
    std::vector<std::string> missing;
    for (const auto& parameter : space.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        const auto at = std::ranges::find(names, parameter.name);
        if (at == names.end()) {
            missing.push_back(parameter.name);
        } else {
            parameters_.push_back(parameter);
            columns_.push_back(static_cast<std::size_t>(at - names.begin()));
        }
    }
    if (!missing.empty())
        throw base::UsageError(recordings_->origin + " lacks " + base::plural(missing.size(), "hyper-parameter") +
                               " of the study: " + base::join(missing));
}

RecordedCurves::Place RecordedCurves::place(const space::Domain& domain, const std::string& text) {
    if (const auto* list = list_of(domain)) {
        const auto found = std::ranges::find_if(*list, [&](const space::Value& value) { return means(value, text); });
        if (found == list->end()) return {Place::Kind::foreign, 0.0};
        const auto at = static_cast<double>(found - list->begin());
        if (!is_ordered(domain)) return {Place::Kind::word, at};
        return {Place::Kind::number, (at + 0.5) / static_cast<double>(list->size())};
    }
    const auto value = base::number_in<double>(text);
    if (!value || std::isnan(*value)) throw base::UsageError("needs a number, not '" + text + "'");
    return {Place::Kind::number, place_in(domain, *value)};
}

RecordedCurves::Point RecordedCurves::point(const Recording& recording) const {
    Point point;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const auto& text = recording.configuration[columns_[i]];
        try {
            point.push_back(text ? place(parameters_[i].domain, *text) : Place{});
        } catch (const base::UsageError& error) {
            throw base::UsageError(recordings_->origin + ": " + parameters_[i].name + " " + error.what());
        }
    }
    return point;
}

RecordedCurves::Point RecordedCurves::point(const space::Configuration& configuration) const {
    Point point;
    for (const auto& parameter : parameters_) {
        const space::Value* value = configuration.find(parameter.name);
        point.push_back(value != nullptr ? place(parameter.domain, value->text()) : Place{});
    }
    return point;
}

/// Root mean square. Different words, and what only one of both has, are 1 apart.
double RecordedCurves::distance(const Point& a, const Point& b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const bool comparable = a[i].kind == b[i].kind && a[i].kind != Place::Kind::foreign;
        const double apart = a[i].at - b[i].at;
        if (!comparable || (a[i].kind == Place::Kind::word && apart != 0.0))
            sum += 1.0;
        else
            sum += apart * apart;
    }
    return a.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(a.size()));
}

std::size_t RecordedCurves::nearest(const Point& point) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < points_.size(); ++i) {
        const double far = distance(point, points_[i]);
        if (far >= least) continue;
        least = far;
        best = i;
    }
    distances_.push_back(static_cast<float>(least));
    return best;
}

std::shared_ptr<const Curve> RecordedCurves::curve(const space::Configuration& configuration) {
    const std::size_t number =
        columns_.empty() ? base::digest_of(configuration.text()) % curves_.size() : nearest(point(configuration));
    if (!curves_[number]) curves_[number] = extended(number);
    return curves_[number];
}

std::optional<Distances> RecordedCurves::distances() const {
    if (distances_.empty()) return std::nullopt;
    std::vector<float> sorted = distances_;
    std::ranges::sort(sorted);
    return Distances{sorted[sorted.size() / 2], sorted.back()};
}

// ---- curves

double RecordedCurves::best_reachable() const {
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& recording : recordings_->curves)
        for (const auto& point : recording.points)
            if (point.iteration <= ceiling_ && std::isfinite(point.value)) best = std::max(best, quality(point.value));
    return best;
}

/// Requires that the curve is that long. Before its first point it has the value of that point.
double RecordedCurves::quality_at(std::size_t number, base::Iteration iteration) const {
    const auto& points = recordings_->curves[number].points;
    const auto next = std::ranges::lower_bound(points, iteration, {}, &Recording::Point::iteration);
    if (next == points.begin() || next->iteration == iteration) return quality(next->value);
    const auto before = next - 1;
    const double part =
        static_cast<double>(iteration - before->iteration) / static_cast<double>(next->iteration - before->iteration);
    return quality(before->value + part * (next->value - before->value));
}

/// One quality per iteration, up to the last one that was measured.
std::vector<double> RecordedCurves::measured(std::size_t number) const {
    const Iteration end = std::min(recordings_->curves[number].points.back().iteration, ceiling_);
    std::vector<double> qualities;
    for (Iteration i = 1; i <= end; ++i) qualities.push_back(quality_at(number, i));
    return qualities;
}

/// Goes on up to study.max_iterations.
void RecordedCurves::extend(std::vector<double>& qualities, std::size_t number) const {
    std::vector<std::pair<double, std::size_t>> others; // by distance
    for (std::size_t i = 0; i < points_.size(); ++i)
        if (recordings_->curves[i].points.back().iteration > qualities.size())
            others.emplace_back(distance(points_[number], points_[i]), i);
    std::ranges::sort(others);
    while (qualities.size() < ceiling_) {
        const std::size_t length = qualities.size();
        const double last = qualities.back();
        const auto guide = std::ranges::find_if(others, [&](const auto& other) {
            return recordings_->curves[other.second].points.back().iteration > length &&
                   quality_at(other.second, length) >= last;
        });
        if (guide == others.end()) return qualities.resize(ceiling_, last);
        const std::vector<double> way = measured(guide->second);
        const double below = last - way[length - 1];
        for (std::size_t i = length; i < way.size(); ++i) qualities.push_back(way[i] + below);
    }
}

/// The time of each iteration up to the last one measured.
std::vector<double> RecordedCurves::seconds(std::size_t number, std::size_t count) const {
    std::vector<double> each;
    Recording::Point before;
    for (const auto& point : recordings_->curves[number].points) {
        const double one = (point.seconds - before.seconds) / static_cast<double>(point.iteration - before.iteration);
        each.resize(std::min(count, static_cast<std::size_t>(point.iteration)), one);
        before = point;
    }
    return each;
}

/// The iterations after the first, which may have a warm-up in it. Of a curve that has only one: those of the nearest
/// curve with more.
std::vector<double> RecordedCurves::paces(std::size_t number) const {
    const auto has_more = [&](std::size_t i) { return recordings_->curves[i].points.back().iteration > 1; };
    std::size_t from = number;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < points_.size() && !has_more(number); ++i) {
        const double far = distance(points_[number], points_[i]);
        if (far >= least || !has_more(i)) continue;
        least = far;
        from = i;
    }
    std::vector<double> each = seconds(from, static_cast<std::size_t>(ceiling_));
    if (each.size() > 1) each.erase(each.begin());
    return each;
}

std::shared_ptr<const Curve> RecordedCurves::extended(std::size_t number) const {
    auto curve = std::make_shared<Measured>();
    curve->qualities = measured(number);
    curve->measured = curve->qualities.size();
    curve->seed = seed_;
    curve->number = static_cast<std::uint32_t>(number);
    if (recordings_->has_seconds) {
        curve->seconds = seconds(number, curve->qualities.size());
        curve->further_s = paces(number);
    } else {
        base::RngStream random(seed_, base::Purpose::curve, static_cast<std::uint32_t>(number), draw_pace);
        curve->further_s = {time_.iteration * std::exp(time_.spread * (2.0 * random.uniform() - 1.0))};
        curve->jitter = time_.jitter;
    }
    extend(curve->qualities, number);
    return curve;
}

} // namespace ranktune::simulate
