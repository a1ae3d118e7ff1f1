// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of a reducer's gradients: where each of them lies, and loops over their numbers.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ranktune/base/huge_pages.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

/// All buckets of a plan, one after the other, and one more number.
struct GradientMemory {
    GradientMemory(std::span<const std::size_t> sizes, BucketPlan buckets, base::DType t, base::Place where);

    [[nodiscard]] base::Buffer all() const { return {memory.get(), total + 1, type, place}; }
    [[nodiscard]] base::Buffer gradient(std::size_t tensor) const { return all().part(offset[tensor], size[tensor]); }
    [[nodiscard]] base::Buffer bucket(std::size_t b) const { return all().part(bucket_begin[b], plan.buckets[b].size); }

    BucketPlan plan;
    base::DType type;
    base::Place place;
    std::vector<std::size_t> size;
    std::vector<std::size_t> offset;       ///< per tensor
    std::vector<std::size_t> bucket_begin; ///< per bucket
    std::size_t total = 0;
    std::shared_ptr<void> memory; ///< shared, for comm::keep_to_exit
};

/// Work on the compute stream where the numbers lie on an accelerator.
void fill_with_zeros(base::Buffer values);
/// Writes one number of any gradient type.
void write_number(base::Buffer to, float value);
/// Whether the number is above zero.
[[nodiscard]] bool is_positive(base::ConstBuffer number);

/// Sums of gradients of several micro-steps, on one rank. Allocates at the first of them.
class Accumulator {
  public:
    /// Adds all gradients (without the status word).
    void take(const GradientMemory& gradients);
    /// Adds what was taken to bucket b. Does nothing when nothing was.
    void add_to(const GradientMemory& gradients, std::size_t b) const;
    void forget() { holds_ = false; }
    [[nodiscard]] bool holds() const { return holds_; }

  private:
    [[nodiscard]] base::Buffer sums(const GradientMemory& gradients) const;

    std::shared_ptr<void> memory_; ///< in the place of the gradients; numbers of 16 bits as float
    std::size_t count_ = 0;
    bool holds_ = false;
};

/// GradientReducer::clip_norm. On an accelerator, work of its compute stream, for float32.
class Clipper {
  public:
    void clip(base::Buffer values, double most);
    /// Waits for the device.
    [[nodiscard]] double last_norm() const;

  private:
    double norm_ = 0.0;
    std::shared_ptr<void> numbers_; ///< of the device: see device::Stream::clip
    base::Place place_;
};

} // namespace ranktune::ddp
