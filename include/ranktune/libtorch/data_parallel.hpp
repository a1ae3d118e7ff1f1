// SPDX-License-Identifier: Apache-2.0
#pragma once
// DataParallel: gradients of a LibTorch module, averaged over the ranks of a trial while back-propagation runs. This
// folder is the only one whose public headers include those of another library (LibTorch).

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/trainables/context.hpp"
#include "ranktune/trainables/gradient_options.hpp"

namespace ranktune::libtorch {

/// Where a rank computes.
struct Where {
    ::torch::Device device = ::torch::kCPU;
    base::Place place = {}; ///< the same for ranktune: of gradients
};

/// The first GPU that the launcher granted to this rank, if LibTorch has CUDA; the cores otherwise. Throws
/// base::UsageError when the GPU cannot be used: ranktune without CUDA, CUDA of another major version than LibTorch's,
/// or two copies of NCCL in this process.
[[nodiscard]] Where where_to_compute(const trainables::TrialContext& context);

/// How gradients are reduced.
struct ParallelOptions {
    /// Limit of a bucket of gradients, if `gradients` has none; it may affect rounding. 0: 25 MiB on a GPU, after a
    /// first bucket of 1 MiB, and 4 MiB on cores.
    std::size_t bucket_bytes = 0;
    /// Compression needs float32 parameters. `accumulate` is for the caller: see DataParallel::accumulate.
    trainables::GradientChoice gradients = {};
};

/// The parameters of a module, kept equal on all ranks of a trial.
///
/// A gradient is copied into its bucket as soon as autograd has accumulated it, and the bucket is summed while
/// back-propagation goes on (ddp::GradientReducer). On one rank there are no buckets: gradients stay where they are. In
/// the first step buckets are filled from the last registered parameter to the first, then in the order in which rank
/// 0's gradients became ready in that step. The order is part of the state.
///
/// *Parameters* that do not require gradients when this object is made are left alone. A parameter that a step does not
/// use counts as used with a gradient of zero, on every rank: an optimizer still applies its momentum and weight decay.
/// *Buffers* (statistics of batch normalisation, for example) belong to the rank during an iteration; `share_buffers`
/// makes them equal.
///
/// *On a GPU* all functions work on a stream of ranktune's, in the place of the calling thread's current stream: they
/// see what was issued there before, and what is issued there later (an optimizer's step) sees their results.
///
/// Used by the trial's thread. `group` must outlive this object.
class DataParallel {
  public:
    /// Moves the module to `where` and copies rank 0's parameters and buffers to all ranks. Collective. Throws
    /// base::UsageError for a module without parameters to train, or with parameters of several types, or of one that
    /// is not floating point, or that cannot be compressed.
    DataParallel(ddp::Group& group, std::shared_ptr<::torch::nn::Module> module, const Where& where = {},
                 ParallelOptions options = {});
    ~DataParallel();
    DataParallel(const DataParallel&) = delete;
    DataParallel& operator=(const DataParallel&) = delete;

    /// One step: calls `loss` and back-propagates its result, a scalar, once. Afterwards the gradient of every
    /// parameter is the sum over the ranks of share * (this rank's gradient): with the mean loss of this rank's samples
    /// and the share of the global batch that they are, it is the gradient of the global batch. A rank without samples
    /// passes an empty function. With `gradients.clip_norm` that gradient is clipped. Returns the loss, on this rank.
    /// Collective. Throws base::Error `loss is NaN` (or
    /// infinite), base::UsageError for a second back-propagation within the step, and ddp::PeerFailed on the other
    /// ranks then.
    double step(const std::function<::torch::Tensor()>& loss, double share);
    /// A part of a step's samples, before `step` with the last part: adds its gradient to a sum on this rank, with the
    /// share of the global batch that the part is. Needs less memory than the whole. Ranks may accumulate any number of
    /// times. On a GPU for float32 only. Not collective, but for the first call after the first step.
    double accumulate(const std::function<::torch::Tensor()>& loss, double share);
    /// Makes buffers equal on all ranks: floating-point ones become the mean over the ranks, others those of rank 0.
    /// What compression has not sent yet is shared evenly. Call it at the end of an iteration, before `save`.
    /// Collective.
    void share_buffers();
    /// What communication cost since the last call (ddp::CommMeter); empty without `gradients.metrics`.
    [[nodiscard]] std::vector<std::pair<std::string, double>> take_comm_metrics();

    /// Tensors by their names in the module, as in PyTorch's state_dict; the optimizer's as
    /// `optimizer.<moment>.<parameter>`. Its options (learning rate, momentum) are not saved: they are those of the
    /// configuration. Throws base::UsageError for an optimizer other than SGD, Adam, AdamW, RMSprop and Adagrad, and
    /// for one with parameters that are not the module's. Not collective.
    void save(study::StateSink& sink, const ::torch::optim::Optimizer& optimizer) const;
    void load(study::StateSource& source, ::torch::optim::Optimizer& optimizer);

    [[nodiscard]] ::torch::nn::Module& module() const;
    [[nodiscard]] const Where& where() const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

} // namespace ranktune::libtorch
