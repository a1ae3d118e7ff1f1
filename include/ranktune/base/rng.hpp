// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counter-based random numbers: a sample is a pure function of (seed, purpose, trial, draw), never of earlier draws.

#include <array>
#include <cstdint>
#include <limits>

namespace ranktune::base {

/// What a stream is for. Two purposes never share numbers. The named ones belong to ranktune; `user_purpose` makes one
/// for users. The values are part of the reproducibility contract: append only, below `first_user_purpose`.
enum class Purpose : std::uint32_t {
    sample = 1,     ///< configurations of random search; draw = index of the parameter
    scramble = 2,   ///< scrambling of low-discrepancy sequences; draw = dimension
    bracket = 3,    ///< bracket of a new trial
    initialise = 4, ///< model parameters; draw = index of the tensor
    shuffle = 5,    ///< order of the training samples; draw = epoch
    dropout = 6,    ///< dropout masks; draw = mixed from layer, epoch and global sample index
    augment = 7,    ///< data augmentation
    fault = 8,      ///< simulated faults and delays (tests, simulator)
    curve = 9,      ///< synthetic learning curves (tests, simulator)
    exploit = 10,   ///< whom a trial takes over from; draw = its ready point
    explore = 11,   ///< and with which hyper-parameters; draw = its ready point
    suggest = 12,   ///< suggestions of searchers that learn; trial = number of the suggestion
    rules = 13,     ///< where the rules of a space are kept; walks of its samples
};

/// Purposes from here on belong to users of the library; no version of ranktune uses them.
inline constexpr std::uint32_t first_user_purpose = 0x8000'0000U;

/// A purpose of your own, for any `number` below 2^31: `RngStream(context.seed(), user_purpose(0), trial, draw)`. It
/// shares no numbers with other user purposes or with ranktune's.
[[nodiscard]] constexpr Purpose user_purpose(std::uint32_t number) {
    return static_cast<Purpose>(first_user_purpose | number);
}

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four 32-bit words from a
/// 128-bit counter and a 64-bit key.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

/// A stream keyed (seed, purpose, trial, draw); up to 2^32 blocks of four words. A UniformRandomBitGenerator. Copyable;
/// a copy yields the same numbers as the original from there on. Not for cryptography.
class RngStream {
  public:
    using result_type = std::uint64_t;

    RngStream(std::uint64_t seed, Purpose purpose, std::uint32_t trial = 0, std::uint32_t draw = 0);

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
    result_type operator()();

    /// Uniform in [0, 1), a multiple of 2^-53.
    double uniform();
    /// Uniform in (0, 1): for logarithms and inverse distribution functions.
    double uniform_open();
    /// Uniform in 0 .. bound-1 without bias (Lemire 2019). Requires bound > 0.
    std::uint64_t below(std::uint64_t bound);
    /// Standard normal, by the inverse distribution function: one draw for one number.
    double normal();

  private:
    std::array<std::uint32_t, 4> counter_;
    std::array<std::uint32_t, 2> key_;
    std::array<std::uint32_t, 4> block_{};
    unsigned used_ = 4;
};

/// Inverse of the standard normal distribution function (Wichura, AS 241, PPND16; relative error about 1e-16). Requires
/// 0 < p < 1.
[[nodiscard]] double inverse_normal(double p);

} // namespace ranktune::base
