// SPDX-License-Identifier: Apache-2.0
#include "schedulers/halving/bracket_table.hpp"

#include <cassert>

namespace ranktune::schedulers {

std::vector<BracketShape> hyperband_brackets(base::Iteration first_rung, std::uint64_t eta, base::Iteration ceiling,
                                             BracketTable table) {
    assert(first_rung >= 1 && eta >= 2 && ceiling >= 1 && ceiling <= 1'000'000'000'000'000);
    std::vector<std::uint64_t> powers{1}; // eta^0 .. eta^s_max
    for (base::Iteration level = first_rung; level <= ceiling / eta; level *= eta)
        powers.push_back(powers.back() * eta);
    std::vector<BracketShape> brackets;
    for (std::uint64_t s = powers.size(); s-- > 0;) {
        BracketShape& bracket = brackets.emplace_back();
        const std::uint64_t all = powers.size(); // s_max + 1
        // At most 50 * 1e15: far from overflow.
        bracket.trials = table == BracketTable::floor ? all / (s + 1) * powers[s] : (all * powers[s] + s) / (s + 1);
        for (std::uint64_t i = 0; i <= s; ++i) bracket.levels.push_back(ceiling / powers[s - i]);
    }
    return brackets;
}

} // namespace ranktune::schedulers
