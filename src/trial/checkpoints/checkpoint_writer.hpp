// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointWriter: writes a trial's state beside its training, one state at a time.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "process/background.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::trial {

/// Used by one thread (the trial's). Its own thread starts with the first write, and the memory of a state is used
/// again for the next one, so that taking a state is a plain copy. Destroying it waits for the write under way.
class CheckpointWriter {
  public:
    /// Returns when the file has its final name; throws what went wrong. Called on the writer's thread.
    using Write =
        std::function<study::CheckpointRef(const storage::CheckpointKey& key, const study::MemoryState& state)>;

    explicit CheckpointWriter(Write write);

    /// No write is under way, and no result waits to be taken.
    [[nodiscard]] bool idle() const;
    /// An empty state to be filled, then written by `start`. Requires idle().
    [[nodiscard]] study::MemoryState& fresh_state();
    /// Writes the state. Requires idle().
    void start(const storage::CheckpointKey& key);

    struct Result {
        study::CheckpointRef checkpoint;
        std::string error;    ///< empty: the checkpoint has its final name
        double seconds = 0.0; ///< from start() until then
    };
    /// The result of the write, once, when there is one.
    [[nodiscard]] std::optional<Result> take();
    /// Waits for the write under way; nothing when idle().
    [[nodiscard]] std::optional<Result> wait();

  private:
    void write_now();

    Write write_;
    mutable std::mutex mutex_;
    std::condition_variable done_;
    study::MemoryState state_; ///< the thread's while `job_` is set
    std::optional<storage::CheckpointKey> job_;
    std::optional<Result> result_;
    process::Background thread_;
};

} // namespace ranktune::trial
