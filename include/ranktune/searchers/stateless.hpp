// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the searchers that keep no state have in common.

#include <cstdint>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"

namespace ranktune::searchers {

/// A searcher that remembers nothing of its own: its answer depends on the seed, the index and, for one that learns,
/// the table of observations.
class StatelessSearcher : public Searcher {
  public:
    void apply(const study::Record& /*record*/) final {}
    void snapshot(study::Encoder& /*out*/) const final {}
    void restore(study::Decoder& /*in*/) final {}
};

} // namespace ranktune::searchers
