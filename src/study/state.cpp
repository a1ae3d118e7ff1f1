// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/state.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/joined.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::study {
namespace {

/// Copies of this size and more bypass the CPU's caches. They are read next by a disk or another core, and an ordinary
/// store would first read the line that it overwrites, which adds half of the memory traffic while training waits. The
/// C library does the same, but only for copies much larger than most tensors.
constexpr std::size_t past_caches_from = std::size_t{256} * 1024;

#if defined(__x86_64__)
/// Requires `to` aligned to 16. Copies four pages side by side, to keep more memory banks open.
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t size) {
    constexpr std::size_t page = 4096;
    constexpr std::size_t line = 64;
    std::size_t done = 0;
    for (; size - done >= 4 * page; done += 4 * page) {
        for (std::size_t at = done; at < done + page; at += line) {
            for (std::size_t i = 0; i < 4; ++i) {
                for (std::size_t part = i * page; part < i * page + line; part += sizeof(__m128i)) {
                    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part),
                                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part)));
                }
            }
        }
    }
    _mm_sfence(); // other threads see it in order
    std::memcpy(to + done, from + done, size - done);
}
#endif

void copy_to_state(std::span<const std::byte> from, std::byte* to) {
    if (from.empty()) return;
#if defined(__x86_64__)
    if (from.size() >= past_caches_from && reinterpret_cast<std::uintptr_t>(to) % sizeof(__m128i) == 0)
        return copy_past_caches(to, from.data(), from.size());
#endif
    std::memcpy(to, from.data(), from.size());
}

std::string shape_text(const TensorInfo& info) {
    const auto in_digits = [](std::uint64_t extent) { return std::to_string(extent); };
    return std::string(base::name(info.type)) + "[" + base::joined(info.shape, in_digits) + "]";
}

std::uint64_t product(std::uint64_t bytes, std::span<const std::uint64_t> extents) {
    for (const std::uint64_t extent : extents) {
        if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extent)
            return std::numeric_limits<std::uint64_t>::max();
        bytes *= extent;
    }
    return bytes;
}

/// Whether both are parts of the same tensor.
bool same_tensor(const TensorInfo& a, const TensorInfo& b) {
    return a.name == b.name && a.type == b.type && a.shape == b.shape && a.layout == b.layout;
}

bool overlap(const TensorInfo& a, const TensorInfo& b) {
    if (a.layout != Layout::sharded || b.layout != Layout::sharded) return true;
    return a.first_row < b.first_row + b.rows && b.first_row < a.first_row + a.rows;
}

void check_values(const TensorInfo& info, const base::ConstBuffer& values) {
    if (info.layout == Layout::sharded &&
        (info.shape.empty() || info.first_row > info.shape[0] || info.rows > info.shape[0] - info.first_row))
        throw base::UsageError("tensor '" + info.name + "': rows " + std::to_string(info.first_row) + " to " +
                               std::to_string(info.first_row + info.rows) + " are not rows of " + shape_text(info));
    if (values.type() != info.type || values.bytes() != bytes_of(info))
        throw base::UsageError("tensor '" + info.name + "': " + values.text() + " are not " +
                               (info.layout == Layout::sharded ? "the rows of " : "") + shape_text(info));
}

void add_text(base::Digest& digest, std::string_view text) {
    digest.add(static_cast<std::uint64_t>(text.size())).add(std::as_bytes(std::span(text)));
}

void add_info(base::Digest& digest, const TensorInfo& info) {
    add_text(digest, info.name);
    digest.add(info.type).add(static_cast<std::uint64_t>(info.shape.size()));
    for (const std::uint64_t extent : info.shape) digest.add(extent);
    if (info.layout == Layout::sharded) digest.add(info.first_row).add(info.rows);
}

} // namespace

std::uint64_t bytes_of(const TensorInfo& info) {
    if (info.layout == Layout::replicated || info.shape.empty()) return product(size_of(info.type), info.shape);
    return product(product(size_of(info.type), std::span(info.shape).subspan(1)), std::span(&info.rows, 1));
}

std::uint64_t copy_rows(const TensorInfo& from_info, base::ConstBuffer from, const TensorInfo& to_info,
                        base::Buffer to) {
    const std::uint64_t begin = std::max(from_info.first_row, to_info.first_row);
    const std::uint64_t end = std::min(from_info.first_row + from_info.rows, to_info.first_row + to_info.rows);
    if (begin >= end) return 0;
    const std::size_t row = from.count() / from_info.rows;
    base::copy(from.part((begin - from_info.first_row) * row, (end - begin) * row),
               to.part((begin - to_info.first_row) * row, (end - begin) * row));
    return end - begin;
}

StateBytes MemoryState::memory(std::size_t bytes) {
    StateBytes memory;
    if (!spare_.empty()) {
        memory = std::move(spare_.back());
        spare_.pop_back();
    }
    memory.resize(bytes);
    return memory;
}

void MemoryState::reset() {
    spare_.clear();
    for (auto blob = blobs_.rbegin(); blob != blobs_.rend(); ++blob) spare_.push_back(std::move(blob->bytes));
    for (auto tensor = tensors_.rbegin(); tensor != tensors_.rend(); ++tensor)
        spare_.push_back(std::move(tensor->bytes));
    tensors_.clear();
    blobs_.clear();
}

void MemoryState::tensor(const TensorInfo& info, base::ConstBuffer values) {
    check_values(info, values);
    const std::span<std::byte> bytes = add(info);
    if (values.place().is_host())
        copy_to_state(values.host_bytes(), bytes.data());
    else
        base::copy(values, base::Buffer::of_bytes(bytes, info.type));
}

std::span<std::byte> MemoryState::add(const TensorInfo& info) {
    if (std::ranges::any_of(tensors_,
                            [&](const Tensor& t) { return t.info.name == info.name && overlap(t.info, info); }))
        throw base::UsageError("tensor '" + info.name + "' is saved twice");
    return tensors_.emplace_back(info, memory(bytes_of(info))).bytes;
}

void MemoryState::blob(std::string_view name, std::span<const std::byte> bytes) {
    if (std::ranges::any_of(blobs_, [&](const Blob& b) { return b.name == name; }))
        throw base::UsageError("blob '" + std::string(name) + "' is saved twice");
    StateBytes copy = memory(bytes.size());
    copy_to_state(bytes, copy.data());
    blobs_.push_back({std::string(name), std::move(copy)});
}

void MemoryState::tensor(const TensorInfo& info, base::Buffer values) {
    const auto found = std::ranges::find_if(tensors_, [&](const Tensor& t) { return t.info.name == info.name; });
    if (found == tensors_.end()) throw base::FormatError("the state has no tensor '" + info.name + "'");
    if (!same_tensor(found->info, info))
        throw base::FormatError("tensor '" + info.name + "' is " + shape_text(found->info) + " in the state, not " +
                                shape_text(info));
    check_values(info, values);
    if (info.layout == Layout::sharded) return rows(info, values);
    base::copy(found->values(), values);
}

std::vector<std::byte> MemoryState::blob(std::string_view name) {
    const auto found = std::ranges::find_if(blobs_, [&](const Blob& b) { return b.name == name; });
    if (found == blobs_.end()) throw base::FormatError("the state has no blob '" + std::string(name) + "'");
    return {found->bytes.begin(), found->bytes.end()};
}

void MemoryState::rows(const TensorInfo& info, base::Buffer values) const {
    std::uint64_t found = 0;
    for (const Tensor& part : tensors_)
        if (same_tensor(part.info, info)) found += copy_rows(part.info, part.values(), info, values);
    if (found != info.rows)
        throw base::FormatError("tensor '" + info.name + "' has only " + std::to_string(found) + " of the " +
                                std::to_string(info.rows) + " rows from " + std::to_string(info.first_row) +
                                " on in the state");
}

MemoryState MemoryState::whole() const {
    MemoryState all;
    for (const Tensor& part : tensors_) {
        if (part.info.layout == Layout::replicated) {
            all.tensor(part.info, part.values());
        } else if (std::ranges::none_of(all.tensors_, [&](const Tensor& t) { return t.info.name == part.info.name; })) {
            TensorInfo info = part.info;
            info.first_row = 0;
            info.rows = info.shape[0];
            StateBytes bytes(bytes_of(info));
            rows(info, base::Buffer::of_bytes(bytes, info.type));
            all.tensors_.push_back({{info.name, info.type, info.shape, Layout::replicated}, std::move(bytes)});
        }
    }
    all.blobs_ = blobs_;
    return all;
}

std::vector<TensorInfo> MemoryState::tensors() const {
    std::vector<TensorInfo> infos;
    infos.reserve(tensors_.size());
    for (const Tensor& tensor : tensors_) infos.push_back(tensor.info);
    return infos;
}

std::uint64_t MemoryState::bytes() const {
    std::uint64_t total = 0;
    for (const Tensor& tensor : tensors_) total += tensor.bytes.size();
    for (const Blob& blob : blobs_) total += blob.bytes.size();
    return total;
}

std::uint64_t MemoryState::digest() const {
    StateDigest digest;
    for (const Tensor& tensor : tensors_) digest.tensor(tensor.info, tensor.values());
    return digest.value();
}

void StateDigest::tensor(const TensorInfo& info, base::ConstBuffer values) {
    check_values(info, values);
    begin(info);
    base::for_each_piece(values, [this](std::span<const std::byte> piece) { add(piece); });
}

void StateDigest::begin(const TensorInfo& info) { add_info(digest_, info); }

} // namespace ranktune::study
