// SPDX-License-Identifier: Apache-2.0
#pragma once
// Staging: copies of numbers in the type in which they are reduced.

#include <memory>

#include "ranktune/ddp/group.hpp"

namespace ranktune::ddp {

/// Memory for copies of host values that a fabric reduces; it can be kept to the exit.
/// - float16 and bfloat16 are staged as float, so a sum is rounded once.
/// - For minimum and maximum, floating-point numbers are staged as integers of the same order: -inf < ... < -0 < +0 <
///   ... < inf, and NaN beyond the end that wins. So the result does not depend on the order of the ranks.
class Staging {
  public:
    /// Room for `count` numbers of `type` (not uint8) to be reduced with `how`.
    Staging(base::DType type, std::size_t count, Reduce how);
    /// Copies at most `count` values; returns the staged copy, to be reduced.
    [[nodiscard]] base::Buffer load(base::ConstBuffer values);
    /// Copies the result to `values`, which has the type and count of the loaded values.
    void store(base::Buffer values) const;
    /// Owns the memory that `load` returns.
    [[nodiscard]] const std::shared_ptr<void>& memory() const { return memory_; }

  private:
    Reduce how_;
    base::DType staged_type_;
    std::shared_ptr<void> memory_;
};

} // namespace ranktune::ddp
