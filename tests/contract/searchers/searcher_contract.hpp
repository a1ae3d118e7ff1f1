// SPDX-License-Identifier: Apache-2.0
#pragma once
// The protocol that every searcher has to keep, written once against the interface. To test a searcher of your own,
// call `check_searcher_contract` with a function that makes it.

#include <functional>
#include <memory>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::contract {

/// Makes the searcher under test for a study; called often, each time for an independent instance.
using MakeSearcher = std::function<std::unique_ptr<searchers::Searcher>(const study::StudySpec&)>;

struct SearcherTraits {
    bool depends_on_seed = true; ///< two seeds give different configurations
    bool learns = false;         ///< what it suggests may depend on applied records
    bool continuous = true;      ///< takes continuous domains
};

/// Runs the whole protocol, as sections of the test case that calls it.
void check_searcher_contract(const MakeSearcher& make, SearcherTraits traits);

} // namespace ranktune::contract
