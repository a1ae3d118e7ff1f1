// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sobol sequences with random access, plain or scrambled.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ranktune::models {

/// Sobol's low-discrepancy sequence (I. M. Sobol', 1967) in Gray-code order (Antonov and Saleev, 1979) with the
/// direction numbers new-joe-kuo-6 (Joe and Kuo, 2008). Point 0 is part of the sequence: any 2^m points that start at a
/// multiple of 2^m are a (t, m, s)-net in base 2. Dropping point 0 or taking another number of points loses that
/// balance.
///
/// Scrambling is Owen's nested uniform one (A. B. Owen, 1995): each bit is flipped or not by a hash of the bits above
/// it, keyed (seed, scramble, dimension). The points stay a net, each is uniform in the unit cube, and two seeds give
/// independent sequences. The 21 bits after the 32 of the sequence are random. Immutable after construction.
class Sobol {
  public:
    static constexpr std::size_t max_dimensions = 3667;

    /// `seed`: scrambled with that seed; nullopt: not scrambled. Requires dimensions <= max_dimensions.
    Sobol(std::size_t dimensions, std::optional<std::uint64_t> seed);

    [[nodiscard]] std::size_t dimensions() const { return directions_.size(); }
    /// Point `index`, each coordinate in [0, 1): a multiple of 2^-32, or of 2^-53 if scrambled. Needs no state;
    /// O(dimensions x 32).
    [[nodiscard]] std::vector<double> point(std::uint32_t index) const;

  private:
    using Directions = std::array<std::uint32_t, 32>;
    [[nodiscard]] double scrambled(std::uint32_t bits, std::size_t dimension) const;

    std::vector<Directions> directions_; ///< per dimension; entry k is used for bit k of the Gray code
    std::vector<std::uint64_t> keys_;    ///< per dimension; empty: not scrambled
};

} // namespace ranktune::models
