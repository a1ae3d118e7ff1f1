// SPDX-License-Identifier: Apache-2.0
#pragma once
// DatasetRows: a part of a dataset that stays in its file.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ranktune/data/dataset.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {

/// What Split has of the same file, as a Source of two fields: `x`, float32 [features], and `y`, int32 (a class) or
/// float32 [outputs]. They are scaled as they are read.
class DatasetRows final : public Source {
  public:
    /// `part`: "train" or "val" of the file that `shape` is of. Not scaled. Keeps decoded chunks of up to `memory`
    /// bytes. Throws as Source::open.
    DatasetRows(const std::string& path, const std::string& part, DatasetShape shape, std::uint64_t memory);
    /// The same rows, scaled; a classification ignores `y`. Shares the open file with `rows`.
    DatasetRows(const DatasetRows& rows, Scale x, Scale y);

    /// Throws base::FormatError also for a class that is not below shape.outputs: a file that has changed.
    void gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const override;

  private:
    DatasetRows(const std::string& path, const std::string& part, DatasetShape shape, std::shared_ptr<const Source> x,
                std::shared_ptr<const Source> y);
    void gather_numbers(const Source& from, const Scale& scale, std::span<const std::uint64_t> samples,
                        std::span<float> out) const;
    void gather_classes(std::span<const std::uint64_t> samples, std::span<std::int32_t> out) const;

    std::string part_;
    DatasetShape shape_;
    std::shared_ptr<const Source> x_;
    std::shared_ptr<const Source> y_;
    Scale x_scale_; ///< empty: not scaled
    Scale y_scale_;
};

} // namespace ranktune::data
