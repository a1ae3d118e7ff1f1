// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials in the directory of a study.

#include <string>

#include "drivers/group/attempt.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

class StoreIo final : public CheckpointIo {
  public:
    /// `files` outlives this object.
    StoreIo(storage::FileSystem& files, const std::string& directory) : store_(files, directory) {}
    study::CheckpointRef save(const storage::CheckpointKey& key, const study::MemoryState& state) override {
        return store_.save(key, state);
    }
    study::MemoryState load(const study::CheckpointRef& checkpoint) override { return store_.load(checkpoint); }
    study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source, bool move) override {
        return store_.adopt(key, source, move);
    }
    std::string locate(const study::CheckpointRef& checkpoint) override { return store_.locate(checkpoint); }

  private:
    storage::CheckpointStore store_;
};

} // namespace ranktune::drivers
