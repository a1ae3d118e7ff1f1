// SPDX-License-Identifier: Apache-2.0
#include "searchers/sobol.hpp"

#include <memory>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/tried.hpp"

namespace ranktune::searchers {
namespace {

std::size_t checked_dimensions(const space::SearchSpace& space) {
    if (space.dimensions() > models::Sobol::max_dimensions)
        throw base::UsageError("the sobol searcher has direction numbers for at most " +
                               std::to_string(models::Sobol::max_dimensions) + " parameters, the space has " +
                               std::to_string(space.dimensions()) + "; use the random searcher");
    return space.dimensions();
}

} // namespace

SobolSearcher::SobolSearcher(const space::SearchSpace& space, std::uint64_t seed, bool scramble)
    : space_(space), seed_(seed), sequence_(checked_dimensions(space), scramble ? std::optional(seed) : std::nullopt) {}

std::optional<space::Configuration> SobolSearcher::suggest(std::uint64_t index, const Observations&) const {
    return space_.spread(sequence_.point(index), index, seed_);
}

study::SearcherInfo describe_sobol() {
    study::SearcherInfo info;
    info.name = "sobol";
    info.description = "a low-discrepancy sequence over all parameters but grids and constants.";
    info.options = {{.name = "scramble",
                     .kind = study::OptionInfo::Kind::boolean,
                     .standard = true,
                     .description = "scramble the sequence with the seed."},
                    avoid_duplicates_option()};
    info.foreign_names = {"qmc", "quasirandom"};
    info.check = [](const study::AlgorithmCheck& check) {
        if (check.coordinates <= models::Sobol::max_dimensions) return;
        check.complain("type", "\"sobol\" has directions for " + std::to_string(models::Sobol::max_dimensions) +
                                   " parameters, the space has " + std::to_string(check.coordinates) +
                                   "; use \"random\"");
    };
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) {
        const bool scramble = spec.searcher.options.at("scramble").as_bool();
        return without_duplicates(std::make_unique<SobolSearcher>(spec.space, spec.seed, scramble), spec);
    };
    return info;
}

} // namespace ranktune::searchers
