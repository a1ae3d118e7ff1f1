// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranking: trials in the order of their scores, by position.

#include <cstddef>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"

namespace ranktune::schedulers {

/// Entries in the order of study::better, the best at position 0. Blocks of sorted entries: insert, erase, and either
/// way between position and entry cost a search in one block and a walk over the sizes of the others, which for 100,000
/// entries is well below a microsecond.
class Ranking {
  public:
    /// A trial is inserted at most once (the caller's duty).
    void insert(const study::Ranked& entry);
    /// Requires that it is there.
    void erase(const study::Ranked& entry);

    [[nodiscard]] std::size_t size() const { return size_; }
    /// How many are better than `entry`, which need not be there: its position, if it is.
    [[nodiscard]] std::size_t position(const study::Ranked& entry) const;
    /// Requires position < size().
    [[nodiscard]] const study::Ranked& operator[](std::size_t position) const;
    /// Requires size() > 0.
    [[nodiscard]] const study::Ranked& best() const { return blocks_.front().front(); }

    /// Calls `visit(const study::Ranked&)` for every entry, the best first.
    template <class Visit>
    void for_each(Visit visit) const {
        for (const Block& block : blocks_)
            for (const study::Ranked& entry : block) visit(entry);
    }

    void snapshot(study::Encoder& out) const;
    /// Throws base::FormatError.
    void restore(study::Decoder& in);
    /// Is every entry in its place? O(n).
    [[nodiscard]] bool valid() const;

  private:
    using Block = std::vector<study::Ranked>;
    /// The first block whose last entry is not better than `entry`: where it is, or belongs. Requires size() > 0.
    [[nodiscard]] std::size_t block_of(const study::Ranked& entry) const;

    std::vector<Block> blocks_; ///< none is empty
    std::size_t size_ = 0;
};

} // namespace ranktune::schedulers
