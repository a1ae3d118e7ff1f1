// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the searchers that learn nothing have in common.

#include <cstdint>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"

namespace ranktune::searchers {

/// A searcher whose answer depends on (seed, index) alone: records do not interest it and there is nothing to keep.
class StatelessSearcher : public Searcher {
  public:
    void apply(const study::Record& /*record*/) final {}
    void snapshot(study::Encoder& /*out*/) const final {}
    void restore(study::Decoder& /*in*/) final {}
};

} // namespace ranktune::searchers
