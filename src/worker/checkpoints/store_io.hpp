// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of trials in a study directory.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "storage/checkpoints/checkpoint_store.hpp"
#include "worker/checkpoints/checkpoint_io.hpp"

namespace ranktune::worker {

class StoreIo final : public CheckpointIo {
  public:
    /// `files` outlives this object. A failed read is retried after `pause` and again after four times `pause`: time
    /// for a file server to fail over. Each try opens the file again.
    StoreIo(storage::FileSystem& files, const std::string& directory, bool direct = true,
            std::chrono::milliseconds pause = std::chrono::milliseconds(500))
        : store_(files, directory, direct), pause_(pause) {}
    study::CheckpointRef save(const storage::CheckpointKey& key, const State& state) override {
        return store_.save(key, *state);
    }
    study::MemoryState load(const study::CheckpointRef& checkpoint, const Ranks&) override {
        return patiently([&] { return store_.load(checkpoint); });
    }
    std::unique_ptr<study::StateSource> open(const study::CheckpointRef& checkpoint, const Ranks& holders) override {
        if (checkpoint.shards.empty()) return std::make_unique<study::MemoryState>(load(checkpoint, holders));
        return patiently([&] { return store_.open_shards(checkpoint); });
    }
    void discard(const storage::CheckpointKey& key) noexcept override { store_.discard(key); }
    study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source, bool move) override {
        return store_.adopt(key, source, move);
    }
    std::string locate(const study::CheckpointRef& checkpoint) override {
        return patiently([&] { return store_.locate(checkpoint); });
    }

  private:
    template <class Read>
    std::invoke_result_t<Read&> patiently(Read&& read) {
        for (const int pauses : {1, 4}) {
            try {
                return read();
            } catch (const base::IoError&) {
                std::this_thread::sleep_for(pauses * pause_);
            }
        }
        return read();
    }

    storage::CheckpointStore store_;
    std::chrono::milliseconds pause_;
};

} // namespace ranktune::worker
