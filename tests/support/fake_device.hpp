// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device for tests, whose memory is accessible only through the copy functions.

#include <sys/mman.h>

#include <cstring>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::testing {

/// Addresses lie in inaccessible pages: dereferencing one raises SIGSEGV. The contents are kept elsewhere.
class FakeDevice final : public base::Device {
  public:
    explicit FakeDevice(int number = 0) : number_(number) {}
    ~FakeDevice() override {
        while (!memory_.empty()) release(const_cast<std::byte*>(memory_.begin()->first));
    }
    FakeDevice(const FakeDevice&) = delete;
    FakeDevice& operator=(const FakeDevice&) = delete;

    [[nodiscard]] std::string name() const override { return "device " + std::to_string(number_); }
    [[nodiscard]] void* allocate(std::size_t bytes) override {
        if (bytes == 0) return nullptr;
        void* const address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (address == MAP_FAILED) throw std::bad_alloc();
        memory_[static_cast<const std::byte*>(address)].assign(bytes, std::byte{0xEE});
        return address;
    }
    void release(void* memory) noexcept override {
        const auto found = memory_.find(static_cast<const std::byte*>(memory));
        if (found == memory_.end()) return;
        munmap(memory, found->second.size());
        memory_.erase(found);
    }
    void copy_from_host(void* to, const void* from, std::size_t bytes) override {
        std::memcpy(contents(to, bytes), from, bytes);
        from_host += bytes;
    }
    void copy_to_host(void* to, const void* from, std::size_t bytes) override {
        std::memcpy(to, contents(from, bytes), bytes);
        to_host += bytes;
    }

    [[nodiscard]] std::size_t live() const { return memory_.size(); } ///< allocations that were not released
    std::size_t from_host = 0;                                        ///< bytes copied so far
    std::size_t to_host = 0;

  private:
    std::byte* contents(const void* address, std::size_t bytes) {
        const auto* at = static_cast<const std::byte*>(address);
        const auto next = memory_.upper_bound(at);
        if (next == memory_.begin()) throw base::Error("no memory of " + name());
        auto& [begin, content] = *std::prev(next);
        const auto offset = static_cast<std::size_t>(at - begin);
        if (offset > content.size() || bytes > content.size() - offset) throw base::Error("not all of " + name());
        return content.data() + offset;
    }

    int number_;
    std::map<const std::byte*, std::vector<std::byte>> memory_;
};

/// Numbers on a device.
template <class T>
class OnDevice {
  public:
    OnDevice(FakeDevice& device, const std::vector<T>& values)
        : memory_(base::allocate(base::Place(device), values.size() * sizeof(T))),
          buffer_(memory_.get(), values.size(), base::dtype_of<T>(), base::Place(device)) {
        base::copy(values, buffer_);
    }
    [[nodiscard]] base::Buffer buffer() const { return buffer_; }
    [[nodiscard]] std::vector<T> values() const {
        std::vector<T> values(buffer_.count());
        base::copy(buffer_, values);
        return values;
    }

  private:
    std::shared_ptr<void> memory_;
    base::Buffer buffer_;
};

} // namespace ranktune::testing
