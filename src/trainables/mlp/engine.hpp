// SPDX-License-Identifier: Apache-2.0
#pragma once
// Engine: where a network is computed: on the cores of this rank, or on its GPU. The same rules, names and layouts, so
// that a checkpoint of one is a checkpoint of the other.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/compute.hpp"
#include "ranktune/base/buffer.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "trainables/mlp/network.hpp"
#include "trainables/mlp/optimizer.hpp"

namespace ranktune::device {
class Accelerator;
}

namespace ranktune::trainables::mlp {

/// What all forms of a network are made of.
struct EngineOptions {
    Shape shape;
    OptimizerOptions optimizer;
    std::size_t size = 0;            ///< floats of all parameters, with padding
    std::vector<std::size_t> places; ///< of each tensor within the flat layout, in the order of tensors_of(shape)
    std::size_t rows = 1;            ///< at most so many at a time
    /// For matrix products on a device; all else is float32. On cores always fp32.
    device::Precision precision = device::Precision::fp32;
    bool graphs = false; ///< a device records the passes of a batch, and replays them: the same bits
};

/// Samples in memory, row-major, as data::Split has them. Of classes and targets one is empty.
struct Samples {
    std::span<const float> x;
    std::span<const std::int32_t> classes;
    std::span<const float> targets;
};

/// Some of them.
struct Rows {
    Samples from;
    std::span<const std::uint32_t> places;  ///< in `from`
    std::span<const std::uint32_t> numbers; ///< of the same samples in the dataset: dropout depends on them
};

/// This rank's part of a global batch.
struct Batch {
    Rows rows;
    std::span<const DropoutMask> masks; ///< one per hidden layer, or none
    float factor = 0.0F;                ///< of the gradient: 1 / size of the global batch
    bool brought = false;               ///< rows and masks are those of the last Engine::bring
};

/// The parameters, the optimizer, and the two passes of one rank. Parameters lie one after the other ("flat"), in the
/// order of a bucket plan, in `parameters().place()`.
class Engine {
  public:
    virtual ~Engine() = default;
    [[nodiscard]] virtual base::Buffer parameters() = 0; ///< flat
    /// The moments of the optimizer, flat: name and values.
    struct Moment {
        std::string name;
        base::Buffer values;
    };
    [[nodiscard]] virtual std::vector<Moment> moments() = 0;
    [[nodiscard]] virtual std::uint64_t steps() const = 0;
    virtual void set_steps(std::uint64_t steps) = 0;

    /// Gradients go to `reducer`, whose gradients lie in the same place, and which lives until the next call.
    /// Collective over `group`, which outlives this object.
    virtual void attach(ddp::GradientReducer& reducer, ddp::Group& group) = 0;

    struct Hooks {
        std::function<void(std::size_t tensor)> ready; ///< the gradient of this tensor is complete, or in the stream
        std::function<void()> poll;
        std::function<void(double loss)> check; ///< called once with this rank's loss; may throw
    };
    /// Begins to copy the rows and masks of the next batch to where `compute` reads them, beside the work that is under
    /// way; they may change afterwards. For an engine on a device.
    virtual void bring(const Rows& /*rows*/, std::span<const DropoutMask> /*masks*/) {}
    /// Both passes of a batch, within a step of the reducer. Returns this rank's sum of losses.
    virtual double compute(const Batch& batch, const Hooks& hooks) = 0;
    /// Applies the gradients that the reducer holds.
    virtual void update(double lr) = 0;

    [[nodiscard]] virtual std::size_t rows() const = 0;
    /// The outputs for inputs [count, features], count <= rows(): valid until the next call.
    [[nodiscard]] virtual std::span<float> outputs(std::span<const float> inputs) = 0;
    /// What became of EngineOptions::graphs.
    struct Replays {
        std::uint64_t batches = 0; ///< that were replayed
        std::string refusal;       ///< why none is recorded any more; empty: they are
    };
    [[nodiscard]] virtual Replays replays() const { return {}; }
    /// Waits until all work is complete: call it before generic code reads parameters or moments. Throws as the group
    /// does.
    virtual void settle() = 0;
};

[[nodiscard]] std::unique_ptr<Engine> make_host_engine(EngineOptions options);
/// On the compute stream of `on`. Throws device::DeviceError.
[[nodiscard]] std::unique_ptr<Engine> make_device_engine(EngineOptions options, device::Accelerator& on);

} // namespace ranktune::trainables::mlp
