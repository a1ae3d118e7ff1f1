// SPDX-License-Identifier: Apache-2.0
#include "testing/memory_io.hpp"

#include "ranktune/base/error.hpp"

namespace ranktune::testing {
namespace {

std::string path_of(const storage::CheckpointKey& key) {
    const std::string path = storage::checkpoint_path(key);
    return key.shards == 0 ? path : storage::shard_path(path, key.shard);
}

} // namespace

study::CheckpointRef MemoryIo::save(const storage::CheckpointKey& key, const State& state) {
    const std::string path = path_of(key);
    put(path, *state);
    return {key.iteration, path, state->bytes(), state->digest()};
}

study::MemoryState MemoryIo::load(const study::CheckpointRef& checkpoint, const Ranks&) {
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(checkpoint.path);
    if (found == states_.end()) throw base::Error("no checkpoint " + checkpoint.path);
    return found->second;
}

std::unique_ptr<study::StateSource> MemoryIo::open(const study::CheckpointRef& checkpoint, const Ranks&) {
    return std::make_unique<study::MemoryState>(all_of(checkpoint));
}

void MemoryIo::discard(const storage::CheckpointKey& key) noexcept {
    const std::lock_guard lock(mutex_);
    states_.erase(path_of(key));
}

study::CheckpointRef MemoryIo::adopt(const storage::CheckpointKey&, const std::string&, bool) {
    throw base::Error("programs cannot save in memory");
}

std::string MemoryIo::locate(const study::CheckpointRef&) { throw base::Error("programs cannot save in memory"); }

void MemoryIo::put(const std::string& path, const study::MemoryState& state) {
    const std::lock_guard lock(mutex_);
    states_.insert_or_assign(path, state);
}

study::MemoryState MemoryIo::all_of(const study::CheckpointRef& checkpoint) const {
    const std::lock_guard lock(mutex_);
    study::MemoryState all;
    for (const std::string& path : storage::paths_of(checkpoint.path, checkpoint.shards.size())) {
        const auto found = states_.find(path);
        if (found == states_.end()) throw base::Error("no checkpoint " + path);
        for (const auto& tensor : found->second.stored_tensors()) all.tensor(tensor.info, tensor.values());
        for (const auto& blob : found->second.stored_blobs()) all.blob(blob.name, blob.bytes);
    }
    return all;
}

std::size_t MemoryIo::count() const {
    const std::lock_guard lock(mutex_);
    return states_.size();
}

} // namespace ranktune::testing
