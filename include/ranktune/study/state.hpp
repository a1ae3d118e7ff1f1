// SPDX-License-Identifier: Apache-2.0
#pragma once
// StateSink and StateSource: what a trial saves and loads, whoever stores or ships it. A trial never sees a file.

#include <cstddef>
#include <cstdint>
#include <new>
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

/// replicated: every rank has the same bytes, rank 0's are stored, every rank gets them back. sharded: every rank has
/// some of the rows (indices of the first extent), saves them, and may ask for any others when it loads. Either way a
/// resume works on any number of ranks. Sharded tensors need TrainableInfo::sharded.
enum class Layout : std::uint8_t { replicated = 0, sharded = 1 };

struct TensorInfo {
    std::string name; ///< unique, e.g. "layers.0.weight"
    DType type = DType::float32;
    std::vector<std::uint64_t> shape; ///< row-major, of the whole tensor; empty: a scalar
    Layout layout = Layout::replicated;
    std::uint64_t first_row = 0; ///< sharded: the rows that the bytes hold
    std::uint64_t rows = 0;
    friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// Bytes of the rows that `info` is about; saturates, so that an absurd shape never matches real bytes.
[[nodiscard]] std::uint64_t bytes_of(const TensorInfo& info);
/// Of two parts of one sharded tensor: copies the rows that both hold, and returns how many.
std::uint64_t copy_rows(const TensorInfo& from_info, std::span<const std::byte> from, const TensorInfo& to_info,
                        std::span<std::byte> to);

/// Memory of a state. What is large begins at a page, so that it can go to a disk without another copy.
template <class T>
struct PageAllocator {
    using value_type = T;
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t aligned_from = std::size_t{64} * 1024;
    PageAllocator() = default;
    template <class U>
    PageAllocator(const PageAllocator<U>&) noexcept {} // NOLINT: allocators convert
    [[nodiscard]] T* allocate(std::size_t count) {
        return static_cast<T*>(::operator new(count * sizeof(T), alignment(count)));
    }
    void deallocate(T* memory, std::size_t count) noexcept { ::operator delete(memory, alignment(count)); }
    /// Nothing is filled with zeros that is about to be written.
    template <class U>
    void construct(U* at) noexcept {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Values>
    void construct(U* at, Values&&... values) {
        ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
    }
    friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }

  private:
    static std::align_val_t alignment(std::size_t count) {
        return std::align_val_t(count * sizeof(T) >= aligned_from ? page : alignof(std::max_align_t));
    }
};
using StateBytes = std::vector<std::byte, PageAllocator<std::byte>>;

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
    /// This rank's rows of a tensor that the ranks hold in parts; `shape` is that of the whole. Together the ranks
    /// save every row once. Only with TrainableInfo::sharded.
    template <class T>
    void put_rows(std::string name, std::span<const T> values, std::vector<std::uint64_t> shape,
                  std::uint64_t first_row, std::uint64_t rows) {
        tensor({std::move(name), dtype_of<T>(), std::move(shape), Layout::sharded, first_row, rows},
               std::as_bytes(values));
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
    /// Any rows of a tensor that was saved with `put_rows`, however many ranks saved it.
    template <class T>
    void get_rows(std::string name, std::span<T> values, std::vector<std::uint64_t> shape, std::uint64_t first_row,
                  std::uint64_t rows) {
        tensor({std::move(name), dtype_of<T>(), std::move(shape), Layout::sharded, first_row, rows},
               std::as_writable_bytes(values));
    }
};

/// A state in memory: sink and source at once. For asynchronous checkpoints, transfers between groups, and tests. Of a
/// sharded tensor it may hold several parts.
class MemoryState final : public StateSink, public StateSource {
  public:
    struct Tensor {
        TensorInfo info;
        StateBytes bytes;
    };
    struct Blob {
        std::string name;
        StateBytes bytes;
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
    /// With every sharded tensor in one piece, as a replicated one. Throws base::FormatError when rows are missing.
    [[nodiscard]] MemoryState whole() const;
    /// Empties it for the next state and keeps the memory: saving a state of the same form again then is a plain copy,
    /// without a page of new memory.
    void reset();

  private:
    [[nodiscard]] StateBytes copy(std::span<const std::byte> bytes);
    void rows(const TensorInfo& info, std::span<std::byte> bytes) const;

    std::vector<Tensor> tensors_;
    std::vector<Blob> blobs_;
    std::vector<StateBytes> spare_; ///< memory of the states before, the first to be used again last
};

/// The digest of a state (MemoryState::digest) without a copy of it: what a rank that stores nothing needs in order to
/// be compared with the one that does.
class StateDigest final : public StateSink {
  public:
    void tensor(const TensorInfo& info, std::span<const std::byte> bytes) override;
    void blob(std::string_view, std::span<const std::byte>) override {} // counters may differ from rank to rank
    /// The same as `tensor`, for bytes that are passed on in pieces.
    void begin(const TensorInfo& info);
    void add(std::span<const std::byte> piece) { digest_.add(piece); }
    [[nodiscard]] std::uint64_t value() const { return digest_.value(); }

  private:
    base::Digest digest_;
};

} // namespace ranktune::study
