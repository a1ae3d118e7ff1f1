// SPDX-License-Identifier: Apache-2.0
#include "searchers/bohb.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "models/kernel_density.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/tried.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_bohb();

namespace {

using Kind = study::OptionInfo::Kind;

/// By coordinate: the number of values of an unordered choice, else 0.
std::vector<std::uint32_t> levels_of(const space::SearchSpace& space) {
    std::vector<std::uint32_t> levels;
    for (const space::Parameter& parameter : space.parameters()) {
        if (!space::has_coordinate(parameter.domain)) continue;
        const auto* choice = std::get_if<space::Choice>(&parameter.domain);
        const bool category = choice != nullptr && !choice->ordered;
        levels.push_back(category ? static_cast<std::uint32_t>(choice->values.size()) : 0);
    }
    return levels;
}

std::size_t least_points(const space::SearchSpace& space, const BohbModel::Options& options) {
    return std::max(options.min_points_in_model, space.dimensions() + 1);
}

double level_at(double unit, std::uint32_t levels) { return std::min(std::floor(unit * levels), levels - 1.0); }
double unit_at(double level, std::uint32_t levels) { return (level + 0.5) / levels; }

} // namespace

std::optional<GoodAndBad> split(std::size_t points, std::size_t finite, std::size_t min_points, std::size_t dimensions,
                                std::uint32_t top_n_percent) {
    if (finite < min_points) return std::nullopt;
    const std::size_t good = std::max(min_points, std::min(points * top_n_percent / 100, finite));
    const std::size_t wanted = std::max(min_points, points * (100 - top_n_percent) / 100);
    const std::size_t bad = std::min(wanted, points - good);
    if (good <= dimensions || bad <= dimensions) return std::nullopt;
    return GoodAndBad{good, bad};
}

void impute(std::vector<double>& rows, std::span<const std::uint32_t> levels, base::RngStream& random) {
    const std::size_t columns = levels.size();
    const std::vector<double> given = rows;
    std::vector<std::vector<std::size_t>> donors(columns); // of each column, the rows that have a value there
    for (std::size_t at = 0; at < given.size(); ++at)
        if (!std::isnan(given[at])) donors[at % columns].push_back(at - at % columns);
    for (std::size_t begin = 0; begin < rows.size(); begin += columns) {
        const std::span<double> row(&rows[begin], columns);
        for (std::size_t j = 0; j < columns; ++j) {
            if (!std::isnan(row[j])) continue;
            if (donors[j].empty()) {
                row[j] = levels[j] == 0 ? random.uniform() : static_cast<double>(random.below(levels[j]));
                continue;
            }
            const std::size_t donor = donors[j][random.below(donors[j].size())];
            for (std::size_t k = j; k < columns; ++k)
                if (std::isnan(row[k])) row[k] = given[donor + k];
        }
    }
}

namespace {

/// Whether there are enough for a model.
LargestBudget::Enough enough_for(const space::SearchSpace& space, const BohbModel::Options& options) {
    return [least = least_points(space, options), dimensions = space.dimensions(), percent = options.top_n_percent](
               std::size_t points, std::size_t finite) {
        return split(points, finite, least, dimensions, percent).has_value();
    };
}

study::SuggestionBasis without_model() {
    study::SuggestionBasis basis;
    basis.model = "random";
    basis.note = "too few results at any iteration for a model";
    return basis;
}

} // namespace

BohbModel::BohbModel(space::SearchSpace space, std::uint64_t seed, const Options& options)
    : space_(std::move(space)),
      seed_(seed),
      options_(options),
      levels_(levels_of(space_)),
      results_(enough_for(space_, options), LargestBudget::Violators::ordered),
      tried_(space_) {
    options_.min_points_in_model = least_points(space_, options);
}

Suggestion BohbModel::suggest(Turn turn, const Observations& seen, std::span<const space::Configuration> others) {
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(turn.ticket));
    Drawn how = drawn(seen, random);
    auto wish = how.point.empty() ? space_.sample(seed_, base::TrialId{static_cast<std::uint32_t>(turn.place)})
                                  : space_.decode(how.point, turn.place);
    if (options_.avoid_duplicates) {
        tried_.read(seen);
        wish = tried_.or_another(std::move(wish), random, others);
    }
    return {std::move(wish), std::move(how.basis)};
}

std::vector<double> BohbModel::rows(std::span<const LargestBudget::Point> points, const Observations& seen,
                                    base::RngStream& random) const {
    std::vector<double> rows;
    rows.reserve(points.size() * levels_.size());
    for (const LargestBudget::Point& each : points) {
        const std::vector<double> unit = seen.point(each.number);
        for (std::size_t j = 0; j < unit.size(); ++j)
            rows.push_back(levels_[j] == 0 || std::isnan(unit[j]) ? unit[j] : level_at(unit[j], levels_[j]));
    }
    impute(rows, levels_, random);
    return rows;
}

namespace {

/// Densities have at most so many points, so that a suggestion takes no longer in a long study: the best ones, and
/// others evenly.
constexpr std::size_t most_good_points = 100;
constexpr std::size_t most_bad = 300;

std::vector<LargestBudget::Point> thinned_out(std::span<const LargestBudget::Point> all, std::size_t most) {
    if (all.size() <= most) return {all.begin(), all.end()};
    std::vector<LargestBudget::Point> some;
    for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
    return some;
}

} // namespace

BohbModel::Drawn BohbModel::drawn(const Observations& seen, base::RngStream& random) {
    if (random.uniform() < options_.random_fraction) {
        Drawn by_chance;
        by_chance.basis.model = "random";
        by_chance.basis.note = "one of those that are random always (random_fraction)";
        return by_chance;
    }
    if (levels_.empty()) return {{}, without_model()};
    results_.read(seen);
    const std::vector<LargestBudget::Point> points = results_.points();
    const auto finite = std::ranges::count_if(points, [](const auto& each) { return std::isfinite(each.score); });
    const auto parts = split(points.size(), static_cast<std::size_t>(finite), options_.min_points_in_model,
                             space_.dimensions(), options_.top_n_percent);
    if (!parts) return {{}, without_model()};
    const auto best =
        std::span(points).first(std::min(parts->good, std::max(most_good_points, options_.min_points_in_model)));
    const auto others = thinned_out(std::span(points).subspan(parts->good, parts->bad), most_bad);
    const models::KernelDensity good(rows(best, seen, random), levels_, options_.min_bandwidth);
    const models::KernelDensity bad(rows(others, seen, random), levels_, options_.min_bandwidth);

    const double floor = std::log(1e-32);
    double most = -std::numeric_limits<double>::infinity();
    std::vector<double> chosen;
    for (std::uint32_t i = 0; i < options_.num_samples; ++i) {
        std::vector<double> point = good.draw_near(random, options_.bandwidth_factor);
        const double gain = std::max(good.log_density(point), floor) - std::max(bad.log_density(point), floor);
        if (gain <= most) continue;
        most = gain;
        chosen = std::move(point);
    }
    for (std::size_t j = 0; j < chosen.size(); ++j)
        if (levels_[j] > 0) chosen[j] = unit_at(chosen[j], levels_[j]);
    Drawn how{std::move(chosen), {}};
    how.basis.model = "bohb";
    how.basis.results = best.size() + others.size();
    how.basis.gain = most;
    how.basis.note = "results at iteration " + std::to_string(results_.iteration());
    return how;
}

BohbSearcher::BohbSearcher(const space::SearchSpace& space, std::uint64_t seed, const BohbModel::Options& options)
    : PreparedSearcher(space, seed, std::make_shared<BohbModel>(space, other_seed(seed), options),
                       Startup(enough_for(space, options), without_model()), std::make_shared<ComputedTickets>(),
                       options.avoid_duplicates ? Duplicates::avoided : Duplicates::allowed) {}

space::Configuration BohbSearcher::stopgap(std::uint64_t place) const {
    return space().sample(seed(), base::TrialId{static_cast<std::uint32_t>(place)});
}

namespace {

std::vector<study::AlgorithmOption> bohb_options() {
    return {
        {.name = "min_points_in_model",
         .kind = Kind::integer,
         .standard = 0,
         .description = "Fewest points of each of the two densities. 0: d + 1, where d counts parameters that are "
                        "neither grids nor constants.",
         .low = 0.0,
         .high = 1e6},
        {.name = "top_n_percent",
         .kind = Kind::integer,
         .standard = 15,
         .description = "Share of the points that are good, in percent.",
         .low = 1.0,
         .high = 99.0},
        {.name = "num_samples",
         .kind = Kind::integer,
         .standard = 64,
         .description = "How many points are drawn for a suggestion, of which the best is taken.",
         .low = 1.0,
         .high = 1e4},
        {.name = "random_fraction",
         .kind = Kind::number,
         .standard = 1.0 / 3.0,
         .description = "Share of the suggestions that are random.",
         .low = 0.0,
         .high = 1.0},
        {.name = "bandwidth_factor",
         .kind = Kind::number,
         .standard = 3.0,
         .description = "Points are drawn with so many times the bandwidth of the good points.",
         .low = 1e-3,
         .high = 1e3},
        {.name = "min_bandwidth",
         .kind = Kind::number,
         .standard = 1e-3,
         .description = "The smallest bandwidth; coordinates lie between 0 and 1.",
         .low = 1e-9,
         .high = 1.0},
    };
}

void check_bohb(const study::AlgorithmCheck& check) {
    if (!check.reads_file || !check.is_right("min_points_in_model")) return;
    const std::int64_t points = check.options.at("min_points_in_model").as_int();
    const std::size_t least = check.coordinates + 1;
    if (points == 0 || static_cast<std::size_t>(points) >= least) return;
    check.complain("min_points_in_model", std::to_string(points) + " points are too few for a density over " +
                                              std::to_string(check.coordinates) + " parameters; use 0, or at least " +
                                              std::to_string(least));
}

std::unique_ptr<Searcher> make_bohb(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    const auto whole = [&](std::string_view name) { return static_cast<std::uint32_t>(options.at(name).as_int()); };
    return std::make_unique<BohbSearcher>(
        spec.space, spec.seed,
        BohbModel::Options{.min_points_in_model = whole("min_points_in_model"),
                           .top_n_percent = whole("top_n_percent"),
                           .num_samples = whole("num_samples"),
                           .random_fraction = options.at("random_fraction").as_double(),
                           .bandwidth_factor = options.at("bandwidth_factor").as_double(),
                           .min_bandwidth = options.at("min_bandwidth").as_double(),
                           .avoid_duplicates = options.at("avoid_duplicates").as_bool()});
}

} // namespace

study::SearcherInfo describe_bohb() {
    study::SearcherInfo info;
    info.name = "bohb";
    info.description =
        "the model of BOHB (Falkner et al., ICML 2018): kernel densities of good and bad configurations, "
        "for the scheduler `hyperband` or `asha`.";
    info.options = bohb_options();
    info.options.push_back(avoid_duplicates_option());
    info.foreign_names = {"TuneBOHB"};
    info.check = check_bohb;
    info.uses_earlier_results = true;
    info.make = make_bohb;
    return info;
}

} // namespace ranktune::searchers
