// SPDX-License-Identifier: Apache-2.0
#pragma once
// StateSink and StateSource: what a trial saves and loads, whoever stores or ships it. A trial never sees a file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/digest.hpp"

namespace ranktune::study {

enum class DType : std::uint8_t { float32 = 0, float64 = 1, int32 = 2, int64 = 3, uint8 = 4, uint64 = 5 };
[[nodiscard]] std::size_t size_of(DType type);
[[nodiscard]] std::string_view name(DType type);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
    return DType::float32;
}
template <>
constexpr DType dtype_of<double>() {
    return DType::float64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
    return DType::int32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
    return DType::int64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
    return DType::uint8;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
    return DType::uint64;
}

/// replicated: every rank has the same bytes, rank 0's are stored, every rank gets them back. A resume works on any
/// number of ranks. (Sharded layouts come with sharded checkpoints; the field is stored from the beginning.)
enum class Layout : std::uint8_t { replicated = 0 };

struct TensorInfo {
    std::string name; ///< unique, e.g. "layers.0.weight"
    DType type = DType::float32;
    std::vector<std::uint64_t> shape; ///< row-major; empty: a scalar
    Layout layout = Layout::replicated;
    friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// Receives the state of a trial: named tensors, and small named byte strings (counters, RNG positions, options). The
/// bytes are only valid during the call: the sink copies or writes them.
class StateSink {
  public:
    virtual ~StateSink() = default;
    virtual void tensor(const TensorInfo& info, std::span<const std::byte> bytes) = 0;
    virtual void blob(std::string_view name, std::span<const std::byte> bytes) = 0;

    template <class T>
    void put(std::string name, std::span<const T> values, std::vector<std::uint64_t> shape = {}) {
        if (shape.empty()) shape.push_back(values.size());
        tensor({std::move(name), dtype_of<T>(), std::move(shape), Layout::replicated}, std::as_bytes(values));
    }
};

/// Gives the state back. Throws base::FormatError when a name is missing or type or shape differ from what is asked
/// for.
class StateSource {
  public:
    virtual ~StateSource() = default;
    /// Copies the tensor into `bytes`; `info` must match what was saved.
    virtual void tensor(const TensorInfo& info, std::span<std::byte> bytes) = 0;
    [[nodiscard]] virtual std::vector<std::byte> blob(std::string_view name) = 0;
    [[nodiscard]] virtual std::vector<TensorInfo> tensors() const = 0;

    template <class T>
    void get(std::string name, std::span<T> values, std::vector<std::uint64_t> shape = {}) {
        if (shape.empty()) shape.push_back(values.size());
        tensor({std::move(name), dtype_of<T>(), std::move(shape), Layout::replicated}, std::as_writable_bytes(values));
    }
};

/// A state in memory: sink and source at once. For asynchronous checkpoints, transfers between groups, and tests.
class MemoryState final : public StateSink, public StateSource {
  public:
    struct Tensor {
        TensorInfo info;
        std::vector<std::byte> bytes;
    };
    struct Blob {
        std::string name;
        std::vector<std::byte> bytes;
    };

    void tensor(const TensorInfo& info, std::span<const std::byte> bytes) override;
    void blob(std::string_view name, std::span<const std::byte> bytes) override;
    void tensor(const TensorInfo& info, std::span<std::byte> bytes) override;
    [[nodiscard]] std::vector<std::byte> blob(std::string_view name) override;
    [[nodiscard]] std::vector<TensorInfo> tensors() const override;

    [[nodiscard]] const std::vector<Tensor>& stored_tensors() const { return tensors_; }
    [[nodiscard]] const std::vector<Blob>& stored_blobs() const { return blobs_; }
    [[nodiscard]] std::uint64_t bytes() const;
    /// XXH64 over names, types, shapes and bytes of the tensors, in the order of saving: equal on all ranks of a
    /// correct trial.
    [[nodiscard]] std::uint64_t digest() const;
    /// Empties it for the next state and keeps the memory: saving a state of the same form again then is a plain copy,
    /// without a page of new memory.
    void reset();

  private:
    [[nodiscard]] std::vector<std::byte> copy(std::span<const std::byte> bytes);

    std::vector<Tensor> tensors_;
    std::vector<Blob> blobs_;
    std::vector<std::vector<std::byte>> spare_; ///< memory of the states before, the first to be used again last
};

/// The digest of a state (MemoryState::digest) without a copy of it: what a rank that stores nothing needs in order to
/// be compared with the one that does.
class StateDigest final : public StateSink {
  public:
    void tensor(const TensorInfo& info, std::span<const std::byte> bytes) override;
    void blob(std::string_view, std::span<const std::byte>) override {} // counters may differ from rank to rank
    [[nodiscard]] std::uint64_t value() const { return digest_.value(); }

  private:
    base::Digest digest_;
};

} // namespace ranktune::study
