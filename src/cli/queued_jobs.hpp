// SPDX-License-Identifier: Apache-2.0
#pragma once
// Jobs in Slurm's queue that will start a study by themselves, for `stop` and `status`.

#include <chrono>
#include <optional>
#include <string>

#include "storage/file_system.hpp"

namespace ranktune::cli {

/// What Slurm's queue holds of the study in `directory`: "job 101 (pending) is in Slurm's queue and goes on with the
/// study", or that squeue does not say whether; empty: no job. `prevention`: "To keep it from that: scancel 101"; empty
/// when `text` is. Asks squeue, if the study has jobs: those that `submit` has recorded, and one that the head has
/// requeued.
struct QueuedForStudy {
    std::string text;
    std::string prevention;
};
[[nodiscard]] QueuedForStudy queued_for_study(storage::FileSystem& files, const std::string& directory);
/// Whether jobs were submitted for the study since it last ended: only then a study that is over has some to come.
[[nodiscard]] bool submitted_since(const std::string& directory);

/// The same, for views that look again and again: asks Slurm rarely, for its controller's sake.
class QueueWatch {
  public:
    QueueWatch(storage::FileSystem& files, std::string directory) : files_(files), directory_(std::move(directory)) {}
    /// QueuedForStudy::text. The reference stays valid until the next call.
    [[nodiscard]] const std::string& text();

  private:
    storage::FileSystem& files_;
    std::string directory_;
    std::optional<std::chrono::steady_clock::time_point> asked_;
    std::string text_;
};

} // namespace ranktune::cli
