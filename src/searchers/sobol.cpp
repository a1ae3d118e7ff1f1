// SPDX-License-Identifier: Apache-2.0
#include "searchers/sobol.hpp"

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {
namespace {

static_assert(models::Sobol::max_dimensions == study::max_sobol_parameters,
              "the parser refuses what has no directions");

std::size_t checked_dimensions(const space::SearchSpace& space) {
    if (space.dimensions() > models::Sobol::max_dimensions)
        throw base::UsageError("the sobol searcher has direction numbers for at most " +
                               std::to_string(models::Sobol::max_dimensions) + " parameters, the space has " +
                               std::to_string(space.dimensions()) + "; use the random searcher");
    return space.dimensions();
}

} // namespace

SobolSearcher::SobolSearcher(const space::SearchSpace& space, std::uint64_t seed, bool scramble)
    : space_(space), sequence_(checked_dimensions(space), scramble ? std::optional(seed) : std::nullopt) {}

std::optional<space::Configuration> SobolSearcher::suggest(std::uint64_t index, const Observations&) const {
    return space_.decode(sequence_.point(index), index);
}

} // namespace ranktune::searchers
