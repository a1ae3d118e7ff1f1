// SPDX-License-Identifier: Apache-2.0
#include "searchers/coordinates/tried.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {
namespace {

/// In spaces that are not small, so many random configurations are tried.
constexpr int most_draws = 8;

class Unrepeated final : public Searcher {
  public:
    Unrepeated(std::unique_ptr<Searcher> inner, const study::StudySpec& spec)
        : inner_(std::move(inner)), spec_(spec), tried_(spec.space) {}

    [[nodiscard]] std::string_view name() const override { return inner_->name(); }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] bool exhausted(std::uint64_t index) const override { return inner_->exhausted(index); }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override {
        auto suggested = inner_->suggest(index, seen);
        if (!suggested) return suggested;
        tried_.read(seen);
        base::RngStream random = draws_for_another(spec_.seed, index);
        return tried_.or_another(*std::move(suggested), random);
    }
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t index, const Observations& seen) const override {
        return inner_->basis(index, seen);
    }
    void apply(const study::Record& record) override { inner_->apply(record); }
    void snapshot(study::Encoder& out) const override { inner_->snapshot(out); }
    void restore(study::Decoder& in) override { inner_->restore(in); }

  private:
    std::unique_ptr<Searcher> inner_;
    const study::StudySpec& spec_;
    mutable TriedConfigurations tried_; ///< no state: follows from the table
};

} // namespace

bool is_finite(const space::SearchSpace& space) {
    return std::ranges::all_of(space.parameters(), [](const space::Parameter& parameter) {
        return space::cardinality(parameter.domain).has_value();
    });
}

TriedConfigurations::TriedConfigurations(const space::SearchSpace& space, bool of_any_space)
    : space_(space), finite_(is_finite(space)), reads_(finite_ || of_any_space) {
    if (finite_ && SmallSpace::is_small(space_)) small_ = fresh_.emplace(space_);
}

std::vector<double> TriedConfigurations::key_of(std::vector<double> coordinates, std::uint64_t grid_point) const {
    coordinates = without_nan(std::move(coordinates));
    if (space_.grid_size() > 1) coordinates.push_back(static_cast<double>(grid_point));
    return coordinates;
}

void TriedConfigurations::read(const Observations& seen) {
    if (!reads_) return;
    if (seen.points() < points_ || !seen.continues(begin_)) {
        points_ = 0;
        small_ = fresh_;
        known_.clear();
    }
    if (points_ == 0) begin_ = seen.first(1);
    points_ = std::max(points_, seen.earlier_points()); // no trial of this study has had these
    for (; points_ < seen.points(); ++points_) {
        std::vector<double> coordinates = seen.point(points_);
        const std::uint64_t grid_point = seen.grid_point(points_);
        if (small_)
            small_->take(small_->number_of(coordinates, grid_point));
        else
            known_.insert(key_of(std::move(coordinates), grid_point));
    }
}

bool TriedConfigurations::has(const space::Configuration& configuration) const {
    if (!reads_) return false;
    std::vector<double> coordinates = coordinates_of(space_, configuration);
    const std::uint64_t grid_point = space_.grid_point(configuration);
    if (small_) return !small_->is_free(small_->number_of(coordinates, grid_point));
    return known_.contains(key_of(std::move(coordinates), grid_point));
}

space::Configuration TriedConfigurations::or_another(space::Configuration wish, base::RngStream& random,
                                                     std::span<const space::Configuration> others) const {
    const auto is_taken = [&](const space::Configuration& each) {
        return has(each) || std::ranges::find(others, each) != others.end();
    };
    if (!finite_ || !is_taken(wish)) return wish;
    const std::uint64_t grid_point = space_.grid_point(wish);
    if (small_) return free_one(grid_point, random, others).value_or(std::move(wish));
    for (int draw = 0; draw < most_draws; ++draw) {
        std::vector<double> unit(space_.dimensions());
        for (double& each : unit) each = random.uniform();
        if (auto other = space_.decode(unit, grid_point); !is_taken(other)) return other;
    }
    return wish;
}

std::optional<space::Configuration> TriedConfigurations::free_one(std::uint64_t grid_point, base::RngStream& random,
                                                                  std::span<const space::Configuration> others) const {
    const std::uint64_t count = small_->per_grid_point();
    const std::uint64_t low = grid_point * count;
    std::uint64_t begin = low + random.below(count);
    // Each of the others is in the way at most once in each of the two searches.
    const auto search = [&](std::uint64_t from, std::uint64_t at, std::uint64_t end) {
        for (std::size_t i = 0; i <= others.size(); ++i) {
            const auto number = small_->first_free(from, at, end);
            if (!number) break;
            auto configuration = small_->at(*number);
            if (std::ranges::find(others, configuration) == others.end()) return std::optional(configuration);
            at = *number + 1 < end ? *number + 1 : from;
        }
        return std::optional<space::Configuration>();
    };
    if (auto found = search(low, begin, low + count)) return found;
    return search(0, begin, small_->size());
}

base::RngStream draws_for_another(std::uint64_t seed, std::uint64_t index) {
    return {seed, base::Purpose::suggest, static_cast<std::uint32_t>(index), std::numeric_limits<std::uint32_t>::max()};
}

study::AlgorithmOption avoid_duplicates_option() {
    return {.name = "avoid_duplicates",
            .kind = study::OptionInfo::Kind::boolean,
            .standard = false,
            .description =
                "In a finite space, no suggestion that a trial has had comes again, as long as there is another one.",
            .foreign_names = {{"Ray Tune", "skip_duplicate"}}};
}

std::unique_ptr<Searcher> without_duplicates(std::unique_ptr<Searcher> searcher, const study::StudySpec& spec) {
    if (!spec.searcher.options.at("avoid_duplicates").as_bool() || !is_finite(spec.space)) return searcher;
    return std::make_unique<Unrepeated>(std::move(searcher), spec);
}

} // namespace ranktune::searchers
