// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base class of the searchers that keep no state.

#include <cstdint>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"

namespace ranktune::searchers {

/// A searcher without state of its own: its suggestions depend on the seed, the index and, if it learns, the table of
/// observations.
class StatelessSearcher : public Searcher {
  public:
    void apply(const study::Record& /*record*/) final {}
    void snapshot(study::Encoder& /*out*/) const final {}
    void restore(study::Decoder& /*in*/) final {}
};

} // namespace ranktune::searchers
