// SPDX-License-Identifier: Apache-2.0
#pragma once
// ModuleTrainable: a LibTorch module with a loss and an optimizer as a trainable. Example: jobs/torch-resnet.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ranktune/data/loader.hpp"
#include "ranktune/libtorch/data_parallel.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "ranktune/trainables/trainable_library.hpp"

namespace ranktune::libtorch {

/// Samples: the first extent counts them, in both tensors. A batch is where the rank computes. A dataset is made in
/// memory of the host, and moves to the GPU once if it takes up to a tenth of its memory.
struct Samples {
    ::torch::Tensor inputs;
    ::torch::Tensor targets;
};

/// A column of a batch, on the host: [count, shape of the field]. Shares the memory of the batch. Throws
/// base::UsageError for numbers that LibTorch does not have.
[[nodiscard]] ::torch::Tensor tensor_of(const data::Column& column);

/// Samples of a file, which may be larger than memory: threads read them ahead, one for each core of the rank but one.
struct Streamed {
    std::shared_ptr<const data::Source> source; ///< null: there is none
    /// Tensors of a batch, on the host (tensor_of, which may share its memory); called on the trial's thread. Empty:
    /// the columns `x` and `y`, or the first two.
    std::function<Samples(const data::Batch& batch)> samples = {};
    /// Order, augmentation (`map`), mixture, batches ahead. What says whose data and which batch is filled in; threads,
    /// too, unless they are more than one.
    data::LoaderOptions loading = {};
    /// Samples of an iteration, rounded up to whole batches; 0: an epoch. A mixture needs it.
    std::uint64_t per_iteration = 0;
};

/// What a trial trains. Functions are called between `setup` and the end of the trial, on the trial's thread.
struct Training {
    std::shared_ptr<::torch::nn::Module> module;
    /// Over `module->parameters()`, with the hyper-parameters of the configuration: SGD, Adam, AdamW, RMSprop, Adagrad.
    std::unique_ptr<::torch::optim::Optimizer> optimizer;
    /// The mean loss of a batch, a scalar. The module is in training mode.
    std::function<::torch::Tensor(const Samples& batch)> loss;
    Samples train = {};           ///< one iteration trains each sample once, in a new order
    Streamed train_from = {};     ///< in place of `train`
    std::int64_t batch_size = 64; ///< samples of a step, over all ranks of the trial
    bool drop_last = false;       ///< leave out the last step of an iteration if it has fewer samples

    Samples val = {};       ///< may be empty
    Streamed val_from = {}; ///< in place of `val`; in the order of the file
    /// Means over a batch's samples, for instance {{"val_loss", 0.3}}; the same names for every batch. Reported are the
    /// means over `val`. The module is in evaluation mode, without gradients.
    std::function<trainables::Metrics(const Samples& batch)> validate = {};
    /// For `ranktune predict`: one row of numbers for each input. The module is in evaluation mode, without gradients.
    /// `inputs`: of the file that is predicted the column `x`, or the only one, as it is there, where the rank
    /// computes.
    std::function<::torch::Tensor(const ::torch::Tensor& inputs)> predict = {};
    bool predicts_classes = false; ///< `predict` returns [samples, classes]: the output names the largest of each row

    /// The learning rate of step `step` (from 0, of the whole trial); empty: as the optimizer has it.
    std::function<double(std::uint64_t step)> learning_rate = {};
    double clip_norm = 0.0;       ///< see the option of this name, which comes first; 0: never
    std::size_t bucket_bytes = 0; ///< if the study has no bucket_mb: see ParallelOptions
};

/// Builds model, optimizer and data from `context.configuration()`. Called by `setup` on every rank, after LibTorch's
/// generator was seeded with (seed, trial): all ranks begin with the same parameters. Everything is built on the host.
using MakeTraining = std::function<Training(trainables::TrialContext& context)>;

/// One iteration is one epoch: the samples in an order keyed by (seed, trial, epoch), global batches split over the
/// ranks, then validation. Metrics: `train_loss`, what `validate` returns, and with `train_from` those of
/// trainables::wait_metrics. The configuration may have the options of trainables::gradient_options:
/// compression, accumulation, clipping, metrics of the communication. On a GPU, SGD, Adam and AdamW step in one kernel
/// (PyTorch's `fused=True`).
///
/// A resumed trial is bit-identical on cores and the same number of ranks; on GPUs as far as LibTorch's kernels and
/// NCCL are deterministic. LibTorch's generator is seeded at the beginning of
/// each epoch with (seed, trial, epoch, rank), so that is true of dropout, too. On another number of ranks a trial goes
/// on with the same state, and rounding, dropout and the statistics of batch normalisation differ.
class ModuleTrainable final : public trainables::Trainable {
  public:
    explicit ModuleTrainable(MakeTraining make);
    ~ModuleTrainable() override;
    void setup(trainables::TrialContext& context) override;
    [[nodiscard]] trainables::Metrics step(trainables::TrialContext& context) override;
    void save(study::StateSink& sink) const override;
    void load(study::StateSource& source) override;
    void predict(trainables::TrialContext& context, const data::Batch& batch, study::StateSink& out) override;

  private:
    struct Impl;
    MakeTraining make_;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::libtorch

/// Exports a trainable from a shared library, for `[trainable] builtin = "torch"`. `make_training` is a function with
/// the signature of MakeTraining. Once per library, outside of namespaces.
#define RANKTUNE_TORCH_LIBRARY(make_training)                                              \
    extern "C" __attribute__((visibility("default")))                                      \
    const ::ranktune::trainables::TrainableLibrary ranktune_trainable_library;             \
    const ::ranktune::trainables::TrainableLibrary ranktune_trainable_library = {          \
        ::ranktune::trainables::trainable_library_interface,                               \
        []() -> std::unique_ptr<::ranktune::trainables::Trainable> {                       \
            return std::make_unique<::ranktune::libtorch::ModuleTrainable>(make_training); \
        }}
