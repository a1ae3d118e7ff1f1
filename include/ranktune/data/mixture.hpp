// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixture: several sources in one stream of samples, in exact shares. Pure: what stands at a position follows from the
// position alone.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ranktune/data/order.hpp"

namespace ranktune::data {

/// One source of a mixture.
struct MixtureSource {
    OrderShape shape;
    double weight = 1.0;    ///< its share is weight / sum of the weights of all that take part
    std::uint64_t from = 0; ///< takes part from this position on, rounded up to a whole period: a curriculum
};

/// An endless stream. In each period of 1,000 positions every source has its exact share (weights in thousandths, by
/// largest remainder), at shuffled places. A source goes through its own epochs, each in its own order, wherever it
/// stood before: no sample is left out or repeated when another source joins. Copyable; calls need one thread at a
/// time.
class Mixture {
  public:
    static constexpr std::uint64_t period = 1000;

    /// Throws base::UsageError: no source takes part from position 0 on, one without samples, a weight that is not
    /// positive, or one that gets no position of a period.
    Mixture(std::vector<MixtureSource> sources, std::uint64_t seed, std::uint32_t trial);

    struct Place {
        std::size_t source = 0;
        std::uint64_t epoch = 0;  ///< of the source
        std::uint64_t sample = 0; ///< of the source
    };
    [[nodiscard]] Place operator()(std::uint64_t position);

  private:
    /// From `first` on, every period has these shares.
    struct Stage {
        std::uint64_t first = 0;           ///< period
        std::vector<std::uint64_t> before; ///< positions of each source in all earlier periods
        std::vector<std::uint64_t> shares; ///< of each source in a period; their sum is `period`
    };
    struct InPeriod {
        std::uint16_t source = 0;
        std::uint16_t earlier = 0; ///< positions of that source before, in the same period
    };
    void add_stage(std::uint64_t first);
    [[nodiscard]] const Stage& stage_of(std::uint64_t number) const;
    void enter(std::uint64_t number);

    std::vector<MixtureSource> sources_;
    std::uint64_t seed_;
    std::uint32_t trial_;
    std::vector<Stage> stages_;
    std::uint64_t entered_ = ~std::uint64_t{0}; ///< the period of `places_`
    std::array<InPeriod, period> places_{};
    struct Epoch {
        std::uint64_t number;
        Order order;
    };
    std::vector<std::optional<Epoch>> epochs_; ///< of each source, the last one asked for
};

} // namespace ranktune::data
