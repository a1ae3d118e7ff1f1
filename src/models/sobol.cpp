// SPDX-License-Identifier: Apache-2.0
#include "models/sobol.hpp"

#include <bit>
#include <boost/random/sobol.hpp>
#include <cassert>

#include "ranktune/base/rng.hpp"

namespace ranktune::models {
namespace {

/// "new-joe-kuo-6" (S. Joe and F. Y. Kuo, SIAM J. Sci. Comput. 30, 2635-2654, 2008), from the second dimension on.
using Table = boost::random::default_sobol_table;
static_assert(Sobol::max_dimensions <= Table::max_dimension);

constexpr unsigned bits = 32;

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014; variant 13 of Stafford): every input bit affects every
/// output bit.
constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

constexpr std::uint64_t weyl = 0x9E3779B97F4A7C15ULL;

/// The van der Corput sequence: all initial numbers are 1, no polynomial.
std::array<std::uint32_t, bits> first_dimension() {
    std::array<std::uint32_t, bits> v{};
    for (unsigned i = 0; i < bits; ++i) v[i] = 1U << (bits - 1 - i);
    return v;
}

/// Joe and Kuo 2008, equations (2) and (3), with v_k = m_k 2^(32-k): for k > s
/// v_k = a_1 v_(k-1) ^ ... ^ a_(s-1) v_(k-s+1) ^ v_(k-s) ^ (v_(k-s) >> s).
std::array<std::uint32_t, bits> direction_numbers(std::size_t row) {
    const std::uint32_t polynomial = Table::polynomial(row);
    const auto degree = static_cast<unsigned>(std::bit_width(polynomial)) - 1;
    std::array<std::uint32_t, bits> v{};
    for (unsigned i = 0; i < degree; ++i) v[i] = std::uint32_t{Table::minit(row, i)} << (bits - 1 - i);
    for (unsigned i = degree; i < bits; ++i) {
        v[i] = v[i - degree] ^ (v[i - degree] >> degree);
        for (unsigned k = 1; k < degree; ++k) {
            // a_k is the coefficient of x^(s-k).
            if ((polynomial >> (degree - k) & 1U) != 0) v[i] ^= v[i - k];
        }
    }
    return v;
}

} // namespace

Sobol::Sobol(std::size_t dimensions, std::optional<std::uint64_t> seed) {
    assert(dimensions <= max_dimensions);
    directions_.reserve(dimensions);
    if (dimensions > 0) directions_.push_back(first_dimension());
    for (std::size_t row = 0; directions_.size() < dimensions; ++row) directions_.push_back(direction_numbers(row));
    if (!seed) return;
    for (std::size_t d = 0; d < dimensions; ++d)
        keys_.push_back(base::RngStream(*seed, base::Purpose::scramble, 0, static_cast<std::uint32_t>(d))());
}

std::vector<double> Sobol::point(std::uint32_t index) const {
    std::vector<double> unit;
    unit.reserve(directions_.size());
    const std::uint32_t gray = index ^ (index >> 1);
    for (std::size_t d = 0; d < directions_.size(); ++d) {
        std::uint32_t x = 0;
        for (std::uint32_t rest = gray; rest != 0; rest &= rest - 1)
            x ^= directions_[d][static_cast<std::size_t>(std::countr_zero(rest))];
        unit.push_back(keys_.empty() ? x * 0x1p-32 : scrambled(x, d));
    }
    return unit;
}

double Sobol::scrambled(std::uint32_t x, std::size_t dimension) const {
    const std::uint64_t key = keys_[dimension];
    std::uint64_t out = 0;
    for (unsigned bit = 0; bit < bits; ++bit) {
        // The node of the binary tree that the higher bits lead to; the leading 1 keeps nodes of different depths
        // apart.
        const std::uint64_t node = (std::uint64_t{1} << bit) | (static_cast<std::uint64_t>(x) >> (bits - bit));
        const std::uint64_t flip = mix(key + node * weyl) >> 63;
        out = out << 1 | ((x >> (bits - 1 - bit) & 1U) ^ flip);
    }
    // Below the last bit of the sequence every point is alone in its cell.
    const std::uint64_t leaf = (std::uint64_t{1} << bits) | x;
    const std::uint64_t low = mix(key + leaf * weyl) >> (64 - 21);
    return static_cast<double>(out << 21 | low) * 0x1p-53;
}

} // namespace ranktune::models
