// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dataset: samples in memory, read from one HDF5 file with the groups `train` and `val`.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace ranktune::data {

/// One part of a dataset: `count` samples, row-major.
struct Split {
    std::size_t count = 0;
    std::vector<float> x;              ///< [count, features]
    std::vector<std::int32_t> classes; ///< [count], 0 .. outputs-1; classification only
    std::vector<float> targets;        ///< [count, outputs]; regression only
};

/// How features are scaled, each with constants of the training samples alone.
enum class Scaling : std::uint8_t {
    none,     ///< unchanged
    unit,     ///< divided by the largest magnitude
    standard, ///< mean 0, standard deviation 1
};

/// value in memory = (value in the file - shift) * factor. A feature that never varies gets factor 1.
struct Scale {
    std::vector<float> shift;
    std::vector<float> factor;
};

/// The file holds, in each of the groups `train` and `val`:
///   x  [n, ...] float32, float64, or integers of 8 to 64 bits; further dimensions are flattened to `features`
///   y  [n] integers: classes from 0;  or [n] or [n, k] floating point: regression targets
/// A whole-number attribute `classes` of the root gives the number of classes; without it, it is the largest class of
/// both splits plus one. Anything else in the file is ignored.
struct Dataset {
    std::size_t features = 0;
    std::size_t outputs = 0; ///< classes, or targets per sample
    bool classification = true;
    Split train;
    Split val;
    Scale x_scale; ///< [features]
    Scale y_scale; ///< [outputs] of regression targets, which are always scaled to mean 0 and deviation 1
};

/// Reads the whole file. Throws base::IoError when it cannot be read, base::FormatError with the dataset's name and the
/// problem: shapes that do not match, no samples, a class out of range, NaN or infinity. Not collective: every rank
/// reads the file.
[[nodiscard]] Dataset load_dataset(const std::string& path, Scaling scaling);

/// Why the file cannot be a dataset, judged by shapes alone; empty: no problem found. Reads no values, so the time does
/// not depend on the file's size.
[[nodiscard]] std::string dataset_problem(const std::string& path);

/// The same as load_dataset, with a cache of one dataset per process, because trials of a study read the same file. A
/// file with another size or modification time is read again. Null: its samples would take more than `limit` bytes.
/// Thread-safe.
[[nodiscard]] std::shared_ptr<const Dataset> shared_dataset(
    const std::string& path, Scaling scaling, std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// What is known of a dataset whose samples stay in the file.
struct DatasetShape {
    std::size_t features = 0;
    std::size_t outputs = 0; ///< classes, or targets per sample
    bool classification = true;
    std::size_t train = 0; ///< samples
    std::size_t val = 0;
};
/// Reads no samples, but the classes of a classification, in pieces. Throws as load_dataset.
[[nodiscard]] DatasetShape read_dataset_shape(const std::string& path);

} // namespace ranktune::data
