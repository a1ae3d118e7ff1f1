// SPDX-License-Identifier: Apache-2.0
#pragma once
// NamedPaths: what a program may name as its checkpoint, and of what other trials must hear.

#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "trial/runner.hpp"

namespace ranktune::trial {

/// `path` is `folder`, or lies below it; both normal, and links are not followed.
[[nodiscard]] bool lies_in(const std::filesystem::path& folder, const std::filesystem::path& path);

/// Of one attempt, on its leader. Reads the file system, and changes nothing.
class NamedPaths {
  public:
    struct Folders {
        std::string study;       ///< directory, absolute
        std::string works;       ///< where the program was started
        std::string checkpoints; ///< RANKTUNE_CHECKPOINT_DIR
        std::string trial;       ///< the trial's own; need not exist
    };
    /// `host`: name of this node.
    NamedPaths(Folders folders, std::string host) : folders_(std::move(folders)), host_(std::move(host)) {}

    /// `path`: what the program calls `named`, absolute. Returns the place, unless no other trial can name it, or it
    /// was returned lately. Throws base::Error for a place that holds more than a checkpoint: the folders above,
    /// whatever contains them, and folders of other attempts and trials.
    [[nodiscard]] std::optional<NamedPlace> look_at(const std::string& named, const std::string& path);

  private:
    static constexpr std::size_t most_recent = 64;

    void refuse(const std::string& named, const std::string& real) const;

    Folders folders_;
    std::string host_;
    std::deque<std::string> recent_;
};

} // namespace ranktune::trial
