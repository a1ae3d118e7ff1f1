// SPDX-License-Identifier: Apache-2.0
#pragma once
// The brackets of HyperBand (Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization",
// JMLR 18, 2018, algorithm 1), counted in integers.

#include <cstdint>
#include <vector>

#include "ranktune/base/ids.hpp"

namespace ranktune::schedulers {

/// A bracket as it is planned.
struct BracketShape {
    std::vector<base::Iteration> levels; ///< of its rungs, ascending; the last one is the ceiling
    std::uint64_t trials = 0;            ///< that begin in it
    friend bool operator==(const BracketShape&, const BracketShape&) = default;
};

/// How many trials begin in bracket s of 0 .. s_max.
enum class BracketTable : std::uint8_t {
    formula, ///< ceil((s_max + 1) eta^s / (s + 1)): algorithm 1 of the paper
    floor    ///< floor((s_max + 1) / (s + 1)) eta^s: an earlier version of the paper, HpBandSter, DEHB, NePS
};

/// The brackets s = s_max, ..., 0, where s_max is the largest s with first_rung * eta^s <= ceiling. The rungs of
/// bracket s are at floor(ceiling / eta^(s - i)), i = 0 .. s. Requires eta >= 2 and 1 <= ceiling <= 1e15.
///
///   hyperband_brackets(1, 3, 9, formula) == {{1 3 9}, 9}, {{3 9}, 5}, {{9}, 3}
[[nodiscard]] std::vector<BracketShape> hyperband_brackets(base::Iteration first_rung, std::uint64_t eta,
                                                           base::Iteration ceiling, BracketTable table);

} // namespace ranktune::schedulers
