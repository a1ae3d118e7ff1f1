// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models predict for the samples of a batch, and what an ensemble of them does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/dtype.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::trainables {

/// The class of the largest number of each row, the first of equal ones.
template <class T>
[[nodiscard]] std::vector<std::int32_t> largest_of_rows(std::span<const T> y, std::size_t width) {
    std::vector<std::int32_t> classes;
    for (; !y.empty(); y = y.subspan(width)) {
        const auto row = y.first(width);
        classes.push_back(static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin()));
    }
    return classes;
}

struct Prediction {
    base::DType type = base::DType::float32; ///< of y in the file: float32 or float64
    std::vector<std::uint64_t> row = {};     ///< shape of a row of y; of a classifier [classes]
    std::vector<double> y = {};              ///< [samples, row...]; of a classifier probabilities
    bool classifies = false;
    std::vector<std::int32_t> classes = {};    ///< [samples, class_row...], of a classifier
    std::vector<std::uint64_t> class_row = {}; ///< empty: one class for each sample

    /// Type and shape of a row: "float32 [10], with a class".
    [[nodiscard]] std::string form() const;
};

/// What Trainable::predict has put for `samples` samples; of those, the first `wanted` ones. Throws base::UsageError
/// when it is not what the interface wants; base::Error for a NaN or an infinite number. `first`: number of the first
/// sample, for messages.
[[nodiscard]] Prediction prediction_of(const study::MemoryState& put, std::size_t samples, std::size_t wanted,
                                       std::uint64_t first);

enum class Combine : std::uint8_t {
    mean, ///< of y, summed in double in the order of the members; the class of the largest mean
    vote, ///< y: the share of members for each class; the class with most of them
    all,  ///< y [samples, members, row...], class [samples, members]
};
/// `name`: mean, vote or all; throws base::UsageError for another.
[[nodiscard]] Combine combine_of(std::string_view name);
/// What the members predict together. A tie goes to the lower class. Requires one member at least. Throws
/// base::UsageError for members of different forms, and for a vote of others than classifiers.
[[nodiscard]] Prediction combined(std::vector<Prediction> members, Combine how);

} // namespace ranktune::trainables
