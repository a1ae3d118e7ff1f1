// SPDX-License-Identifier: Apache-2.0
#include "data/block_cache.hpp"

#include <chrono>

#include "data/thread_time.hpp"

namespace ranktune::data {

BlockCache::Block BlockCache::get(Key key, const std::function<std::vector<std::byte>()>& decode) {
    std::promise<Block> promise;
    {
        std::unique_lock lock(mutex_);
        if (const auto found = entries_.find(key); found != entries_.end()) {
            recent_.splice(recent_.begin(), recent_, found->second.place);
            const std::shared_future<Block> block = found->second.block;
            lock.unlock();
            if (block.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return block.get();
            const double begin = thread_time().passed;
            block.wait();
            elsewhere().other += thread_time().passed - begin;
            return block.get();
        }
        recent_.push_front(key);
        entries_.emplace(key, Entry{promise.get_future().share(), 0, recent_.begin()});
    }
    try {
        const auto block = std::make_shared<const std::vector<std::byte>>(decode());
        promise.set_value(block);
        keep(key, block->size());
        return block;
    } catch (...) {
        forget(key);
        promise.set_exception(std::current_exception());
        throw;
    }
}

void BlockCache::keep(Key key, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    entries_.at(key).bytes = bytes;
    held_ += bytes;
    for (auto oldest = recent_.end(); held_ > capacity_ && oldest != recent_.begin();) {
        --oldest;
        const auto entry = entries_.find(*oldest);
        if (*oldest == key || entry->second.bytes == 0) continue;
        held_ -= entry->second.bytes;
        entries_.erase(entry);
        oldest = recent_.erase(oldest);
    }
}

void BlockCache::forget(Key key) {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    recent_.erase(entry->second.place);
    entries_.erase(entry);
}

} // namespace ranktune::data
