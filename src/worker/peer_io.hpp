// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerIo: checkpoints on disk, whose states are also read from the memory of the ranks that wrote them.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "comm/exchange/block_exchange.hpp"
#include "worker/checkpoints/checkpoint_io.hpp"
#include "worker/state_shelf.hpp"

namespace ranktune::worker {

/// Every state still goes to disk: memory is the shorter way to the same bytes. What a holder does not have, or does
/// not send in time, is read from the file. States of any number of ranks reach groups of any other size.
class PeerIo final : public worker::CheckpointIo {
  public:
    using Log = std::function<void(std::string_view)>;

    /// References must outlive it. From now on `exchange` offers what this rank saves, up to `keep_bytes` of it. `log`
    /// gets one line for each state that was wanted from memory; called on the trial thread.
    PeerIo(worker::CheckpointIo& disk, comm::BlockExchange& exchange, std::uint64_t keep_bytes, Log log);

    [[nodiscard]] study::CheckpointRef save(const storage::CheckpointKey& key, const State& state) override;
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint, const Ranks& holders) override;
    [[nodiscard]] std::unique_ptr<study::StateSource> open(const study::CheckpointRef& checkpoint,
                                                           const Ranks& holders) override;
    void discard(const storage::CheckpointKey& key) noexcept override { disk_.discard(key); }
    [[nodiscard]] study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source,
                                             bool move) override {
        return disk_.adopt(key, source, move);
    }
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint) override {
        return disk_.locate(checkpoint);
    }

  private:
    class Source;
    [[nodiscard]] std::unique_ptr<Source> from_memory(const study::CheckpointRef& checkpoint, const Ranks& holders);

    worker::CheckpointIo& disk_;
    comm::BlockExchange& exchange_;
    Log log_;
    StateShelf shelf_;
};

} // namespace ranktune::worker
