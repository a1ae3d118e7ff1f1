// SPDX-License-Identifier: Apache-2.0
#pragma once
// StateSink and StateSource: how a trial saves and loads its state, independent of storage and transport. A trial never
// sees a file.

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::study {

using base::DType;

/// replicated: every rank has the same bytes; rank 0's are stored, and every rank gets them back. sharded: every rank
/// saves some of the rows (indices of the first extent), and may load any others. Either way a resume works on any
/// number of ranks. Sharded tensors need TrainableInfo::sharded.
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

/// Bytes of the rows in `info`; saturates, so that an absurd shape never matches real bytes.
[[nodiscard]] std::uint64_t bytes_of(const TensorInfo& info);
/// Copies the rows that two parts of a sharded tensor share, and returns how many.
std::uint64_t copy_rows(const TensorInfo& from_info, base::ConstBuffer from, const TensorInfo& to_info,
                        base::Buffer to);

/// Memory of a state. Large blocks are aligned to pages, so that they can be written to disk without another copy.
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
    /// Leaves elements uninitialised: they are about to be written.
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
/// memory is only valid during the call, and may lie on a device.
class StateSink {
  public:
    virtual ~StateSink() = default;
    /// `values`: all elements, or those of the rows of a sharded tensor. Throws base::UsageError when type or count
    /// differ from `info`.
    virtual void tensor(const TensorInfo& info, base::ConstBuffer values) = 0;
    virtual void blob(std::string_view name, std::span<const std::byte> bytes) = 0;

    /// `shape` is empty for a vector.
    void put(std::string name, base::ConstBuffer values, std::vector<std::uint64_t> shape = {}) {
        if (shape.empty()) shape.push_back(values.count());
        tensor({std::move(name), values.type(), std::move(shape), Layout::replicated}, values);
    }
    template <class T>
    void put(std::string name, std::span<const T> values, std::vector<std::uint64_t> shape = {}) {
        put(std::move(name), base::ConstBuffer(values), std::move(shape));
    }
    /// This rank's rows of a sharded tensor; `shape` is that of the whole tensor. Together the ranks save every row
    /// once. Only with TrainableInfo::sharded.
    void put_rows(std::string name, base::ConstBuffer values, std::vector<std::uint64_t> shape, std::uint64_t first_row,
                  std::uint64_t rows) {
        tensor({std::move(name), values.type(), std::move(shape), Layout::sharded, first_row, rows}, values);
    }
    template <class T>
    void put_rows(std::string name, std::span<const T> values, std::vector<std::uint64_t> shape,
                  std::uint64_t first_row, std::uint64_t rows) {
        put_rows(std::move(name), base::ConstBuffer(values), std::move(shape), first_row, rows);
    }
};

/// Loads a state. Throws base::FormatError when a name is missing, or type or shape differ.
class StateSource {
  public:
    virtual ~StateSource() = default;
    /// Copies the tensor into `values`, which may lie on a device; `info` must match what was saved, and `values` must
    /// match `info` (else base::UsageError).
    virtual void tensor(const TensorInfo& info, base::Buffer values) = 0;
    [[nodiscard]] virtual std::vector<std::byte> blob(std::string_view name) = 0;
    [[nodiscard]] virtual std::vector<TensorInfo> tensors() const = 0;

    /// The shape must be the one that was saved; empty for a vector.
    void get(std::string name, base::Buffer values, std::vector<std::uint64_t> shape = {}) {
        if (shape.empty()) shape.push_back(values.count());
        tensor({std::move(name), values.type(), std::move(shape), Layout::replicated}, values);
    }
    template <class T>
    void get(std::string name, std::span<T> values, std::vector<std::uint64_t> shape = {}) {
        get(std::move(name), base::Buffer(values), std::move(shape));
    }
    /// Any rows of a tensor that was saved with `put_rows`, however many ranks saved it.
    void get_rows(std::string name, base::Buffer values, std::vector<std::uint64_t> shape, std::uint64_t first_row,
                  std::uint64_t rows) {
        tensor({std::move(name), values.type(), std::move(shape), Layout::sharded, first_row, rows}, values);
    }
    template <class T>
    void get_rows(std::string name, std::span<T> values, std::vector<std::uint64_t> shape, std::uint64_t first_row,
                  std::uint64_t rows) {
        get_rows(std::move(name), base::Buffer(values), std::move(shape), first_row, rows);
    }
};

/// A state in memory: sink and source at once. For asynchronous checkpoints, transfers between groups, and tests. It
/// may hold several parts of a sharded tensor.
class MemoryState final : public StateSink, public StateSource {
  public:
    struct Tensor {
        TensorInfo info;
        StateBytes bytes; ///< on the host, wherever the tensor came from
        [[nodiscard]] base::ConstBuffer values() const { return base::ConstBuffer::of_bytes(bytes, info.type); }
    };
    struct Blob {
        std::string name;
        StateBytes bytes;
    };

    void tensor(const TensorInfo& info, base::ConstBuffer values) override;
    void blob(std::string_view name, std::span<const std::byte> bytes) override;
    void tensor(const TensorInfo& info, base::Buffer values) override;
    [[nodiscard]] std::vector<std::byte> blob(std::string_view name) override;
    [[nodiscard]] std::vector<TensorInfo> tensors() const override;

    /// Adds a tensor and returns its memory, which the caller fills. Throws as `tensor`.
    [[nodiscard]] std::span<std::byte> add(const TensorInfo& info);

    [[nodiscard]] const std::vector<Tensor>& stored_tensors() const { return tensors_; }
    [[nodiscard]] const std::vector<Blob>& stored_blobs() const { return blobs_; }
    [[nodiscard]] std::uint64_t bytes() const;
    /// XXH64 over names, types, shapes and bytes of the tensors, in the order of saving: equal on all ranks of a
    /// correct trial.
    [[nodiscard]] std::uint64_t digest() const;
    /// A copy with every sharded tensor joined into a replicated one. Throws base::FormatError when rows are missing.
    [[nodiscard]] MemoryState whole() const;
    /// Clears the state and keeps the memory: saving a state of the same form again is a plain copy without new
    /// allocations.
    void reset();

  private:
    /// `bytes` bytes of uninitialised memory, reused from an earlier state if possible.
    [[nodiscard]] StateBytes memory(std::size_t bytes);
    void rows(const TensorInfo& info, base::Buffer values) const;

    std::vector<Tensor> tensors_;
    std::vector<Blob> blobs_;
    std::vector<StateBytes> spare_; ///< memory of earlier states, reused from the back
};

/// The digest of a state (MemoryState::digest) without a copy: for ranks that store nothing, to compare them with the
/// one that does.
class StateDigest final : public StateSink {
  public:
    void tensor(const TensorInfo& info, base::ConstBuffer values) override;
    void blob(std::string_view, std::span<const std::byte>) override {} // counters may differ from rank to rank
    /// The same as `tensor`, for bytes that are passed on in pieces.
    void begin(const TensorInfo& info);
    void add(std::span<const std::byte> piece) { digest_.add(piece); }
    [[nodiscard]] std::uint64_t value() const { return digest_.value(); }

  private:
    base::Digest digest_;
};

} // namespace ranktune::study
