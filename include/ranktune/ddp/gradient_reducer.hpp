// SPDX-License-Identifier: Apache-2.0
#pragma once
// GradientReducer: sums gradients over the ranks of a trial while back-propagation still runs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/ddp/compression.hpp"
#include "ranktune/ddp/group.hpp"
#include "ranktune/study/state.hpp"

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
/// reached; a larger tensor is a bucket of its own. `first` > 0: the limit of the first bucket, if it is smaller: its
/// sum begins early. Requires limit > 0.
[[nodiscard]] BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit,
                                      std::size_t first = 0);

/// The same for gradients that become ready in this `order`, in which every tensor is once.
[[nodiscard]] BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit, std::size_t first,
                                      std::span<const std::size_t> order);

/// What a GradientReducer is made of, beside the sizes of its tensors.
struct ReducerSettings {
    std::size_t limit = std::size_t{1} << 18U; ///< numbers of a bucket: 1 MiB of float32
    base::DType type = base::DType::float32;   ///< or float64, float16, bfloat16
    base::Place place = {};                    ///< where the gradients lie
    Compression compression = {};              ///< needs float32
    std::vector<Matrix> matrices = {};         ///< shapes of the tensors, for powersgd; empty: none is a matrix
    std::size_t first_limit = 0;               ///< numbers of the first bucket, if that is fewer; 0: as the others
};

/// Sums gradients over the ranks in buckets, each started as soon as it is full.
///
/// One step:  begin();  then for every tensor, last to first: compute its gradient into gradient(i), ready(i);
/// finish(). Afterwards gradient(i) holds the sum over all ranks (the caller divides by the global batch). Ranks
/// without samples leave zeros and call the same. See run_step for the same with failures handled.
///
/// Gradients may become ready in any order; buckets are started in the order of the plan, so another order than the
/// plan's hides less of the communication (replan()). A gradient that is not ready when finish() is called counts as
/// zero on this rank, whatever its memory holds: a parameter that a step does not use. The ranks need not agree about
/// which ones those are.
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
    /// The same with settings. Throws base::UsageError for a compression of other gradients than float32, an impossible
    /// density or rank, and matrices that do not fit their tensors.
    GradientReducer(Group& group, std::vector<std::size_t> tensor_sizes, ReducerSettings settings);
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
    /// Marks gradient i as complete; starts its bucket when all its gradients are, and those before it have been
    /// started. Throws base::UsageError when gradient i is ready already.
    void ready(std::size_t i);
    /// Drives reductions in flight; call between layers (MPI makes progress only inside calls).
    void poll();
    /// Waits for all buckets. Throws PeerFailed or Aborted, on all ranks in the same step.
    void finish();
    /// After an exception between begin() and finish(): starts the remaining buckets as zeros and completes the step
    /// with the status word set. Afterwards the group is usable, and the exception can be rethrown to the driver.
    void fail() noexcept;
    /// On a GPU: throws when sums were given up: a rank is gone, NCCL failed, or failure.collective_timeout is over.
    /// Call it after waiting for the GPU by other means: what was computed from those sums is undefined. Local.
    void check_sums();
    /// True between begin() and the end of finish() or fail().
    [[nodiscard]] bool in_step() const;

    /// Begins a micro-step of gradient accumulation: finish() adds its gradients to a sum on this rank, without any
    /// communication, and the next step of begin() reduces the sum together with its own gradients. After such a
    /// finish(), the gradients are undefined. Sums are added in float (float64: in double), and rounded once. See
    /// run_micro_step. Not collective; all ranks may accumulate another number of times.
    void begin_micro_step();

    /// After finish(): scales all gradients by min(1, most / (norm + 1e-6)), where norm is the 2-norm of all of them
    /// together, as torch.nn.utils.clip_grad_norm_ does. The same on all ranks, without communication. Requires
    /// most > 0. (The gradients are sums: divide before, or clip with `most` times the divisor.)
    void clip_norm(double most);
    /// The norm that the last clip_norm found; 0 before. Waits for a GPU.
    [[nodiscard]] double last_norm() const;

    /// The tensors in the order in which rank 0's gradients became ready in the last step. Collective, between steps.
    [[nodiscard]] std::vector<std::size_t> agreed_arrivals();
    /// Plans the buckets again, in the order of `agreed_arrivals`: call it once, after the first step. Collective,
    /// between steps. Returns whether the plan changed, on all ranks; then the
    /// gradients lie elsewhere (ask again for gradient_buffer) and are zero. The order of additions depends on the
    /// plan: see `order`.
    bool replan();
    /// The tensors in the order of the plan. A training that replans saves it, and goes on with `reorder`.
    [[nodiscard]] std::vector<std::size_t> order() const;
    /// As replan, with an order that all ranks know; it is checked.
    bool reorder(const std::vector<std::size_t>& order);

    /// Error feedback (Compression::feeds_back): shares what has not been sent yet evenly among the ranks, so that all
    /// of them have the same state, which rank 0 can save. Costs one reduction that is not compressed: call it at the
    /// end of an iteration, not of a step. Collective, between steps; nothing to do without error feedback.
    void settle();
    /// Saves the state of error feedback, as tensors whose names begin with `gradients.`; nothing without. Throws
    /// base::UsageError unless the state is settled.
    void save(study::StateSink& sink) const;
    /// Goes on from a saved state, on any number of ranks; exactly the same on the same number. A tensor that
    /// `source` does not have starts afresh.
    void load(study::StateSource& source);

    /// What this rank has sent since the reducer was made. A sum of k bytes counts as 2 k (n - 1) / n on n ranks, what
    /// any algorithm has to send at least; in that way figures of compressed and plain gradients can be compared.
    struct Traffic {
        std::uint64_t steps = 0; ///< with a reduction
        std::uint64_t bytes = 0;
        std::uint64_t plain_bytes = 0; ///< what the same steps would have sent without compression
    };
    [[nodiscard]] Traffic traffic() const;

    /// How long reductions were in flight, and how long only they were: the caller waited for them, or on a GPU, the
    /// compute stream did. Zeros without a clock.
    struct Timing {
        double in_flight_s = 0.0;
        double waited_s = 0.0;
    };
    /// Of all steps so far, one after the other. On a GPU it waits for the sums.
    [[nodiscard]] Timing total_timing() const;
    /// Measures both from now on by this clock, in seconds (on a GPU by events of its streams); an empty one ends that.
    void set_clock(std::function<double()> clock);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// After begin() or begin_micro_step(): `compute_gradients()` (which calls ready() for every tensor, in plan order),
/// then finish(). When `compute_gradients` throws, the reducer fails the step, and the exception is rethrown.
template <class ComputeGradients>
void complete_step(GradientReducer& reducer, ComputeGradients&& compute_gradients) {
    try {
        compute_gradients();
    } catch (...) {
        reducer.fail();
        throw;
    }
    reducer.finish();
}

/// A whole step. When `compute_gradients` throws, the peers are notified within this step.
template <class ComputeGradients>
void run_step(GradientReducer& reducer, ComputeGradients&& compute_gradients) {
    reducer.begin();
    complete_step(reducer, std::forward<ComputeGradients>(compute_gradients));
}

/// A whole micro-step. When `compute_gradients` throws, what was accumulated is discarded.
template <class ComputeGradients>
void run_micro_step(GradientReducer& reducer, ComputeGradients&& compute_gradients) {
    reducer.begin_micro_step();
    complete_step(reducer, std::forward<ComputeGradients>(compute_gradients));
}

} // namespace ranktune::ddp
