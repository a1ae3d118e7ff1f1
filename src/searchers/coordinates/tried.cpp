// SPDX-License-Identifier: Apache-2.0
#include "searchers/coordinates/tried.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "ranktune/space/enumeration.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"

namespace ranktune::searchers {
namespace {

/// Spaces up to this size are searched for a configuration that is new.
constexpr std::uint64_t most_configurations = std::uint64_t{1} << 16U;
/// In larger ones so many random configurations are tried.
constexpr std::uint32_t most_draws = 8;

/// Of the cross product; saturates above most_configurations.
std::uint64_t configurations_of(const space::SearchSpace& space) {
    std::uint64_t size = 1;
    for (const space::Parameter& parameter : space.parameters()) {
        const std::uint64_t values = space::cardinality(parameter.domain).value_or(1);
        if (values > most_configurations) return values;
        if ((size *= values) > most_configurations) break;
    }
    return size;
}

/// As a key: NaN is not equal to itself.
std::vector<double> key_of(std::vector<double> point) {
    std::ranges::replace_if(
        point, [](double x) { return std::isnan(x); }, -1.0);
    return point;
}

class Unrepeated final : public Searcher {
  public:
    Unrepeated(std::unique_ptr<Searcher> inner, const study::StudySpec& spec) : inner_(std::move(inner)), spec_(spec) {}

    [[nodiscard]] std::string_view name() const override { return inner_->name(); }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] bool exhausted(std::uint64_t index) const override { return inner_->exhausted(index); }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override {
        auto suggested = inner_->suggest(index, seen);
        tried_.read(seen);
        if (!suggested || !tried_.has(spec_.space, *suggested)) return suggested;
        const auto number = static_cast<std::uint32_t>(index);
        base::RngStream random(spec_.seed, base::Purpose::suggest, number, std::numeric_limits<std::uint32_t>::max());
        if (auto other = tried_.another(spec_.space, random)) return other;
        for (std::uint32_t draw = 0; draw < most_draws; ++draw) {
            auto other = spec_.space.sample(random(), base::TrialId{number});
            if (!tried_.has(spec_.space, other)) return other;
        }
        return suggested;
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
        return !std::holds_alternative<space::Grid>(parameter.domain) && space::cardinality(parameter.domain);
    });
}

void TriedConfigurations::read(const Observations& seen) {
    if (seen.points() < points_ || !seen.continues(begin_)) *this = {};
    if (points_ == 0) begin_ = seen.first(1);
    points_ = std::max(points_, seen.earlier_points()); // no trial of this study has had these
    for (; points_ < seen.points(); ++points_) known_.insert(key_of(seen.point(points_)));
}

bool TriedConfigurations::has(const space::SearchSpace& space, const space::Configuration& configuration) const {
    return known_.contains(key_of(coordinates_of(space, configuration)));
}

std::optional<space::Configuration> TriedConfigurations::another(const space::SearchSpace& space,
                                                                 base::RngStream& random) const {
    if (configurations_of(space) > most_configurations) return std::nullopt;
    const space::Enumeration all(space);
    const std::uint64_t begin = random.below(all.size());
    for (std::uint64_t i = 0; i < all.size(); ++i) {
        auto configuration = all.at((begin + i) % all.size());
        if (!has(space, configuration)) return configuration;
    }
    return std::nullopt;
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
