// SPDX-License-Identifier: Apache-2.0
#pragma once
// CurveNoise: how far apart learning curves are that cross again and again.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/study/codec.hpp"

namespace ranktune::schedulers {

/// PASHA's epsilon (Bohdal et al., ICLR 2023, section 4.2; details as in the authors' implementation in Syne Tune). Two
/// curves are compared at the iterations that both have. If one is better, then worse, then better again at the newest
/// of these, and the newest is beyond the rung below the current ceiling, their order there is noise. The estimate is
/// the 90th percentile (linear interpolation) of |difference| at that newest iteration, over all such pairs.
///
///   a: 1 2 3    b: 2 1 2.5    a is worse, better, better: no noise
///   a: 3 2 3    b: 2 3 2.5    a is better, worse, better: noise, with the distance 0.5
///
/// Scores that are not finite are left out. Of equal scores that of the lower trial is better.
///
/// Only the first `most_curves` trials beyond the rung below the ceiling count (the authors have at most as many in
/// all). So one point costs O(most_curves) at worst, and O(1) for all later trials. 16 bytes per point are kept.
///
/// The percentile of up to 32,640 distances costs 100 us, and moves with nearly every point. Whoever only needs to know
/// that the estimate is not below some level names that level (`watch`): how many distances lie below it is counted as
/// pairs change.
class CurveNoise {
  public:
    static constexpr std::size_t most_curves = 256;

    /// The next point of a trial's curve. Ignored if the trial has been at this iteration.
    void add(base::TrialId trial, base::Iteration iteration, double score);
    /// The ceiling has changed: from now on only points beyond iteration `above` make a pair count.
    void restart(base::Iteration above);
    /// nullopt: no two curves have crossed repeatedly.
    [[nodiscard]] std::optional<double> estimate();
    /// A number that the estimate is certainly not below, without computing the estimate: the level that is watched, or
    /// the estimate if it is known. nullopt: nothing is certain.
    [[nodiscard]] std::optional<double> at_least();
    /// `at_least` answers with this level from now on, while it can. Finite.
    void watch(double level);

    void snapshot(study::Encoder& out) const;
    /// Throws base::FormatError.
    void restore(study::Decoder& in);
    [[nodiscard]] bool valid() const;

  private:
    struct Point {
        base::Iteration iteration = 0;
        double score = 0.0;
    };
    struct Curve {
        std::vector<Point> points;         ///< ascending iterations
        std::optional<std::size_t> counts; ///< its position in counted_
    };
    /// Two counted curves, compared up to the points [next_a] and [next_b].
    struct Pair {
        std::uint32_t next_a = 0;
        std::uint32_t next_b = 0;
        std::uint8_t orders = 0; ///< 1 + how often the order has changed, at most 3; 0: nothing compared yet
        bool a_is_better = false;
        bool beyond = false; ///< a common iteration lies beyond above_
        double distance = 0.0;
        [[nodiscard]] bool crosses() const { return beyond && orders >= 3; }
    };
    void count(base::TrialId trial);
    void catch_up();
    void update(Pair& pair, base::TrialId a, base::TrialId b);
    void compare(Pair& pair, const Curve& a, const Curve& b, bool a_is_lower) const;

    base::Iteration above_ = 0;
    std::vector<Curve> curves_;          ///< by trial number
    std::vector<base::TrialId> counted_; ///< in the order in which they got beyond above_
    std::vector<bool> is_new_;           ///< by position in counted_: has points that were not compared yet
    std::vector<std::size_t> new_;       ///< the positions of these
    std::vector<Pair> pairs_;            ///< of the positions i < j in counted_: at j (j - 1) / 2 + i
    std::size_t crossing_ = 0;           ///< pairs that cross
    bool known_ = true;                  ///< estimate_ is that of the pairs as they are
    std::optional<double> estimate_;
    std::optional<double> level_; ///< that is watched
    std::size_t below_ = 0;       ///< pairs that cross at a distance below level_
    std::vector<double> scratch_; ///< for `estimate`
};

} // namespace ranktune::schedulers
