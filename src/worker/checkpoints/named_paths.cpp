// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/named_paths.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ranktune/base/error.hpp"
#include "studydir/environment_facts.hpp"
#include "studydir/study_directory.hpp"
#include "studydir/trial_folder.hpp"

namespace ranktune::worker {
namespace {

namespace fs = std::filesystem;

/// Below `folder`, without a link on the way from there.
bool lies_plainly_in(const fs::path& folder, const fs::path& path) {
    if (!lies_in(folder, path)) return false;
    std::error_code error;
    for (fs::path at = path; at != folder; at = at.parent_path())
        if (fs::is_symlink(at, error)) return false;
    return true;
}

/// Every link followed, as far as something is there.
fs::path real_path(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    return error ? fs::path(path).lexically_normal() : real;
}

/// Whether only this node sees what lies there. Unknown file systems count as shared.
bool is_on_this_node(fs::path path) {
    std::error_code error;
    while (!fs::exists(path, error) && path != path.parent_path()) path = path.parent_path();
    const std::string type = studydir::file_system_facts(path.string()).type;
    constexpr std::string_view local[] = {"ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay"};
    return std::ranges::find(local, type) != std::end(local);
}

} // namespace

bool lies_in(const fs::path& folder, const fs::path& path) {
    return std::ranges::mismatch(folder, path).in1 == folder.end();
}

std::optional<NamedPlace> NamedPaths::look_at(const std::string& named, const std::string& path) {
    if (named.empty())
        throw base::Error("the program named \"\" as its checkpoint: name the file or folder that it has saved");
    if (lies_plainly_in(folders_.checkpoints, path)) return std::nullopt;
    const fs::path real = real_path(path);
    refuse(named, real.string());
    if (lies_in(real_path(folders_.checkpoints), real) || lies_in(real_path(folders_.trial), real)) return std::nullopt;
    if (std::ranges::find(recent_, real.string()) != recent_.end()) return std::nullopt;
    recent_.push_back(real.string());
    if (recent_.size() > most_recent) recent_.pop_front();
    return NamedPlace{is_on_this_node(real) ? host_ : "", real.string()};
}

std::vector<NamedPaths::Link> NamedPaths::links_out_of(const std::string& path) const {
    std::vector<Link> found;
    find_links(real_path(path), 0, found);
    return found;
}

/// Errors are those of taking the files over, which says more.
void NamedPaths::find_links(const fs::path& folder, int depth, std::vector<Link>& found) const {
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        std::error_code none;
        if (!at->is_symlink(none)) continue;
        const fs::path target = real_path(at->path());
        if (lies_in(folder, target)) continue;
        if (is_new(target)) found.push_back({at->path(), target});
        if (depth < deepest && fs::is_directory(target, none)) find_links(target, depth + 1, found);
    }
}

/// Whether anything there was written since the attempt began.
bool NamedPaths::is_new(const fs::path& path) const {
    std::error_code error;
    const auto written = fs::last_write_time(path, error);
    if (error) return false;
    if (written >= began_) return true;
    for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        std::error_code none;
        const auto time = at->last_write_time(none);
        if (!none && time >= began_) return true;
    }
    return false;
}

void NamedPaths::refuse(const std::string& named, const std::string& real) const {
    const fs::path study = real_path(folders_.study);
    const auto complain = [&](const std::string& what, const fs::path& folder) {
        throw base::Error("the checkpoint '" + named + "' is no file or folder of its own: it " + what + " ('" +
                          folder.string() + "'). Save below RANKTUNE_CHECKPOINT_DIR " +
                          "(ranktune.context().checkpoint_dir), and name that path");
    };
    if (lies_in(real, study)) complain("is or contains the study directory", study);
    const fs::path works = real_path(folders_.works);
    if (lies_in(real, works) && !lies_in(real_path(folders_.trial), real))
        complain("is or contains the folder that the program works in", works);
    const fs::path attempts = study / fs::path(studydir::StudyDirectory{folders_.study}.attempts()).filename();
    const fs::path trials = study / fs::path(studydir::trial_folders(folders_.study)).filename();
    const bool is_own = lies_in(real_path(folders_.checkpoints), real) || lies_in(real_path(folders_.trial), real);
    for (const fs::path& others : {attempts, trials})
        if (!is_own && lies_in(others, real)) complain("lies in a folder of other trials", others);
}

} // namespace ranktune::worker
