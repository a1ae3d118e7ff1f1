// SPDX-License-Identifier: Apache-2.0
#include "searchers/random.hpp"

#include <memory>

#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/tried.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_random() {
    study::SearcherInfo info;
    info.name = "random";
    info.description = "independent samples.";
    info.foreign_names = {"variant_generator", "basic_variant", "random_search"};
    info.options = {avoid_duplicates_option()};
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) {
        return without_duplicates(std::make_unique<RandomSearcher>(spec.space, spec.seed), spec);
    };
    return info;
}

} // namespace ranktune::searchers
