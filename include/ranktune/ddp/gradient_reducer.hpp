// SPDX-License-Identifier: Apache-2.0
#pragma once
// GradientReducer: sums gradients over the ranks of a trial while back-propagation still runs.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ranktune/ddp/group.hpp"
#include "ranktune/ddp/timeline.hpp"

namespace ranktune::ddp {

/// Which tensors are reduced together. A pure function of sizes and limit, so all ranks and restarts compute the same.
struct BucketPlan {
    struct Slot {
        std::size_t tensor = 0; ///< position in the list of sizes
        std::size_t offset = 0; ///< in elements within the bucket
        std::size_t size = 0;
    };
    struct Bucket {
        std::vector<Slot> slots;
        std::size_t size = 0; ///< elements
    };
    std::vector<Bucket> buckets; ///< in the order in which they become ready and are reduced
};

/// Fills buckets from the *last* tensor to the first (gradients appear in that order) until `limit` elements are
/// reached; a larger tensor is a bucket of its own. Requires limit > 0.
[[nodiscard]] BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit);

/// Sums gradients over the ranks in buckets, each started as soon as it is full.
///
/// One step:  begin();  then for every tensor, last to first: compute its gradient into gradient(i), ready(i);
/// finish(). Afterwards gradient(i) holds the sum over all ranks (the caller divides by the global batch). Ranks
/// without samples leave zeros and call the same. See run_step for the same with failures handled.
///
/// All buckets lie one after the other in one contiguous memory block, so nothing is copied and an optimizer can
/// process all gradients at once. The last bucket has one more number, the *status word*: 1 from a rank that failed in
/// this step. finish() or fail() starts it, so a rank may fail until then; a sum > 0 makes all ranks leave the step
/// together.
///
/// Gradients of float16 and bfloat16 are added in float and rounded once.
///
/// On a GPU, gradients are computed by work of its compute stream. ready(i) starts a bucket after the work that was
/// issued so far, on another stream; finish() waits for the ranks, not for the device: what is issued on the compute
/// stream later sees the sums. The status word goes over the host.
class GradientReducer {
  public:
    /// Collective: all ranks check that their plans agree (throws base::Error on all when not). Requires at least one
    /// tensor. `group` must outlive this object. `tensor_sizes` and `limit` are numbers of elements of `type`: float32,
    /// float64, float16 or bfloat16. The gradients lie in `place`. Throws base::UsageError for any other type, for a
    /// bucket of 2^31 elements or more, and for a place in which the group cannot reduce. The first reducer of a trial
    /// on GPUs forms an NCCL communicator: base::UsageError on all ranks when two of them have the same GPU.
    GradientReducer(Group& group, std::vector<std::size_t> tensor_sizes, std::size_t limit,
                    base::DType type = base::DType::float32, base::Place place = {});
    ~GradientReducer(); ///< ends an open step as fail() does
    GradientReducer(const GradientReducer&) = delete;
    GradientReducer& operator=(const GradientReducer&) = delete;

    [[nodiscard]] const BucketPlan& plan() const;
    /// Storage of tensor i's gradient: tensor_sizes[i] elements; valid as long as this object. Aligned to 64 bytes only
    /// if the plan's offset is.
    [[nodiscard]] base::Buffer gradient_buffer(std::size_t i);
    /// All gradients: the buckets one after the other, in plan order, without the status word.
    [[nodiscard]] base::Buffer gradients_buffer();
    /// The same as C++ arrays. Throws base::UsageError unless T is the gradients' type and they lie on the host.
    template <base::Element T = float>
    [[nodiscard]] std::span<T> gradient(std::size_t i) {
        return gradient_buffer(i).as<T>();
    }
    template <base::Element T = float>
    [[nodiscard]] std::span<T> gradients() {
        return gradients_buffer().as<T>();
    }

    void begin();
    /// Marks gradient i as complete; starts its bucket when all its gradients are. Must be called in plan order.
    void ready(std::size_t i);
    /// Drives reductions in flight; call between layers (MPI makes progress only inside calls).
    void poll();
    /// Waits for all buckets. Throws PeerFailed or Aborted, on all ranks in the same step.
    void finish();
    /// After an exception between begin() and finish(): starts the remaining buckets as zeros and completes the step
    /// with the status word set. Afterwards the group is usable, and the exception can be rethrown to the driver.
    void fail() noexcept;
    /// True between begin() and the end of finish() or fail().
    [[nodiscard]] bool in_step() const;

    /// Records reductions and waits from now on; nullptr stops recording. Without a timeline no clock is read. The
    /// timeline must outlive this object, unless it is replaced.
    void set_timeline(Timeline* timeline);
    /// Times of the last step: how long reductions were in flight, and how long the caller waited for them. Zeros
    /// without a timeline.
    struct Timing {
        double in_flight_s = 0.0;
        double waited_s = 0.0;
    };
    [[nodiscard]] Timing last_timing() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// begin(), `compute_gradients()` (which calls ready() for every tensor, in plan order), finish(). When
/// `compute_gradients` throws, the peers are notified within this step, and the exception is rethrown.
template <class ComputeGradients>
void run_step(GradientReducer& reducer, ComputeGradients&& compute_gradients) {
    reducer.begin();
    try {
        compute_gradients();
    } catch (...) {
        reducer.fail();
        throw;
    }
    reducer.finish();
}

} // namespace ranktune::ddp
