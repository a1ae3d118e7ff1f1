// SPDX-License-Identifier: Apache-2.0
// The shape of a saved network as TrainingData, so that it predicts without the data that it was trained on.

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "trainables/mlp/training_data.hpp"

namespace ranktune::trainables::mlp {

namespace {

/// Samples that the network may get at once.
constexpr std::size_t at_once = 512;

class OnlyShape final : public TrainingData {
  public:
    explicit OnlyShape(const data::DatasetShape& shape) : shape_(shape) {}

    [[nodiscard]] const data::DatasetShape& shape() const override { return shape_; }
    [[nodiscard]] std::uint64_t digest() const override { return 0; }
    void prepare(ddp::Group& /*group*/) override {}
    [[nodiscard]] const data::Scale& x_scale() const override { return none_; }
    [[nodiscard]] const data::Scale& y_scale() const override { return none_; }
    [[nodiscard]] double val_deviation() const override { return 0.0; }
    [[nodiscard]] Rows share(std::uint64_t /*epoch*/, data::Range /*batch*/) override { return {}; }
    void validate(data::Range /*range*/, std::size_t /*rows*/,
                  const std::function<void(const Samples&)>& /*use*/) override {}

  private:
    data::DatasetShape shape_;
    data::Scale none_;
};

} // namespace

std::unique_ptr<TrainingData> only_shape(const study::StateSource& saved, std::size_t layers) {
    const std::vector<study::TensorInfo> tensors = saved.tensors();
    const auto find = [&](const std::string& name) {
        return std::ranges::find(tensors, name, &study::TensorInfo::name);
    };
    const auto weight = [&](std::size_t layer) {
        const std::string name = "layers." + std::to_string(layer) + ".weight";
        const auto found = find(name);
        if (found == tensors.end() || found->shape.size() != 2)
            throw base::FormatError("the checkpoint has no matrix " + name + ": it is of another network");
        return found->shape;
    };
    const bool classification = find("output.shift") == tensors.end(); // targets are scaled, classes are not
    return std::make_unique<OnlyShape>(
        data::DatasetShape{weight(0)[1], weight(layers - 1)[0], classification, at_once, at_once});
}

} // namespace ranktune::trainables::mlp
