// SPDX-License-Identifier: Apache-2.0
#pragma once
// StateShelf: the states that a rank saved last, which other ranks may read from its memory.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::worker {

/// Holds the states of the newest two checkpoints that this rank has written of each trial, as far as they fit; those
/// that it has held longest go first. Thread-safe.
class StateShelf {
  public:
    using State = std::shared_ptr<const study::MemoryState>;

    /// `most_bytes`: of all states. The newest one is held even if it is larger.
    explicit StateShelf(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}
    /// `path` of the checkpoint (of this rank's shard) of `trial`; `digest` of the state in it.
    void put(base::TrialId trial, const std::string& path, std::uint64_t digest, State state);
    /// What another rank gets: the form of the state and the digest (8 bytes), then its tensors in order. nullopt: it
    /// is not there (any more).
    [[nodiscard]] std::optional<comm::BlockExchange::Offer> offer(std::string_view path) const;

  private:
    struct Kept {
        base::TrialId trial;
        std::string path;
        study::Bytes description;
        State state;
    };
    using Entry = std::shared_ptr<const Kept>;

    std::uint64_t most_bytes_;
    mutable std::mutex mutex_;
    std::deque<Entry> kept_; ///< the newest last
    std::uint64_t bytes_ = 0;
};

} // namespace ranktune::worker
