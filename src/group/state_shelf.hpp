// SPDX-License-Identifier: Apache-2.0
#pragma once
// StateShelf: the state that a rank saved last, which other ranks may read from its memory.

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/exchange/block_exchange.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::group {

/// Holds one state: that of the newest checkpoint this rank has written, of whichever trial, until it has written the
/// next one. Thread-safe.
class StateShelf {
  public:
    using State = std::shared_ptr<const study::MemoryState>;

    /// `path` of the checkpoint (of this rank's shard); `digest` of the state in it.
    void put(const std::string& path, std::uint64_t digest, State state);
    /// Null if it is not there (any more).
    [[nodiscard]] State find(std::string_view path) const;
    /// What another rank gets: the form of the state and the digest (8 bytes), then its tensors in order.
    [[nodiscard]] std::optional<comm::BlockExchange::Offer> offer(std::string_view path) const;

  private:
    struct Kept {
        std::string path;
        study::Bytes description;
        State state;
    };
    mutable std::mutex mutex_;
    std::shared_ptr<const Kept> kept_;
};

} // namespace ranktune::group
