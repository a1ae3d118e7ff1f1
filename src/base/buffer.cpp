// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/buffer.hpp"

#include <cstring>

#include "ranktune/base/error.hpp"
#include "ranktune/base/huge_pages.hpp"

namespace ranktune::base {

namespace {

std::size_t whole_numbers(std::size_t bytes, DType type) {
    if (bytes % size_of(type) != 0)
        throw UsageError(std::to_string(bytes) + " bytes are not a whole number of " + std::string(name(type)));
    return bytes / size_of(type);
}

} // namespace

std::string Place::name() const { return is_host() ? "host" : device_->name(); }

ConstBuffer ConstBuffer::of_bytes(std::span<const std::byte> bytes, DType type) {
    return {bytes.data(), whole_numbers(bytes.size(), type), type};
}

Buffer Buffer::of_bytes(std::span<std::byte> bytes, DType type) {
    return {bytes.data(), whole_numbers(bytes.size(), type), type};
}

std::string ConstBuffer::text() const {
    return std::to_string(count_) + " " + std::string(base::name(type_)) + " on " +
           (place_.is_host() ? "the host" : place_.name());
}

void ConstBuffer::refuse(DType type) const {
    throw UsageError("a buffer of " + text() + " was used as " + std::string(base::name(type)) + " on the host");
}

void copy(ConstBuffer from, Buffer to) {
    if (from.type() != to.type() || from.count() != to.count())
        throw UsageError("cannot copy " + from.text() + " to " + to.text());
    if (from.empty()) return;
    const std::size_t bytes = from.bytes();
    if (from.place().is_host() && to.place().is_host()) {
        std::memmove(to.address(), from.address(), bytes);
    } else if (from.place().is_host()) {
        to.place().device().copy_from_host(to.address(), from.address(), bytes);
    } else if (to.place().is_host()) {
        from.place().device().copy_to_host(to.address(), from.address(), bytes);
    } else {
        throw UsageError("cannot copy " + from.text() + " to " + to.text() + ": copy it to the host first");
    }
}

std::shared_ptr<void> allocate(Place place, std::size_t bytes) {
    if (place.is_host()) return {allocate_large(bytes), free_large};
    Device& device = place.device();
    return {device.allocate(bytes), [&device](void* memory) { device.release(memory); }};
}

} // namespace ranktune::base
