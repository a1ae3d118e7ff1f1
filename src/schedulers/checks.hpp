// SPDX-License-Identifier: Apache-2.0
#pragma once
// For check_invariants, which debug builds call after every event: a message is put together only when it is needed.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace ranktune::schedulers {

/// Throws std::logic_error with the parts, one after the other, unless `holds`.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
    if (holds) [[likely]]
        return;
    std::ostringstream text;
    (text << ... << parts);
    throw std::logic_error(text.str());
}

/// A set of trials that is emptied in O(1).
class MarkedTrials {
  public:
    explicit MarkedTrials(std::size_t trials) : marks_(trials, 0) {}
    void clear() { ++round_; }
    /// False when it was marked since the last `clear`, or there is no such trial.
    bool mark(std::size_t trial) {
        if (trial >= marks_.size() || marks_[trial] == round_) return false;
        marks_[trial] = round_;
        return true;
    }

  private:
    std::vector<std::uint32_t> marks_;
    std::uint32_t round_ = 1;
};

} // namespace ranktune::schedulers
