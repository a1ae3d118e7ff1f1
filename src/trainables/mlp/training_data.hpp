// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrainingData: where a Trainer gets its samples from: a Dataset in memory, or a file that is streamed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ranktune/data/dataset.hpp"
#include "ranktune/data/loader.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/ddp/group.hpp"
#include "ranktune/study/state.hpp"
#include "trainables/mlp/engine.hpp"

namespace ranktune::trainables::mlp {

/// Of one rank. `prepare` is collective, nothing else.
class TrainingData {
  public:
    virtual ~TrainingData() = default;
    [[nodiscard]] virtual const data::DatasetShape& shape() const = 0;
    /// The samples of training in their file; null: all is in memory.
    [[nodiscard]] virtual const data::Source* file() const { return nullptr; }
    /// Differs where ranks have different data.
    [[nodiscard]] virtual std::uint64_t digest() const = 0;

    /// Reads what scales depend on, once. Throws as data::load_dataset. Collective.
    virtual void prepare(ddp::Group& group) = 0;
    // After `prepare`:
    [[nodiscard]] virtual const data::Scale& x_scale() const = 0;
    [[nodiscard]] virtual const data::Scale& y_scale() const = 0; ///< of regression targets
    /// Regression: squared deviation of the scaled targets of `val` from their means, summed.
    [[nodiscard]] virtual double val_deviation() const = 0;
    /// This rank's share of the global batch of positions `batch` of an epoch, at most one more than another rank has;
    /// valid until the next call. Throws what reading throws.
    [[nodiscard]] virtual Rows share(std::uint64_t epoch, data::Range batch) = 0;
    /// Calls `use` for the validation samples of `range`, in order, at most `rows` at a time.
    virtual void validate(data::Range range, std::size_t rows, const std::function<void(const Samples&)>& use) = 0;
    /// What `share` and `validate` waited for the file since the last call; nothing: all is in memory.
    [[nodiscard]] virtual std::optional<data::LoadTime> take_waited() { return std::nullopt; }
};

/// No samples: for a trainer that loads the state `saved`, of a network of so many layers, and predicts. Throws
/// base::FormatError for another state.
[[nodiscard]] std::unique_ptr<TrainingData> only_shape(const study::StateSource& saved, std::size_t layers);

/// Ordered by data::shuffle_epoch; a rank's share is a contiguous piece.
[[nodiscard]] std::unique_ptr<TrainingData> in_memory(std::shared_ptr<const data::Dataset> dataset, std::uint64_t seed,
                                                      std::uint32_t trial, const ddp::Group& group);

/// Of a dataset file that may be larger than memory. Batches are those of a data::Loader with `loading`, whose ranks,
/// seed, trial, batch and threads are set; scales come from one pass over the file, which all ranks share, and which
/// the trials of a process do once per file. Throws as data::read_dataset_shape and data::Source::open.
[[nodiscard]] std::unique_ptr<TrainingData> streamed(const std::string& path, data::Scaling scaling,
                                                     data::LoaderOptions loading);

} // namespace ranktune::trainables::mlp
