// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trainer: data-parallel training of a network on a dataset, on cores or GPUs. All random streams are keyed by the
// seed, the trial and global numbers, so k ranks compute what one rank computes, except for rounding.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ranktune/data/dataset.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/ddp/comm_meter.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/trainables/gradient_options.hpp"
#include "trainables/mlp/engine.hpp"
#include "trainables/mlp/training_data.hpp"

namespace ranktune::trainables::mlp {

struct TrainerOptions {
    std::vector<std::size_t> hidden{128};
    Activation activation = Activation::relu;
    double dropout = 0.0;   ///< probability, after every hidden layer
    std::size_t batch = 64; ///< samples of a global batch (over all ranks)
    OptimizerOptions optimizer;
    double lr = 0.01;
    bool cosine = false;      ///< the learning rate falls to zero as half a cosine over `epochs`
    std::uint64_t epochs = 1; ///< length of that schedule
    std::uint64_t seed = 0;
    std::uint32_t trial = 0;
    std::size_t bucket_floats = std::size_t{1} << 18;      ///< limit of a gradient bucket: 1 MiB
    std::size_t first_bucket_floats = 0;                   ///< of the first one, if smaller; 0: as the others
    device::Accelerator* device = nullptr;                 ///< computes there; null: on the cores
    device::Precision precision = device::Precision::fp32; ///< see EngineOptions
    bool graphs = false;                                   ///< likewise
    GradientChoice gradients = {};
};

/// The same on all ranks.
struct Validation {
    double loss = 0.0;     ///< mean over the samples
    double accuracy = 0.0; ///< classification: share of correct samples
    double rmse = 0.0;     ///< regression: root of the mean squared error, in units of the file
    double r2 = 0.0;       ///< regression: 1 - squared error / squared deviation from the mean of the val targets
};

class Trainer {
  public:
    /// Collective: rank 0 broadcasts the initial parameters, and all ranks check that plan and dataset agree. `group`
    /// must outlive this object.
    Trainer(std::unique_ptr<TrainingData> data, TrainerOptions options, ddp::Group& group);
    /// The same on a dataset in memory.
    Trainer(std::shared_ptr<const data::Dataset> dataset, TrainerOptions options, ddp::Group& group);

    /// Trains one epoch and returns the mean loss of its samples, as seen by the steps (dropout on). Collective. Throws
    /// base::Error `loss is NaN at iteration 3` (iterations are counted from 1), within the step; ddp::PeerFailed on
    /// the other ranks.
    double train_epoch();
    /// One step on the global batch `range` of the current epoch's order. Collective. Returns this rank's sum of
    /// losses.
    double train_batch(data::Range range);
    /// Every rank evaluates its shard. Collective.
    [[nodiscard]] Validation validate();

    /// From inputs in units of the file, [rows, features], to probabilities of the classes, or targets in units of the
    /// file, [rows, outputs]. Scales as the state that was loaded, whatever the dataset is by now. Requires `load`. Not
    /// collective.
    void predict(std::span<const float> inputs, std::span<float> outputs);

    /// Parameters, moments of the optimizer, counters and position, with PyTorch's names and layouts, and the scaling
    /// of the inputs. Between epochs only. Not collective.
    void save(study::StateSink& sink) const;
    void load(study::StateSource& source);

    /// Values of tensor i, in the order of tensors_of(shape).
    /// They must lie on the host.
    [[nodiscard]] std::span<const float> parameter(std::size_t i) const {
        return part(engine_->parameters(), i).as<float>();
    }
    [[nodiscard]] const std::vector<TensorShape>& tensors() const { return tensors_; }
    [[nodiscard]] Engine::Replays replays() const { return engine_->replays(); }
    /// What the gradients of the steps since the last call cost on this rank; empty unless that is measured.
    [[nodiscard]] std::vector<std::pair<std::string, double>> take_comm_metrics();
    /// The gradient of the last step: the mean over its global batch.
    [[nodiscard]] std::span<const float> gradient(std::size_t i) {
        return reducer_->gradient(i).first(tensors_[i].size);
    }
    /// What this rank waited for its data since the last call; nothing: they are in memory.
    [[nodiscard]] std::optional<data::LoadTime> take_waited() { return data_->take_waited(); }

  private:
    [[nodiscard]] Shape shape() const;
    [[nodiscard]] std::size_t work_rows() const;
    void make_reducer();
    /// Gradients of part `part` of this rank's samples. Returns the sum of their losses.
    [[nodiscard]] double compute_part(data::Range range, std::size_t part);
    [[nodiscard]] Rows rows_of(std::size_t part) const;
    void bring_next(data::Range range, std::size_t part);
    /// Tensor i within `flat`, which has the layout of the gradients.
    [[nodiscard]] base::Buffer part(base::Buffer flat, std::size_t i) const {
        return flat.part(place_[i], tensors_[i].size);
    }
    void initialise_parameters();
    void load_counters(study::StateSource& source, const std::vector<study::TensorInfo>& saved);
    void start_epoch();
    [[nodiscard]] double learning_rate() const;
    [[nodiscard]] Validation validate_classes(data::Range mine);
    [[nodiscard]] Validation validate_targets(data::Range mine);

    std::unique_ptr<TrainingData> data_;
    TrainerOptions options_;
    ddp::Group& group_;
    std::vector<TensorShape> tensors_;
    std::vector<std::size_t> place_;                ///< of each tensor within the flat layout
    std::unique_ptr<ddp::GradientReducer> reducer_; ///< made by the first step: a checkpoint may set the bucket limit
    study::MemoryState feedback_;                   ///< of a checkpoint, until there is a reducer
    ddp::CommMeter meter_;
    std::unique_ptr<Engine> engine_;
    std::vector<DropoutMask> masks_; ///< of this epoch, one per hidden layer; empty without dropout
    std::uint64_t masks_epoch_ = ~std::uint64_t{0};
    Rows share_; ///< this rank's, of the batch that is trained
    /// What the engine has been given before its turn, within an epoch.
    struct Ahead {
        data::Range range;
        std::size_t part = 0;
        std::exception_ptr error = {}; ///< told when its turn comes
    };
    std::optional<Ahead> ahead_;
    data::Position position_;
    data::Scale input_scale_;  ///< for `predict`
    data::Scale output_scale_; ///< likewise; empty for a classification
};

} // namespace ranktune::trainables::mlp
