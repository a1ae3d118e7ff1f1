// SPDX-License-Identifier: Apache-2.0
// Rules of a space: where they are kept, and what is near there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/joined.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/space/search_space.hpp"
#include "space/arithmetic.hpp"

namespace ranktune::space {
namespace {

constexpr std::size_t most_points = 64;   ///< that are kept
constexpr std::size_t enough_points = 16; ///< that a search looks for
constexpr int samples = 2000;
constexpr std::uint64_t most_counted = std::uint64_t{1} << 16;
constexpr int most_starts = 32;
constexpr int most_steps = 500; ///< of a search from one start
constexpr int halvings = 16;

std::string rules_text(const std::vector<Rule>& rules) { return base::joined(rules, &Rule::text); }

/// `values`: of what the rule mentions; null: absent.
bool is_kept_with(const Rule& rule, std::span<const Value* const> values) {
    const bool holds = rule.condition.holds(values);
    return rule.forbids ? !holds : holds || std::ranges::find(values, nullptr) != values.end();
}

} // namespace

bool Rule::is_kept_by(const Configuration& configuration) const {
    std::vector<const Value*> values;
    for (const std::string& name : condition.names()) values.push_back(configuration.find(name));
    return is_kept_with(*this, values);
}

std::string Rule::text() const { return std::string(forbids ? "forbid" : "require") + " \"" + condition.text() + "\""; }

const Rule* SearchSpace::broken_by(const Configuration& configuration) const {
    const bool whole = !conditional_ && !configuration.empty() &&
                       configuration.block_->shape == shape_; // value i is that of parameter i
    std::vector<const Value*> room;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
        bool kept = false;
        if (whole) {
            room.clear();
            for (const std::size_t at : ruled_->of_rule[i]) room.push_back(&configuration.value(at));
            kept = is_kept_with(rules_[i], room);
        } else {
            kept = rules_[i].is_kept_by(configuration);
        }
        if (!kept) return &rules_[i];
    }
    return nullptr;
}

/// Looks for points that keep the rules, the same ones every time.
class SearchSpace::Finder {
  public:
    Finder(const SearchSpace& space, Ruled& found) : space_(space), random_(0, base::Purpose::rules), found_(found) {}

    void find() {
        if (found_.coordinates.empty() && !found_.uses_grids) return look_once();
        draw();
        if (found_.points.size() < enough_points && !count()) climb();
        if (found_.points.empty()) refuse();
    }

  private:
    [[noreturn]] void refuse() const {
        throw base::UsageError("no configuration was found that keeps " + rules_text(space_.rules_) +
                               "; allow more, or widen the domains");
    }

    [[nodiscard]] Point random_point() {
        Point point{std::vector<double>(space_.dimensions_), random_.below(space_.grid_size_)};
        for (double& each : point.unit) each = random_.uniform();
        return point;
    }

    /// All that the rules depend on is constant.
    void look_once() {
        Point point = random_point();
        if (!space_.allows(point)) refuse();
        found_.share = 1.0;
        found_.points.push_back(std::move(point));
    }

    void draw() {
        int kept = 0;
        for (int i = 0; i < samples; ++i) {
            Point point = random_point();
            if (!space_.allows(point)) continue;
            ++kept;
            if (found_.points.size() < most_points) found_.points.push_back(std::move(point));
        }
        found_.share = static_cast<double>(kept) / samples;
    }

    /// All points of a small finite space; false: it is none.
    bool count() {
        std::uint64_t size = space_.grid_size_;
        std::vector<const Domain*> domains; // of the coordinates
        for (const Parameter& parameter : space_.parameters_) {
            if (!has_coordinate(parameter.domain)) continue;
            domains.push_back(&parameter.domain);
            size = saturating_product(size, cardinality(parameter.domain).value_or(most_counted + 1));
        }
        if (size > most_counted) return false;
        found_.points.clear();
        std::uint64_t kept = 0;
        for (std::uint64_t number = 0; number < size; ++number) {
            Point point{std::vector<double>(domains.size()), number % space_.grid_size_};
            std::uint64_t left = number / space_.grid_size_;
            for (std::size_t j = 0; j < domains.size(); ++j) {
                const std::uint64_t values = *cardinality(*domains[j]);
                point.unit[j] = space::encode(*domains[j], space::value_at(*domains[j], left % values));
                left /= values;
            }
            if (!space_.allows(point)) continue;
            // A random choice of those so far (Vitter's algorithm R).
            const std::uint64_t at = kept < most_points ? kept : random_.below(kept + 1);
            ++kept;
            if (at == found_.points.size())
                found_.points.push_back(std::move(point));
            else if (at < most_points)
                found_.points[at] = std::move(point);
        }
        found_.share = static_cast<double>(kept) / static_cast<double>(size);
        return true;
    }

    /// Walks from random points to where less is broken.
    void climb() {
        for (int start = 0; start < most_starts && found_.points.size() < enough_points; ++start) {
            Point point = random_point();
            double distance = distance_of(point);
            for (int step = 0; step < most_steps && distance > 0.0; ++step) {
                Point other = moved(point);
                const double there = distance_of(other);
                if (there > distance) continue;
                point = std::move(other);
                distance = there;
            }
            if (space_.allows(point)) found_.points.push_back(std::move(point));
        }
    }

    [[nodiscard]] double distance_of(const Point& point) const {
        Values values;
        std::vector<const Value*> room;
        space_.read_ruled(point, values);
        double sum = 0.0;
        for (std::size_t i = 0; i < space_.rules_.size(); ++i) {
            const Rule& rule = space_.rules_[i];
            if (!space_.is_kept(i, values))
                sum += rule.condition.distance(values_at(found_.of_rule[i], values, room), !rule.forbids);
        }
        return sum;
    }

    [[nodiscard]] Point moved(Point point) {
        const std::size_t ways = found_.coordinates.size() + (found_.uses_grids ? 1 : 0);
        const std::size_t way = ways == 0 ? 0 : random_.below(ways);
        if (way >= found_.coordinates.size()) {
            point.grid = random_.below(space_.grid_size_);
            return point;
        }
        double& x = point.unit[found_.coordinates[way]];
        if (const double width = std::pow(10.0, -4.0 * random_.uniform()); random_.uniform() < 0.5)
            x = random_.uniform();
        else
            x = std::clamp(x + width * random_.normal(), 0.0, 1.0 - std::numeric_limits<double>::epsilon() / 2.0);
        return point;
    }

    const SearchSpace& space_;
    base::RngStream random_;
    Ruled& found_;
};

void SearchSpace::find_allowed() {
    const auto ruled = std::make_shared<Ruled>();
    for (const Rule& rule : rules_) {
        auto& positions = ruled->of_rule.emplace_back();
        for (const std::string& name : rule.condition.names()) {
            const Parameter* const parameter = find(name);
            if (parameter == nullptr)
                throw base::UsageError("a rule mentions '" + name + "', which is not in the space");
            positions.push_back(static_cast<std::size_t>(parameter - parameters_.data()));
        }
    }
    std::vector<bool> needed(parameters_.size(), false);
    for (const auto& positions : ruled->of_rule)
        for (const std::size_t at : positions) needed[at] = true;
    for (std::size_t i = order_.size(); i-- > 0;)
        if (needed[order_[i]])
            for (const std::size_t at : needs_[order_[i]]) needed[at] = true;
    for (const std::size_t at : order_)
        if (needed[at]) ruled->order.push_back(at);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (!needed[i]) continue;
        if (has_coordinate(parameters_[i].domain)) ruled->coordinates.push_back(coordinate_[i]);
        ruled->uses_grids = ruled->uses_grids || std::holds_alternative<Grid>(parameters_[i].domain);
    }
    ruled_ = ruled;
    Finder(*this, *ruled).find();
}

void SearchSpace::read_ruled(const Point& point, Values& values) const {
    values.assign(parameters_.size(), std::nullopt);
    std::vector<std::size_t> grids;
    if (ruled_->uses_grids) grids = grid_positions(point.grid);
    for (const std::size_t i : ruled_->order) {
        if (!exists(i, values)) continue;
        const Domain& domain = parameters_[i].domain;
        const auto* grid = std::get_if<Grid>(&domain);
        values[i] = grid != nullptr ? grid->values[grids[i]]
                                    : space::decode(domain, has_coordinate(domain) ? point.unit[coordinate_[i]] : 0.0);
    }
}

bool SearchSpace::is_kept(std::size_t rule, const Values& values) const {
    std::vector<const Value*> room;
    return is_kept_with(rules_[rule], values_at(ruled_->of_rule[rule], values, room));
}

bool SearchSpace::allows(const Point& point) const {
    Values values;
    read_ruled(point, values);
    for (std::size_t i = 0; i < rules_.size(); ++i)
        if (!is_kept(i, values)) return false;
    return true;
}

const SearchSpace::Point& SearchSpace::allowed_near(const Point& point) const {
    const auto distance = [&](const Point& other) {
        double sum = ruled_->uses_grids && other.grid != point.grid ? static_cast<double>(dimensions_) : 0.0;
        for (const std::size_t j : ruled_->coordinates) sum += std::pow(other.unit[j] - point.unit[j], 2);
        return sum;
    };
    return *std::ranges::min_element(ruled_->points, {}, distance);
}

bool SearchSpace::allows(std::span<const double> unit, std::uint64_t grid_point) const {
    return rules_.empty() || allows(Point{{unit.begin(), unit.end()}, grid_point % grid_size_});
}

Configuration SearchSpace::decode(std::span<const double> unit, std::uint64_t grid_point) const {
    if (rules_.empty()) return at(unit, grid_point);
    const Point wish{{unit.begin(), unit.end()}, grid_point % grid_size_};
    if (allows(wish)) return at(unit, grid_point);
    const Point& kept = allowed_near(wish);
    Point point = wish;
    if (ruled_->uses_grids) point.grid = kept.grid;
    const auto move = [&](double part) {
        for (const std::size_t j : ruled_->coordinates)
            point.unit[j] = std::lerp(wish.unit[j], kept.unit[j], part); // exact at both ends
    };
    double low = 0.0;
    double high = 1.0;
    for (int i = 0; i < halvings; ++i) {
        const double middle = 0.5 * (low + high);
        move(middle);
        (allows(point) ? high : low) = middle;
    }
    move(high);
    for (const std::size_t j : ruled_->coordinates) {
        const double there = std::exchange(point.unit[j], wish.unit[j]);
        if (!allows(point)) point.unit[j] = there;
    }
    return at(point.unit, point.grid);
}

Configuration SearchSpace::spread(std::span<const double> unit, std::uint64_t index, std::uint64_t seed) const {
    std::vector<double> weighted(unit.begin(), unit.end());
    std::size_t next = 0;
    for (const Parameter& parameter : parameters_) {
        const auto* choice = std::get_if<Choice>(&parameter.domain);
        if (choice != nullptr && !choice->weights.empty())
            weighted[next] = space::encode(parameter.domain, space::drawn(parameter.domain, unit[next]));
        if (has_coordinate(parameter.domain)) ++next;
    }
    if (rules_.empty() || allows({weighted, index % grid_size_})) return at(weighted, index);
    return sample(seed, base::TrialId{static_cast<std::uint32_t>(index)});
}

Configuration SearchSpace::walked(std::uint64_t seed, base::TrialId trial) const {
    base::RngStream random(seed, base::Purpose::rules, trial.value());
    Point point{std::vector<double>(dimensions_), trial.value() % grid_size_};
    for (double& each : point.unit) each = random.uniform();
    const Point& kept = ruled_->uses_grids ? allowed_near(point) : ruled_->points[random.below(ruled_->points.size())];
    if (ruled_->uses_grids) point.grid = kept.grid;
    for (const std::size_t j : ruled_->coordinates) point.unit[j] = kept.unit[j];
    constexpr int rounds = 4;
    for (int round = 0; round < rounds; ++round) {
        for (const std::size_t j : ruled_->coordinates) {
            const double before = point.unit[j];
            double low = 0.0;
            double high = 1.0;
            for (int i = 0; i < halvings; ++i) {
                point.unit[j] = low + (high - low) * random.uniform();
                if (allows(point)) break;
                (point.unit[j] < before ? low : high) = point.unit[j];
                point.unit[j] = before;
            }
        }
    }
    return at(point.unit, point.grid);
}

std::optional<Configuration> SearchSpace::nearest(const Configuration& wish, const Configuration& given) const {
    if (broken_by(wish) == nullptr) return wish;
    if (given.empty()) return decode(encode(wish), grid_point(wish));
    const auto rest = pinned(given);
    if (!rest) return std::nullopt;
    return rest->decode(rest->encode(wish), rest->grid_point(wish));
}

std::optional<SearchSpace> SearchSpace::pinned(const Configuration& given) const {
    std::vector<Parameter> parameters = parameters_;
    for (Parameter& parameter : parameters)
        if (const Value* const value = given.find(parameter.name)) parameter.domain = Constant{*value};
    try {
        return SearchSpace(std::move(parameters), rules_);
    } catch (const base::UsageError&) {
        return std::nullopt;
    }
}

} // namespace ranktune::space
