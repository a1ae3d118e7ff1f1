// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointIo: where checkpoints are written and read.

#include <memory>
#include <string>
#include <vector>

#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::worker {

/// Called on the trial thread and its checkpoint writer, never on both at once; on the leader, and on every rank if
/// each saves a shard.
class CheckpointIo {
  public:
    virtual ~CheckpointIo() = default;
    using State = std::shared_ptr<const study::MemoryState>;
    using Ranks = std::vector<base::Rank>;

    /// Returns when the file has its final name. Throws base::IoError.
    [[nodiscard]] virtual study::CheckpointRef save(const storage::CheckpointKey& key, const State& state) = 0;
    /// `holders`: ranks that may have it in memory (StartTrial::holders). Throws as storage::CheckpointStore::load.
    [[nodiscard]] virtual study::MemoryState load(const study::CheckpointRef& checkpoint, const Ranks& holders) = 0;
    /// The same, for a rank that needs a part of the state (its shards), or has no other rank to pass it on to: it need
    /// not be held in memory as a whole. Throws as `load`, and so does the returned source.
    [[nodiscard]] virtual std::unique_ptr<study::StateSource> open(const study::CheckpointRef& checkpoint,
                                                                   const Ranks& holders) = 0;
    /// Removes what `save` wrote of a checkpoint whose other shards failed. Never throws.
    virtual void discard(const storage::CheckpointKey& key) noexcept = 0;
    /// Checkpoints of programs (storage::CheckpointStore::adopt, locate).
    [[nodiscard]] virtual study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source,
                                                     bool move) = 0;
    [[nodiscard]] virtual std::string locate(const study::CheckpointRef& checkpoint) = 0;
};

} // namespace ranktune::worker
