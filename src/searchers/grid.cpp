// SPDX-License-Identifier: Apache-2.0
#include "searchers/grid.hpp"

#include <memory>

#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_grid() {
    study::SearcherInfo info;
    info.name = "grid";
    info.description =
        "all domains crossed in file order, the last one fastest, then the study ends: every domain needs "
        "finitely many values (lists, grids, integers, quantised floats).";
    info.foreign_names = {"grid_search"};
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) { return std::make_unique<GridSearcher>(spec.space); };
    info.whole_space = true;
    return info;
}

} // namespace ranktune::searchers
