// SPDX-License-Identifier: Apache-2.0
#include "libtorch/sample_stream.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/trainables/data.hpp"

namespace ranktune::libtorch {
namespace {

::torch::ScalarType type_of(const data::Field& field) {
    using Type = data::ElementType;
    switch (field.type) {
        case Type::int8:
            return ::torch::kInt8;
        case Type::uint8:
            return ::torch::kUInt8;
        case Type::int16:
            return ::torch::kInt16;
        case Type::int32:
            return ::torch::kInt32;
        case Type::int64:
            return ::torch::kInt64;
        case Type::float16:
            return ::torch::kFloat16;
        case Type::bfloat16:
            return ::torch::kBFloat16;
        case Type::float32:
            return ::torch::kFloat32;
        case Type::float64:
            return ::torch::kFloat64;
        case Type::uint16:
        case Type::uint32:
        case Type::uint64:
            break;
    }
    throw base::UsageError("column '" + field.name + "' holds " + std::string(data::name(field.type)) +
                           ", which LibTorch does not compute with: let Streamed::samples or a map make other numbers");
}

/// `x` and `y`, or the first two columns.
Samples first_columns(const data::Batch& batch) {
    const auto named = [&](const char* name) {
        return std::ranges::find(batch.columns, name, [](const data::Column& column) { return column.field.name; });
    };
    const auto x = named("x");
    const auto y = named("y");
    if (x != batch.columns.end() && y != batch.columns.end()) return {tensor_of(*x), tensor_of(*y)};
    if (batch.columns.size() != 2)
        throw base::UsageError("Streamed::samples is missing: the file has " + std::to_string(batch.columns.size()) +
                               " columns, and not x and y");
    return {tensor_of(batch.columns[0]), tensor_of(batch.columns[1])};
}

} // namespace

::torch::Tensor tensor_of(const data::Column& column) {
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(column.count)};
    for (const std::size_t extent : column.field.shape) shape.push_back(static_cast<std::int64_t>(extent));
    return ::torch::from_blob(column.memory.get(), shape, type_of(column.field));
}

data::LoaderOptions loading_for(const trainables::TrialContext& context, data::LoaderOptions loading, std::size_t batch,
                                bool drop_last) {
    loading.batch = batch;
    loading.drop_last = drop_last;
    return trainables::loading_in(context, std::move(loading));
}

SampleStream::SampleStream(const Streamed& what, data::LoaderOptions loading, data::Position from)
    : what_(what), loader_(what.source, from, std::move(loading)) {}

std::optional<SampleStream::Share> SampleStream::next() {
    batch_ = loader_.next();
    if (!batch_) return std::nullopt;
    Share share;
    share.count = batch_->samples.size();
    share.whole = batch_->end - batch_->begin;
    if (share.count > 0) share.samples = what_.samples ? what_.samples(*batch_) : first_columns(*batch_);
    return share;
}

double SampleStream::take_waited() { return loader_.waited_seconds() - std::exchange(told_, loader_.waited_seconds()); }

} // namespace ranktune::libtorch
