// SPDX-License-Identifier: Apache-2.0
#include "searchers/coordinates/tried.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {
namespace {

/// The product of the numbers of values of a small space is at most this.
constexpr std::uint64_t most_of_small = std::uint64_t{1} << 16U;
/// In spaces that are not small, so many random configurations are tried.
constexpr int most_draws = 8;

bool is_small(const space::SearchSpace& space) {
    std::uint64_t size = 1;
    for (const space::Parameter& parameter : space.parameters()) {
        const std::uint64_t values = space::cardinality(parameter.domain).value_or(most_of_small + 1);
        if (values > most_of_small || (size *= values) > most_of_small) return false;
    }
    return true;
}

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
    if (!is_small(space_)) return;
    taken_.resize(all_.emplace(space_).size());
    if (space_.grid_size() == 1) return;
    for (std::uint64_t number = 0; number < taken_.size(); ++number)
        grid_points_.push_back(static_cast<std::uint16_t>(space_.grid_point(all_->at(number))));
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
        taken_.assign(taken_.size(), false);
        known_.clear();
    }
    if (points_ == 0) begin_ = seen.first(1);
    points_ = std::max(points_, seen.earlier_points()); // no trial of this study has had these
    for (; points_ < seen.points(); ++points_) {
        std::vector<double> coordinates = seen.point(points_);
        const std::uint64_t grid_point = seen.grid_point(points_);
        if (!all_)
            known_.insert(key_of(std::move(coordinates), grid_point));
        else if (const auto number = all_->find(configuration_at(space_, std::move(coordinates), grid_point)))
            taken_[*number] = true;
    }
}

bool TriedConfigurations::has(const space::Configuration& configuration) const {
    if (!reads_) return false;
    if (!all_) return known_.contains(key_of(coordinates_of(space_, configuration), space_.grid_point(configuration)));
    const auto number = all_->find(configuration);
    return !number || taken_[*number]; // what breaks a rule has no number
}

space::Configuration TriedConfigurations::or_another(space::Configuration wish, base::RngStream& random,
                                                     std::span<const space::Configuration> others) const {
    const auto is_taken = [&](const space::Configuration& each) {
        return has(each) || std::ranges::find(others, each) != others.end();
    };
    if (!finite_ || !is_taken(wish)) return wish;
    const std::uint64_t grid_point = space_.grid_point(wish);
    if (all_) return free_one(grid_point, random, others).value_or(std::move(wish));
    for (int draw = 0; draw < most_draws; ++draw) {
        std::vector<double> unit(space_.dimensions());
        for (double& each : unit) each = random.uniform();
        if (auto other = space_.decode(unit, grid_point); !is_taken(other)) return other;
    }
    return wish;
}

std::optional<space::Configuration> TriedConfigurations::free_one(std::uint64_t grid_point, base::RngStream& random,
                                                                  std::span<const space::Configuration> others) const {
    const std::uint64_t begin = random.below(taken_.size());
    const auto first_free = [&](bool of_grid_point) -> std::optional<space::Configuration> {
        for (std::uint64_t k = 0; k < taken_.size(); ++k) {
            const std::uint64_t number = (begin + k) % taken_.size();
            if (taken_[number] || (of_grid_point && grid_point_of(number) != grid_point)) continue;
            space::Configuration each = all_->at(number);
            // Of equal values in a list, the first one counts.
            if (all_->find(each) == number && std::ranges::find(others, each) == others.end()) return each;
        }
        return std::nullopt;
    };
    if (auto found = first_free(true)) return found;
    return first_free(false);
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
