// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints in memory, for trials without a study directory.

#include <map>
#include <mutex>
#include <string>

#include "worker/checkpoints/checkpoint_io.hpp"

namespace ranktune::testing {

/// The checkpoints of all ranks, by path. Thread-safe. Programs cannot save here.
class MemoryIo final : public worker::CheckpointIo {
  public:
    [[nodiscard]] study::CheckpointRef save(const storage::CheckpointKey& key, const State& state) override;
    /// Throws base::Error when there is none.
    [[nodiscard]] study::MemoryState load(const study::CheckpointRef& checkpoint, const Ranks&) override;
    [[nodiscard]] std::unique_ptr<study::StateSource> open(const study::CheckpointRef& checkpoint,
                                                           const Ranks&) override;
    void discard(const storage::CheckpointKey& key) noexcept override;
    [[nodiscard]] study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source,
                                             bool move) override;
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint) override;

    void put(const std::string& path, const study::MemoryState& state);
    /// The state of a checkpoint; the parts of all shards together.
    [[nodiscard]] study::MemoryState all_of(const study::CheckpointRef& checkpoint) const;
    /// Number of checkpoint files.
    [[nodiscard]] std::size_t count() const;

  private:
    mutable std::mutex mutex_;
    std::map<std::string, study::MemoryState> states_;
};

} // namespace ranktune::testing
