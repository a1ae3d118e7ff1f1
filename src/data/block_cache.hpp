// SPDX-License-Identifier: Apache-2.0
#pragma once
// BlockCache: decoded blocks of rows, of which the last ones used are kept.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ranktune::data {

/// Thread-safe. A block is decoded by the first thread that asks for it, while others wait for that block alone.
class BlockCache {
  public:
    using Block = std::shared_ptr<const std::vector<std::byte>>;
    using Key = std::pair<std::size_t, std::uint64_t>; ///< field, number of the block

    /// Keeps blocks of up to `capacity` bytes, and always the last one.
    explicit BlockCache(std::uint64_t capacity) : capacity_(capacity) {}
    /// Throws what `decode` throws; the next call then tries again.
    [[nodiscard]] Block get(Key key, const std::function<std::vector<std::byte>()>& decode);

  private:
    struct Entry {
        std::shared_future<Block> block;
        std::uint64_t bytes = 0; ///< 0: being decoded
        std::list<Key>::iterator place;
    };
    void keep(Key key, std::uint64_t bytes);
    void forget(Key key);

    std::uint64_t capacity_;
    std::mutex mutex_;
    std::uint64_t held_ = 0;
    std::list<Key> recent_; ///< the last one used first
    std::map<Key, Entry> entries_;
};

} // namespace ranktune::data
