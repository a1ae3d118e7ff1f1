// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointWriter: writes a trial's state in the background, one state at a time.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "process/background.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::worker {

/// Memory of states that nobody uses any more, so that taking the next one is a plain copy.
class StatePool {
  public:
    StatePool();
    /// An empty state. Its memory comes back here with the last reference to it. Any thread.
    [[nodiscard]] std::shared_ptr<study::MemoryState> take();

  private:
    struct Free;
    std::shared_ptr<Free> free_;
};

/// Used by the trial thread. Its own thread starts with the first write. The destructor waits for the write under way.
class CheckpointWriter {
  public:
    /// Returns when the file has its final name; throws on failure. Called on the writer's thread.
    using Write = std::function<study::CheckpointRef(const storage::CheckpointKey& key,
                                                     const std::shared_ptr<const study::MemoryState>& state)>;

    explicit CheckpointWriter(Write write);

    /// No write is under way, and no result is waiting.
    [[nodiscard]] bool idle() const;
    /// An empty state to fill and then write with `start`. Requires idle().
    [[nodiscard]] const std::shared_ptr<study::MemoryState>& fresh_state();
    /// Writes the state. Requires idle().
    void start(const storage::CheckpointKey& key);

    struct Result {
        study::CheckpointRef checkpoint;
        std::string error;    ///< empty: the checkpoint has its final name
        double seconds = 0.0; ///< since start()
    };
    /// The result of the write, once it is done; nothing before that and after it was taken.
    [[nodiscard]] std::optional<Result> take();
    /// Waits for the write under way; nothing when idle().
    [[nodiscard]] std::optional<Result> wait();

  private:
    void write_now();

    Write write_;
    mutable std::mutex mutex_;
    std::condition_variable done_;
    StatePool pool_;
    std::shared_ptr<study::MemoryState> state_; ///< belongs to the thread while `job_` is set
    std::optional<storage::CheckpointKey> job_;
    std::optional<Result> result_;
    process::Background thread_;
};

} // namespace ranktune::worker
