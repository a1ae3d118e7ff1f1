// SPDX-License-Identifier: Apache-2.0
#pragma once
// NamedPaths: what a program may name as its checkpoint, and of what other trials must hear.

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "worker/trial/runner.hpp"

namespace ranktune::worker {

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
    /// `host`: name of this node. `began`: modification time of a file that was written when the attempt began.
    NamedPaths(Folders folders, std::string host, std::filesystem::file_time_type began)
        : folders_(std::move(folders)), host_(std::move(host)), began_(began) {}

    /// `path`: what the program calls `named`, absolute. Returns the place, unless no other trial can name it, or it
    /// was returned lately. Throws base::Error for a place that holds more than a checkpoint: the folders above,
    /// whatever contains them, and folders of other attempts and trials.
    [[nodiscard]] std::optional<NamedPlace> look_at(const std::string& named, const std::string& path);

    /// The links below the folder `path` that lead out of it, to what was written since the attempt began: it may be
    /// the state of another trial, and may change. (Files that were there before, such as a pretrained model, are
    /// none.)
    struct Link {
        std::string path;
        std::string target; ///< every link followed
    };
    [[nodiscard]] std::vector<Link> links_out_of(const std::string& path) const;

  private:
    static constexpr std::size_t most_recent = 64;
    static constexpr int deepest = 8;

    void find_links(const std::filesystem::path& folder, int depth, std::vector<Link>& found) const;
    [[nodiscard]] bool is_new(const std::filesystem::path& path) const;
    void refuse(const std::string& named, const std::string& real) const;

    Folders folders_;
    std::string host_;
    std::filesystem::file_time_type began_;
    std::deque<std::string> recent_;
};

} // namespace ranktune::worker
