// SPDX-License-Identifier: Apache-2.0
#include "data/dataset_rows.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/column_sums.hpp"
#include "data/formats.hpp"
#include "data/numbers.hpp"

namespace ranktune::data {

namespace {

std::shared_ptr<const Source> open_array(const std::string& path, const std::string& part, const std::string& name,
                                         std::uint64_t memory) {
    SourceOptions options;
    options.group = part;
    options.field = name;
    options.memory = memory;
    return open_hdf5(path, options);
}

std::vector<Field> fields_of(const DatasetShape& shape) {
    return {{"x", ElementType::float32, {shape.features}},
            shape.classification ? Field{"y", ElementType::int32} : Field{"y", ElementType::float32, {shape.outputs}}};
}

/// Of rows in their file: what is read together decides the order of an epoch.
Extent extent_of(const Source& x, const Source& y) {
    return {x.samples(), x.extent().sample_bytes + y.extent().sample_bytes,
            std::max(x.extent().chunk_samples, y.extent().chunk_samples)};
}

} // namespace

DatasetRows::DatasetRows(const std::string& path, const std::string& part, DatasetShape shape,
                         std::shared_ptr<const Source> x, std::shared_ptr<const Source> y)
    : Source(path, fields_of(shape), extent_of(*x, *y)),
      part_(part),
      shape_(shape),
      x_(std::move(x)),
      y_(std::move(y)) {}

DatasetRows::DatasetRows(const std::string& path, const std::string& part, DatasetShape shape, std::uint64_t memory)
    : DatasetRows(path, part, shape, open_array(path, part, "x", memory), open_array(path, part, "y", memory)) {}

DatasetRows::DatasetRows(const DatasetRows& rows, Scale x, Scale y)
    : DatasetRows(rows.path(), rows.part_, rows.shape_, rows.x_, rows.y_) {
    x_scale_ = std::move(x);
    y_scale_ = std::move(y);
}

void DatasetRows::gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const {
    const auto floats = std::span(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
    if (field == 0) return gather_numbers(*x_, x_scale_, samples, floats);
    if (!shape_.classification) return gather_numbers(*y_, y_scale_, samples, floats);
    gather_classes(samples, {reinterpret_cast<std::int32_t*>(out.data()), samples.size()});
}

void DatasetRows::gather_numbers(const Source& from, const Scale& scale, std::span<const std::uint64_t> samples,
                                 std::span<float> out) const {
    const Field& field = from.fields()[0];
    if (field.type == ElementType::float32) {
        from.gather(0, samples, std::as_writable_bytes(out));
    } else {
        std::vector<std::byte> rows(samples.size() * field.bytes());
        from.gather(0, samples, rows);
        to_floats(field.type, rows, out);
    }
    if (!scale.shift.empty()) rescale(scale, out);
}

void DatasetRows::gather_classes(std::span<const std::uint64_t> samples, std::span<std::int32_t> out) const {
    const ElementType type = y_->fields()[0].type;
    std::vector<std::byte> rows(samples.size() * size_of(type));
    y_->gather(0, samples, rows);
    const auto refuse = [&](std::size_t i) {
        refuse_file(path(), part_ + "/y: the class of sample " + std::to_string(samples[i]) + " is not one of 0 to " +
                                std::to_string(shape_.outputs - 1) + ": the file has changed");
    };
    with_type(type, [&](auto number) {
        using Number = decltype(number);
        if constexpr (std::is_integral_v<Number>) {
            const auto* const from = reinterpret_cast<const Number*>(rows.data());
            for (std::size_t i = 0; i < samples.size(); ++i) {
                if (std::cmp_less(from[i], 0) || std::cmp_greater_equal(from[i], shape_.outputs)) refuse(i);
                out[i] = static_cast<std::int32_t>(from[i]);
            }
        } else {
            refuse(0);
        }
    });
}

} // namespace ranktune::data
