// SPDX-License-Identifier: Apache-2.0
#pragma once
// MemoryBudget: how much memory of a GPU this process may hold, where several processes share the GPU; and what an
// allocation without room does.

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "device/device.hpp"

namespace ranktune::device::cuda {

/// Counts only from `limit` on: without one, nothing is kept.
class MemoryBudget {
  public:
    /// `relieve` frees what is only kept for later.
    explicit MemoryBudget(std::function<void()> relieve) : relieve_(std::move(relieve)) {}
    /// Calls `allocate(bytes)`, which throws DeviceMemoryError without room, and once more after `relieve`.
    template <class Allocate>
    [[nodiscard]] void* room_for(std::uint64_t bytes, Allocate&& allocate) {
        const auto once = [&] {
            ask(bytes);
            void* const memory = allocate(bytes);
            take(memory, bytes);
            return memory;
        };
        try {
            return once();
        } catch (const DeviceMemoryError&) {
            relieve_();
        }
        return once();
    }
    void limit(std::uint64_t bytes) { limit_ = bytes; }
    void give_back(const void* memory) noexcept {
        const auto found = sizes_.find(memory);
        if (found == sizes_.end()) return;
        held_ -= found->second;
        sizes_.erase(found);
    }

  private:
    /// Throws DeviceMemoryError when so many bytes more are too many.
    void ask(std::uint64_t bytes) const {
        if (limit_ == 0 || bytes <= limit_ - held_) return;
        throw DeviceMemoryError("the share of the GPU's memory is used up (" + std::to_string(held_ >> 20U) + " of " +
                                std::to_string(limit_ >> 20U) + " MiB, and " + std::to_string(bytes >> 20U) +
                                " MiB more are needed: resources.gpus)");
    }
    void take(const void* memory, std::uint64_t bytes) {
        if (limit_ == 0) return;
        sizes_.emplace(memory, bytes);
        held_ += bytes;
    }

    std::function<void()> relieve_;
    std::uint64_t limit_ = 0; ///< 0: none
    std::uint64_t held_ = 0;  ///< at most limit_
    std::unordered_map<const void*, std::uint64_t> sizes_;
};

} // namespace ranktune::device::cuda
