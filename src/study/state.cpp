// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/state.hpp"

#include <algorithm>
#include <limits>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::study {
namespace {

std::string shape_text(const TensorInfo& info) {
    std::string text = std::string(name(info.type)) + "[";
    for (std::size_t i = 0; i < info.shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(info.shape[i]);
    return text + "]";
}

/// Bytes that a tensor of this type and shape takes; saturates, so that an absurd shape never matches real bytes.
std::uint64_t bytes_of(const TensorInfo& info) {
    std::uint64_t bytes = size_of(info.type);
    for (const std::uint64_t extent : info.shape) {
        if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extent)
            return std::numeric_limits<std::uint64_t>::max();
        bytes *= extent;
    }
    return bytes;
}

void check_size(const TensorInfo& info, std::size_t bytes) {
    if (bytes != bytes_of(info))
        throw base::UsageError("tensor '" + info.name + "': " + std::to_string(bytes) + " bytes do not fit " +
                               shape_text(info));
}

void add_text(base::Digest& digest, std::string_view text) {
    digest.add(static_cast<std::uint64_t>(text.size())).add(std::as_bytes(std::span(text)));
}

void add_tensor(base::Digest& digest, const TensorInfo& info, std::span<const std::byte> bytes) {
    add_text(digest, info.name);
    digest.add(info.type).add(static_cast<std::uint64_t>(info.shape.size()));
    for (const std::uint64_t extent : info.shape) digest.add(extent);
    digest.add(bytes);
}

} // namespace

std::size_t size_of(DType type) {
    switch (type) {
        case DType::float32:
        case DType::int32:
            return 4;
        case DType::float64:
        case DType::int64:
        case DType::uint64:
            return 8;
        case DType::uint8:
            return 1;
    }
    throw base::FormatError("unknown tensor type " + std::to_string(static_cast<unsigned>(type)));
}

std::string_view name(DType type) {
    switch (type) {
        case DType::float32:
            return "float32";
        case DType::float64:
            return "float64";
        case DType::int32:
            return "int32";
        case DType::int64:
            return "int64";
        case DType::uint8:
            return "uint8";
        case DType::uint64:
            return "uint64";
    }
    return "unknown";
}

std::vector<std::byte> MemoryState::copy(std::span<const std::byte> bytes) {
    std::vector<std::byte> memory;
    if (!spare_.empty()) {
        memory = std::move(spare_.back());
        spare_.pop_back();
    }
    memory.assign(bytes.begin(), bytes.end());
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

void MemoryState::tensor(const TensorInfo& info, std::span<const std::byte> bytes) {
    check_size(info, bytes.size());
    if (std::ranges::any_of(tensors_, [&](const Tensor& t) { return t.info.name == info.name; }))
        throw base::UsageError("tensor '" + info.name + "' is saved twice");
    tensors_.push_back({info, copy(bytes)});
}

void MemoryState::blob(std::string_view name, std::span<const std::byte> bytes) {
    if (std::ranges::any_of(blobs_, [&](const Blob& b) { return b.name == name; }))
        throw base::UsageError("blob '" + std::string(name) + "' is saved twice");
    blobs_.push_back({std::string(name), copy(bytes)});
}

void MemoryState::tensor(const TensorInfo& info, std::span<std::byte> bytes) {
    const auto found = std::ranges::find_if(tensors_, [&](const Tensor& t) { return t.info.name == info.name; });
    if (found == tensors_.end()) throw base::FormatError("the state has no tensor '" + info.name + "'");
    if (found->info != info)
        throw base::FormatError("tensor '" + info.name + "' is " + shape_text(found->info) + " in the state, not " +
                                shape_text(info));
    if (found->bytes.size() != bytes.size())
        throw base::FormatError("tensor '" + info.name + "' has " + std::to_string(found->bytes.size()) +
                                " bytes in the state, not " + std::to_string(bytes.size()));
    std::ranges::copy(found->bytes, bytes.begin());
}

std::vector<std::byte> MemoryState::blob(std::string_view name) {
    const auto found = std::ranges::find_if(blobs_, [&](const Blob& b) { return b.name == name; });
    if (found == blobs_.end()) throw base::FormatError("the state has no blob '" + std::string(name) + "'");
    return found->bytes;
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
    base::Digest digest;
    for (const Tensor& tensor : tensors_) add_tensor(digest, tensor.info, tensor.bytes);
    return digest.value();
}

void StateDigest::tensor(const TensorInfo& info, std::span<const std::byte> bytes) {
    check_size(info, bytes.size());
    add_tensor(digest_, info, bytes);
}

} // namespace ranktune::study
