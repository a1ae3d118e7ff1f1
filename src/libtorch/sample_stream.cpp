// SPDX-License-Identifier: Apache-2.0
#include "libtorch/sample_stream.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "ddp/collective/core_wait.hpp"
#include "device/device.hpp"
#include "libtorch/streams.hpp"
#include "libtorch/tensors.hpp"
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

/// A GPU reads page-locked memory by itself. LibTorch keeps such memory for later batches.
data::LoaderOptions pinned_on(const Where& where, data::LoaderOptions loading) {
    if (!where.device.is_cuda() || loading.allocate) return loading;
    loading.allocate = [](std::size_t bytes) {
        const auto owner = ::torch::empty({static_cast<std::int64_t>(bytes)},
                                          ::torch::TensorOptions(::torch::kUInt8).pinned_memory(true));
        return std::shared_ptr<std::byte[]>(static_cast<std::byte*>(owner.data_ptr()), [owner](std::byte*) {});
    };
    return loading;
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

/// The copy stream of a GPU, beside which the rank computes. One upload is under way at a time.
class SampleStream::Uploads {
  public:
    explicit Uploads(Where where)
        : where_(std::move(where)),
          on_(*device::accelerator_of(where_.place)),
          issued_(on_.make_event()),
          arrived_(on_.make_event()) {}

    [[nodiscard]] Samples begin(const Samples& host) {
        device::Stream& copies = on_.copy_stream();
        // The work so far reads memory that LibTorch's allocator may give to the next upload.
        on_.compute_stream().record(*issued_);
        copies.wait(*issued_);
        const auto guard = current_streams().make_current(copies.native(), where_.device.index());
        Samples there{moved_to(where_.device, host.inputs), moved_to(where_.device, host.targets)};
        copies.record(*arrived_);
        return there;
    }
    /// What is computed later sees the upload.
    void order() { on_.compute_stream().wait(*arrived_); }
    /// Until the memory of the host has been read.
    void finish() {
        if (arrived_->reached()) return;
        const auto begin = std::chrono::steady_clock::now();
        ddp::CoreWait().until([&] { return arrived_->reached(); }, [] {});
        waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    [[nodiscard]] double take_waited() { return std::exchange(waited_, 0.0); }

  private:
    Where where_;
    device::Accelerator& on_;
    std::unique_ptr<device::Event> issued_;
    std::unique_ptr<device::Event> arrived_;
    double waited_ = 0.0;
};

SampleStream::SampleStream(const Streamed& what, data::LoaderOptions loading, data::Position from, const Where& where)
    : what_(what),
      uploads_(device::accelerator_of(where.place) == nullptr ? nullptr : std::make_unique<Uploads>(where)),
      loader_(what.source, from, pinned_on(where, std::move(loading))),
      position_(from) {}

SampleStream::~SampleStream() {
    try {
        if (uploads_) uploads_->finish();
    } catch (const device::DeviceError&) { // a lost device reads nothing
    }
}

SampleStream::Turn SampleStream::read() {
    Turn turn;
    try {
        turn.batch = loader_.next();
        turn.after = loader_.position();
        if (!turn.batch) return turn;
        turn.share.count = turn.batch->samples.size();
        turn.share.whole = turn.batch->end - turn.batch->begin;
        if (turn.share.count == 0) return turn;
        turn.share.samples = what_.samples ? what_.samples(*turn.batch) : first_columns(*turn.batch);
        if (uploads_) turn.share.samples = uploads_->begin(turn.share.samples);
    } catch (...) { // told when its turn comes
        turn.error = std::current_exception();
    }
    return turn;
}

std::optional<SampleStream::Share> SampleStream::next() {
    if (uploads_) uploads_->finish(); // the batch of now_ goes
    now_ = ahead_ ? *std::exchange(ahead_, std::nullopt) : read();
    position_ = now_.after;
    if (now_.error) std::rethrow_exception(now_.error);
    if (!now_.batch) return std::nullopt;
    if (uploads_) uploads_->order();
    return now_.share;
}

data::LoadTime SampleStream::take_waited() {
    data::LoadTime waited = loader_.take_waited();
    if (uploads_) waited.other += uploads_->take_waited();
    return waited;
}

} // namespace ranktune::libtorch
