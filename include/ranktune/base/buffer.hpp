// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffer: a view of numbers that knows their type, how many there are, and where they lie.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ranktune/base/dtype.hpp"

namespace ranktune::base {

/// Memory that the processor cannot read or write by itself. All calls come from one thread at a time; a copy is
/// complete when its function returns. Errors are thrown as base::Error.
class Device {
  public:
    virtual ~Device() = default;
    [[nodiscard]] virtual std::string name() const = 0; ///< for messages: "device 0"
    /// Uninitialised memory, aligned for every DType; nullptr for 0 bytes. Free it with `release`.
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
    /// The device address may lie anywhere within an allocation.
    virtual void copy_from_host(void* to, const void* from, std::size_t bytes) = 0;
    virtual void copy_to_host(void* to, const void* from, std::size_t bytes) = 0;
};

/// Where memory is: on the host, or on a device (which outlives the place).
class Place {
  public:
    constexpr Place() = default; ///< the host
    explicit Place(Device& device) : device_(&device) {}
    [[nodiscard]] bool is_host() const { return device_ == nullptr; }
    /// Requires !is_host().
    [[nodiscard]] Device& device() const {
        assert(device_ != nullptr);
        return *device_;
    }
    [[nodiscard]] std::string name() const; ///< "host" or the name of the device
    friend bool operator==(const Place&, const Place&) = default;

  private:
    Device* device_ = nullptr;
};

/// Arrays, vectors, spans and the like of numbers with a DType.
template <class R>
concept Elements =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::ranges::range_value_t<R>>;
/// Writable elements in a borrowed range: they outlive the expression that names them.
template <class R>
concept WritableElements = Elements<R> && std::ranges::borrowed_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// A view for reading. Owns nothing: the memory must outlive it.
class ConstBuffer {
  public:
    /// Views host memory: `group.send(values, 1)` for a std::vector<float> `values`.
    template <Elements R>
    ConstBuffer(const R& values) // NOLINT(google-explicit-constructor): a view, like std::span
        : ConstBuffer(std::ranges::data(values), std::ranges::size(values),
                      dtype_of<std::remove_cv_t<std::ranges::range_value_t<R>>>()) {}
    /// `count` numbers at `address`, which lies in `place`.
    ConstBuffer(const void* address, std::size_t count, DType type, Place place = {})
        : address_(address), count_(count), type_(type), place_(place) {}
    /// Host bytes that hold numbers of `type`. Throws UsageError when the size is no multiple of that of one number.
    [[nodiscard]] static ConstBuffer of_bytes(std::span<const std::byte> bytes, DType type);

    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] DType type() const { return type_; }
    [[nodiscard]] Place place() const { return place_; }
    [[nodiscard]] std::size_t bytes() const { return count_ * size_of(type_); }
    /// For the functions of the device. Device memory must not be dereferenced.
    [[nodiscard]] const void* address() const { return address_; }

    /// The numbers, in host memory. Throws UsageError when `T` is not the type or the place is a device.
    template <Element T>
    [[nodiscard]] std::span<const T> as() const {
        require(dtype_of<T>());
        return {static_cast<const T*>(address_), count_};
    }
    /// The same, byte by byte, for any type.
    [[nodiscard]] std::span<const std::byte> host_bytes() const {
        require(type_);
        return {static_cast<const std::byte*>(address_), bytes()};
    }
    /// `count` numbers from number `first` on. Requires first + count <= count().
    [[nodiscard]] ConstBuffer part(std::size_t first, std::size_t count) const {
        return {address_of(first, count), count, type_, place_};
    }
    /// "6 float32 on the host", for messages.
    [[nodiscard]] std::string text() const;

  protected:
    void require(DType type) const {
        if (type != type_ || !place_.is_host()) refuse(type);
    }
    [[noreturn]] void refuse(DType type) const;
    [[nodiscard]] const std::byte* address_of(std::size_t first, [[maybe_unused]] std::size_t count) const {
        assert(first <= count_ && count <= count_ - first);
        return static_cast<const std::byte*>(address_) + first * size_of(type_);
    }

  private:
    const void* address_;
    std::size_t count_;
    DType type_;
    Place place_;
};

/// A view for reading and writing.
class Buffer : public ConstBuffer {
  public:
    template <WritableElements R>
    Buffer(R&& values) // NOLINT: a view, like std::span
        : ConstBuffer(values) {}
    Buffer(void* address, std::size_t count, DType type, Place place = {}) : ConstBuffer(address, count, type, place) {}
    [[nodiscard]] static Buffer of_bytes(std::span<std::byte> bytes, DType type);

    /// Writable: the constructors take writable memory only.
    [[nodiscard]] void* address() const { return const_cast<void*>(ConstBuffer::address()); }
    template <Element T>
    [[nodiscard]] std::span<T> as() const {
        require(dtype_of<T>());
        return {static_cast<T*>(address()), count()};
    }
    [[nodiscard]] std::span<std::byte> host_bytes() const {
        require(type());
        return {static_cast<std::byte*>(address()), bytes()};
    }
    [[nodiscard]] Buffer part(std::size_t first, std::size_t count) const {
        return {const_cast<std::byte*>(address_of(first, count)), count, type(), place()};
    }
};

/// Copies all numbers; host memory may overlap. Throws UsageError when type or count differ, or when both lie on
/// devices.
void copy(ConstBuffer from, Buffer to);

/// Uninitialised memory in `place`; large host memory lies in huge pages (base::allocate_large). The device must
/// outlive the memory. Throws std::bad_alloc, or what the device throws.
[[nodiscard]] std::shared_ptr<void> allocate(Place place, std::size_t bytes);

/// Calls `take(std::span<const std::byte>)` with the bytes in order: at once when they lie on the host, otherwise in
/// copies of at most 1 MiB.
template <class Take>
void for_each_piece(ConstBuffer buffer, Take&& take) {
    if (buffer.place().is_host()) return take(buffer.host_bytes());
    std::vector<std::byte> piece(std::min(buffer.bytes(), std::size_t{1} << 20U));
    const auto* const begin = static_cast<const std::byte*>(buffer.address());
    for (std::size_t done = 0; done < buffer.bytes(); done += piece.size()) {
        const std::size_t size = std::min(piece.size(), buffer.bytes() - done);
        buffer.place().device().copy_to_host(piece.data(), begin + done, size);
        take(std::span<const std::byte>(piece).first(size));
    }
}

} // namespace ranktune::base
