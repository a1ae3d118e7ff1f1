// SPDX-License-Identifier: Apache-2.0
#pragma once
// StepGraphs: the passes of a batch as CUDA graphs, for networks that are so small that issuing their work takes longer
// than the work.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ranktune::trainables::mlp {

/// Where the host takes part in a step: called when the work so far has been issued.
struct StepMarks {
    std::function<void()> loss;                       ///< once
    std::function<void(std::size_t tensor)> gradient; ///< per tensor, in the same order in every step
};

/// Records the work of a step once per shape and issues it again as a whole. What the host does in between stays as it
/// is: the work is cut into one graph up to the loss, and one per bucket of gradients. So sums of gradients, their
/// compression and failures know nothing of graphs, and the bits are those of a step without them. The first step of a
/// shape is not recorded: libraries load code and choose algorithms then. Owns the graphs.
class StepGraphs {
  public:
    /// All that the work of a step depends on, besides memory.
    struct Shape {
        std::size_t rows = 0;
        float factor = 0.0F;
        bool dropout = false;
        std::size_t feed = 0; ///< which of the memories that batches come to
        friend auto operator<=>(const Shape&, const Shape&) = default;
    };
    using Issue = std::function<void(const StepMarks&)>;

    explicit StepGraphs(device::Stream& stream) : stream_(stream) {}
    /// Forgets all graphs: their memory has changed. `closes[i]`: the host takes part after the gradient of tensor i.
    void reset(std::vector<bool> closes);
    /// A step: `issue(marks)` issues its work and calls the marks; it does nothing else, and nothing but `shape`
    /// changes from call to call. `marks` get the same calls when the step is a replay. Throws what `issue` throws.
    void run(const Shape& shape, const Issue& issue, const StepMarks& marks);

    [[nodiscard]] std::uint64_t replays() const { return replays_; }
    /// Why steps are not recorded any more; empty: they are.
    [[nodiscard]] const std::string& refusal() const { return refusal_; }

  private:
    struct Piece {
        std::unique_ptr<device::Graph> graph;
        std::vector<std::size_t> tensors; ///< their gradients are complete after it
    };
    using Pieces = std::vector<Piece>; ///< [0]: up to the loss
    static constexpr std::size_t most_shapes = 16;

    [[nodiscard]] Pieces record(const Issue& issue);
    void replay(const Pieces& pieces, const StepMarks& marks);

    device::Stream& stream_;
    std::vector<bool> closes_;
    std::map<Shape, Pieces> shapes_; ///< without pieces: seen once
    std::uint64_t replays_ = 0;
    std::string refusal_;
};

} // namespace ranktune::trainables::mlp
