// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials in the directory of a study.

#include <memory>
#include <string>

#include "drivers/group/attempt.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

class StoreIo final : public CheckpointIo {
  public:
    /// `files` outlives this object.
    StoreIo(storage::FileSystem& files, const std::string& directory, bool direct = true)
        : store_(files, directory, direct) {}
    study::CheckpointRef save(const storage::CheckpointKey& key, const study::MemoryState& state) override {
        return store_.save(key, state);
    }
    study::MemoryState load(const study::CheckpointRef& checkpoint) override { return store_.load(checkpoint); }
    std::unique_ptr<study::StateSource> open_shards(const study::CheckpointRef& checkpoint) override {
        return store_.open_shards(checkpoint);
    }
    void discard(const storage::CheckpointKey& key) noexcept override { store_.discard(key); }
    study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source, bool move) override {
        return store_.adopt(key, source, move);
    }
    std::string locate(const study::CheckpointRef& checkpoint) override { return store_.locate(checkpoint); }

  private:
    storage::CheckpointStore store_;
};

} // namespace ranktune::drivers
