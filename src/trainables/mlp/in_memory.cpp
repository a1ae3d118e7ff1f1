// SPDX-License-Identifier: Apache-2.0
// A Dataset in memory as TrainingData.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ranktune/base/digest.hpp"
#include "trainables/mlp/training_data.hpp"

namespace ranktune::trainables::mlp {

namespace {

/// Sum over samples and targets of the squared distance from the target's mean.
double squared_deviation(std::span<const float> targets, std::size_t width) {
    const std::size_t samples = targets.size() / width;
    double total = 0.0;
    for (std::size_t column = 0; column < width; ++column) {
        double sum = 0.0;
        for (std::size_t i = column; i < targets.size(); i += width) sum += static_cast<double>(targets[i]);
        const double mean = sum / static_cast<double>(samples);
        for (std::size_t i = column; i < targets.size(); i += width) {
            const double difference = static_cast<double>(targets[i]) - mean;
            total += difference * difference;
        }
    }
    return total;
}

class InMemory final : public TrainingData {
  public:
    InMemory(std::shared_ptr<const data::Dataset> dataset, std::uint64_t seed, std::uint32_t trial, int rank, int ranks)
        : dataset_(std::move(dataset)),
          shape_{dataset_->features, dataset_->outputs, dataset_->classification, dataset_->train.count,
                 dataset_->val.count},
          seed_(seed),
          trial_(trial),
          rank_(rank),
          ranks_(ranks) {
        if (!shape_.classification) val_deviation_ = squared_deviation(dataset_->val.targets, shape_.outputs);
    }

    [[nodiscard]] const data::DatasetShape& shape() const override { return shape_; }
    [[nodiscard]] std::uint64_t digest() const override {
        base::Digest digest;
        for (const data::Split* split : {&dataset_->train, &dataset_->val}) {
            digest.add(std::as_bytes(std::span(split->x)));
            digest.add(std::as_bytes(std::span(split->classes))).add(std::as_bytes(std::span(split->targets)));
        }
        return digest.value();
    }
    void prepare(ddp::Group& /*group*/) override {}
    [[nodiscard]] const data::Scale& x_scale() const override { return dataset_->x_scale; }
    [[nodiscard]] const data::Scale& y_scale() const override { return dataset_->y_scale; }
    [[nodiscard]] double val_deviation() const override { return val_deviation_; }

    [[nodiscard]] Rows share(std::uint64_t epoch, data::Range batch) override {
        if (epoch != order_epoch_) data::shuffle_epoch(order_, shape_.train, seed_, trial_, epoch);
        order_epoch_ = epoch;
        const data::Range mine = data::shard(batch, rank_, ranks_);
        const std::span<const std::uint32_t> samples = std::span(order_).subspan(mine.begin, mine.size());
        return {of(dataset_->train), samples, samples};
    }

    void validate(data::Range range, std::size_t rows, const std::function<void(const Samples&)>& use) override {
        const std::size_t width = shape_.outputs;
        const Samples all = of(dataset_->val);
        for (std::size_t begin = range.begin; begin < range.end; begin += rows) {
            const std::size_t count = std::min(rows, range.end - begin);
            Samples some{all.x.subspan(begin * shape_.features, count * shape_.features), {}, {}};
            if (shape_.classification)
                some.classes = all.classes.subspan(begin, count);
            else
                some.targets = all.targets.subspan(begin * width, count * width);
            use(some);
        }
    }

  private:
    static Samples of(const data::Split& split) { return {split.x, split.classes, split.targets}; }

    std::shared_ptr<const data::Dataset> dataset_;
    data::DatasetShape shape_;
    std::uint64_t seed_;
    std::uint32_t trial_;
    int rank_;
    int ranks_;
    double val_deviation_ = 0.0;
    std::vector<std::uint32_t> order_;
    std::uint64_t order_epoch_ = ~std::uint64_t{0};
};

} // namespace

std::unique_ptr<TrainingData> in_memory(std::shared_ptr<const data::Dataset> dataset, std::uint64_t seed,
                                        std::uint32_t trial, const ddp::Group& group) {
    return std::make_unique<InMemory>(std::move(dataset), seed, trial, group.rank(), group.size());
}

} // namespace ranktune::trainables::mlp
