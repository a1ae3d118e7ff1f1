// SPDX-License-Identifier: Apache-2.0
#pragma once
// GradientReducer: sums gradients over the ranks of a trial while back-propagation still runs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ranktune/ddp/collective.hpp"

namespace ranktune::ddp {

/// Which tensors travel together. A pure function of sizes and limit, so all ranks and all lives compute the same.
struct BucketPlan {
    struct Slot {
        std::size_t tensor = 0; ///< position in the list of sizes
        std::size_t offset = 0; ///< in floats within the bucket
        std::size_t size = 0;
    };
    struct Bucket {
        std::vector<Slot> slots;
        std::size_t size = 0; ///< floats
    };
    std::vector<Bucket> buckets; ///< in the order in which they become ready and are reduced
};

/// Fills buckets from the *last* tensor to the first (gradients appear in that order) until `limit_floats` is reached;
/// a larger tensor is a bucket of its own. Requires limit_floats > 0.
[[nodiscard]] BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit_floats);

/// When a span of a timeline begins and ends, in seconds of the caller's clock.
struct Span {
    std::string name;
    double begin = 0.0;
    double end = 0.0;
};

/// One step:  begin();  then for every tensor, last to first: compute its gradient into gradient(i), ready(i);
/// finish(); Afterwards gradient(i) holds the sum over all ranks (the caller divides by the global batch). Ranks
/// without samples leave zeros and call the same. Buffers are contiguous per bucket, so nothing is copied.
class GradientReducer {
  public:
    /// Collective: all ranks check that their plans agree (throws base::Error on all when not).
    GradientReducer(Collective& collective, std::vector<std::size_t> tensor_sizes, std::size_t limit_floats);
    ~GradientReducer();
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    /// Storage of tensor i's gradient: tensor_sizes[i] floats, stays valid.
    [[nodiscard]] std::span<float> gradient(std::size_t i);

    void begin();
    /// Gradient i is complete; starts its bucket when it was the last one missing. Must be called in plan order.
    void ready(std::size_t i);
    /// Drives what is in flight; call between layers (MPI makes progress only inside calls).
    void poll();
    /// Waits for all buckets. Throws PeerFailed or Aborted, on all ranks in the same step.
    void finish();
    /// After an exception between begin() and finish(): starts the buckets still owed as zeros and completes the step
    /// with failed = true. Afterwards the communicator is clean and Collective::fail must not be called for this step.
    void fail() noexcept;

    [[nodiscard]] std::vector<std::size_t> owed_buckets() const;

    /// Shares of the last step, for the timeline: how long reductions were in flight, and how much of that the caller
    /// waited for.
    struct Timing {
        double in_flight_s = 0.0;
        double waited_s = 0.0;
    };
    [[nodiscard]] Timing last_timing() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::ddp
