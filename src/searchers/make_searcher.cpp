// SPDX-License-Identifier: Apache-2.0
#include "searchers/make_searcher.hpp"
#include "ranktune/base/error.hpp"
#include "searchers/grid.hpp"
#include "searchers/random.hpp"
#include "searchers/sobol.hpp"

namespace ranktune::searchers {

std::unique_ptr<Searcher> make_searcher(const study::StudySpec& spec) {
    switch (spec.searcher.kind) {
        case study::SearcherKind::random:
            return std::make_unique<RandomSearcher>(spec.space, spec.seed);
        case study::SearcherKind::grid:
            return std::make_unique<GridSearcher>(spec.space);
        case study::SearcherKind::sobol:
            return std::make_unique<SobolSearcher>(spec.space, spec.seed, spec.searcher.scramble);
    }
    throw base::UsageError("unknown searcher number " + std::to_string(static_cast<int>(spec.searcher.kind)));
}

} // namespace ranktune::searchers
