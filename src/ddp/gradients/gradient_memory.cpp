// SPDX-License-Identifier: Apache-2.0
#include "ddp/gradients/gradient_memory.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "ddp/collective/number_type.hpp"
#include "device/device.hpp"

namespace ranktune::ddp {

namespace {

/// Null for the host, and for devices of tests.
device::Accelerator* accelerator_for(base::Buffer values) {
    auto* const accelerator = device::accelerator_of(values.place());
    if (accelerator != nullptr && values.type() != base::DType::float32)
        throw base::UsageError("gradients of " + std::string(base::name(values.type())) + " on " +
                               values.place().name() +
                               " can neither be accumulated nor clipped: only those of float32");
    return accelerator;
}

float* floats(base::Buffer values) { return static_cast<float*>(values.address()); }

base::DType added_type(base::DType type) { return base::size_of(type) == 2 ? base::DType::float32 : type; }

} // namespace

GradientMemory::GradientMemory(std::span<const std::size_t> sizes, BucketPlan buckets, base::DType t, base::Place where)
    : plan(std::move(buckets)), type(t), place(where), size(sizes.begin(), sizes.end()), offset(sizes.size()) {
    for (const BucketPlan::Bucket& bucket : plan.buckets) {
        bucket_begin.push_back(total);
        for (const BucketPlan::Slot& slot : bucket.slots) offset[slot.tensor] = total + slot.offset;
        total += bucket.size;
    }
    memory = base::allocate(place, (total + 1) * base::size_of(type));
    fill_with_zeros(all());
}

void fill_with_zeros(base::Buffer values) {
    if (values.place().is_host()) {
        std::ranges::fill(values.host_bytes(), std::byte{0});
        return;
    }
    auto* const begin = static_cast<std::byte*>(values.address());
    if (auto* const accelerator = device::accelerator_of(values.place()))
        return accelerator->compute_stream().fill_zero(begin, values.bytes());
    const std::vector<std::byte> zeros(std::min(values.bytes(), std::size_t{1} << 20U));
    for (std::size_t done = 0; done < values.bytes(); done += zeros.size())
        values.place().device().copy_from_host(begin + done, zeros.data(),
                                               std::min(zeros.size(), values.bytes() - done));
}

void write_number(base::Buffer to, float value) {
    with_type(to.type(), [&]<class T>(T) {
        const T number(value);
        base::copy(std::span(&number, 1), to);
    });
}

/// Its bits are not zero and not those of -0.
bool is_positive(base::ConstBuffer number) {
    std::uint64_t bits = 0;
    base::copy(number, {&bits, 1, number.type()});
    return bits != 0 && (bits >> (8 * base::size_of(number.type()) - 1)) == 0;
}

base::Buffer Accumulator::sums(const GradientMemory& gradients) const {
    return {memory_.get(), gradients.total, added_type(gradients.type), gradients.place};
}

void Accumulator::take(const GradientMemory& gradients) {
    if (!memory_ || count_ != gradients.total) {
        memory_ = base::allocate(gradients.place, gradients.total * base::size_of(added_type(gradients.type)));
        count_ = gradients.total;
    }
    const base::Buffer from = gradients.all().part(0, gradients.total);
    const base::Buffer to = sums(gradients);
    if (auto* const accelerator = accelerator_for(from)) {
        if (!holds_) fill_with_zeros(to);
        accelerator->compute_stream().add(floats(to), floats(from), to.count());
        holds_ = true;
        return;
    }
    with_type(gradients.type, [&]<class T>(T) {
        const std::span<Wide<T>> sum = to.as<Wide<T>>();
        const std::span<const T> numbers = base::ConstBuffer(from).as<T>();
        if (!holds_) std::ranges::fill(sum, Wide<T>{});
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<Wide<T>>(numbers[i]);
    });
    holds_ = true;
}

void Accumulator::add_to(const GradientMemory& gradients, std::size_t b) const {
    if (!holds_) return;
    const base::Buffer to = gradients.bucket(b);
    const base::Buffer from = sums(gradients).part(gradients.bucket_begin[b], to.count());
    if (auto* const accelerator = accelerator_for(to))
        return accelerator->compute_stream().add(floats(to), floats(from), to.count());
    with_type(gradients.type, [&]<class T>(T) {
        const std::span<const Wide<T>> sum = base::ConstBuffer(from).as<Wide<T>>();
        const std::span<T> numbers = to.as<T>();
        for (std::size_t i = 0; i < sum.size(); ++i)
            numbers[i] = static_cast<T>(sum[i] + static_cast<Wide<T>>(numbers[i]));
    });
}

namespace {

/// 2-norm. In eight sums, element i in sum i % 8: processors add them side by side.
double norm_of(base::ConstBuffer values) {
    double squares[8] = {};
    with_type(values.type(), [&]<class T>(T) {
        const std::span<const T> numbers = values.as<T>();
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto wide = static_cast<double>(static_cast<Wide<T>>(numbers[i]));
            squares[i % 8] += wide * wide;
        }
    });
    return std::sqrt(std::accumulate(std::begin(squares), std::end(squares), 0.0));
}

void scale(base::Buffer values, double factor) {
    with_type(values.type(), [&]<class T>(T) {
        for (T& number : values.as<T>())
            number = static_cast<T>(static_cast<Wide<T>>(number) * static_cast<Wide<T>>(factor));
    });
}

} // namespace

void Clipper::clip(base::Buffer values, double most) {
    if (auto* const accelerator = accelerator_for(values)) {
        place_ = values.place();
        if (!numbers_) numbers_ = base::allocate(place_, device::Stream::clip_numbers * sizeof(double));
        accelerator->compute_stream().clip(floats(values), values.count(), most, static_cast<double*>(numbers_.get()));
        return;
    }
    norm_ = norm_of(values);
    const double factor = most / (norm_ + 1e-6);
    if (!(factor >= 1.0)) scale(values, factor); // NaN spreads
}

double Clipper::last_norm() const {
    if (!numbers_) return norm_;
    double norm = 0.0;
    base::copy(base::ConstBuffer(numbers_.get(), 1, base::DType::float64, place_), std::span(&norm, 1));
    return norm;
}

} // namespace ranktune::ddp
