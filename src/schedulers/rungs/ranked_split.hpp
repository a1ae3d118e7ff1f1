// SPDX-License-Identifier: Apache-2.0
#pragma once
// RankedSplit: the entries of a rung, split into the best k(n) and the rest without sorting.

#include <cstddef>
#include <cstdint>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"
#include "schedulers/rungs/heap.hpp"

namespace ranktune::schedulers {

/// Orders for heaps of entries.
struct BetterFirst {
    bool operator()(const study::Ranked& a, const study::Ranked& b) const { return study::better(a, b); }
};
struct WorseFirst {
    bool operator()(const study::Ranked& a, const study::Ranked& b) const { return study::better(b, a); }
};

/// How many of n entries are "the best" of a rung. Grows by at most one per entry and never shrinks.
class BestCount {
  public:
    enum class Rule : std::uint8_t {
        floor,        ///< floor(n / eta): promotion (Li et al., MLSys 2020, algorithm 2)
        at_least_one, ///< max(floor(n / eta), 1): stopping
        quantile      ///< floor((n - 1) / eta) + 1: the best down to the upper neighbour of the (1 - 1/eta) quantile
    };
    /// eta > 1. Computed in integers if eta is an integer.
    BestCount(Rule rule, double eta);

    [[nodiscard]] std::size_t operator()(std::size_t n) const {
        if (n == 0) return 0;
        switch (rule_) {
            case Rule::floor:
                return whole(n);
            case Rule::at_least_one:
                return whole(n) == 0 ? 1 : whole(n);
            case Rule::quantile:
                return whole(n - 1) + 1;
        }
        return 0;
    }
    /// quantile only: how far the (1 - 1/eta) quantile of n > 0 values lies below the worst of the best, as a fraction
    /// of its distance to the best of the rest. In [0, 1).
    [[nodiscard]] double share_below(std::size_t n) const;

  private:
    [[nodiscard]] std::size_t whole(std::size_t n) const {
        return integer_ != 0 ? n / integer_ : static_cast<std::size_t>(static_cast<double>(n) / eta_);
    }
    Rule rule_;
    double eta_;
    std::uint64_t integer_; ///< eta, when it is an integer
};

/// n entries ordered by study::better. Both parts are binary heaps with the boundary on top (the worst of the best, the
/// best of the rest): an entry costs O(log n), because only boundary elements ever change sides.
///
///   floor, eta 3:  insert 5 -> best {}     insert 7 -> best {}     insert 6 -> best {7}, rest {5, 6}
class RankedSplit {
  public:
    explicit RankedSplit(BestCount count) : count_(count) {}

    /// Requires that the trial is not inserted yet.
    void insert(const study::Ranked& entry);

    /// Removes `entry`. Returns false if it is not there. O(n): only for reopened trials, which are rare.
    bool erase(const study::Ranked& entry);

    /// Whether `entry`, which is not inserted yet, would be among the best.
    [[nodiscard]] bool would_be_in_best(const study::Ranked& entry) const {
        if (count_(size() + 1) > best_.size()) return rest_.empty() || study::better(entry, rest_.top());
        return !best_.empty() && study::better(entry, best_.top());
    }
    /// Whether `entry`, which is inserted, is among the best.
    [[nodiscard]] bool in_best(const study::Ranked& entry) const {
        return !best_.empty() && !study::better(best_.top(), entry);
    }

    [[nodiscard]] std::size_t size() const { return best_.size() + rest_.size(); }
    /// The size of the best part after one more insertion.
    [[nodiscard]] std::size_t next_best_count() const { return count_(size() + 1); }
    /// Rule quantile: the (1 - 1/eta) quantile, linear between neighbours as in numpy. Requires size() > 0.
    [[nodiscard]] double quantile() const;

    /// Calls `visit(const study::Ranked&)` for every entry, in unspecified order.
    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& entry : best_.items()) visit(entry);
        for (const auto& entry : rest_.items()) visit(entry);
    }

    void snapshot(study::Encoder& out) const;
    /// Throws base::FormatError when the bytes are not a snapshot of a split with the same count.
    void restore(study::Decoder& in);
    /// Whether every entry is on its side, and both heaps are in order. O(n).
    [[nodiscard]] bool valid() const;

  private:
    BestCount count_;
    Heap<study::Ranked, WorseFirst> best_;
    Heap<study::Ranked, BetterFirst> rest_;
};

} // namespace ranktune::schedulers
