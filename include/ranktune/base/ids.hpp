// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strong identifiers: a trial number cannot be passed where an attempt or a rank is meant.

#include <compare>
#include <cstdint>
#include <functional>

namespace ranktune::base {

/// An integer that only compares with its own kind. `Tag` is never defined.
template <class Tag, class Rep = std::uint32_t>
class Id {
  public:
    using rep = Rep;

    constexpr Id() = default;
    constexpr explicit Id(Rep value) : value_(value) {}

    [[nodiscard]] constexpr Rep value() const { return value_; }
    [[nodiscard]] constexpr Id next() const { return Id(static_cast<Rep>(value_ + 1)); }

    friend constexpr auto operator<=>(Id, Id) = default;

  private:
    Rep value_{};
};

/// Position of a trial in the study, counted from 0 in the order of creation.
using TrialId = Id<struct TrialTag>;
/// One execution of a trial by one group of ranks, counted from 1 within the trial. Zero: never started.
using AttemptId = Id<struct AttemptTag>;
/// One life of the head on a study directory, counted from 1. Zero: none yet.
using Incarnation = Id<struct IncarnationTag>;
/// Rank in the world communicator. Rank 0 is the head.
using Rank = Id<struct RankTag>;
/// Position of a metric in the study's table of metric names.
using MetricId = Id<struct MetricTag, std::uint16_t>;

/// Training progress of a trial: a count of completed iterations. An integer everywhere: rungs are never compared as
/// floating-point numbers.
using Iteration = std::uint64_t;

inline constexpr Rank head_rank{0};

} // namespace ranktune::base

template <class Tag, class Rep>
struct std::hash<ranktune::base::Id<Tag, Rep>> {
    std::size_t operator()(ranktune::base::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
