// SPDX-License-Identifier: Apache-2.0
#include "searchers/random.hpp"

#include <memory>

#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_random() {
    study::SearcherInfo info;
    info.name = "random";
    info.description = "independent samples.";
    info.foreign_names = {"variant_generator", "basic_variant", "random_search"};
    info.make = [](const study::StudySpec& spec) { return std::make_unique<RandomSearcher>(spec.space, spec.seed); };
    return info;
}

} // namespace ranktune::searchers
