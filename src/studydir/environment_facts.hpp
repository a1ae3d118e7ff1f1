// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a start of a study ran on: for env.json, the log and the support desk. No secrets: of Slurm's variables those
// with a suspicious name are left out, of the others only an allow-list is included.

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace ranktune::studydir {

struct EnvironmentFacts {
    std::string version; ///< of this program
    std::string study;   ///< uuid
    std::uint32_t incarnation = 1;
    int ranks = 0;
    std::string mpi; ///< "Open MPI 4.1.4"
    std::string hdf5;
    std::string wall_time;
    std::string layout = "[]";          ///< JSON: comm::layout_json
    std::string build_type = "unknown"; ///< Meson's: "release"
};

/// The text of env.json: versions, build, machine, limits, loaded modules, Slurm's and the launcher's variables.
[[nodiscard]] std::string environment_json(const EnvironmentFacts& facts);

/// The file system of a study, for its log: most trouble at night is a full or a slow disk.
struct FileSystemFacts {
    std::string type = "unknown";             ///< process::file_system_type
    std::uint64_t free_bytes = 0;             ///< for this user
    std::optional<std::uint64_t> free_inodes; ///< for this user; none on file systems without a limit (btrfs)
    std::error_code error;                    ///< set when the facts could not be read
};
/// Facts about the file system that holds `path`.
[[nodiscard]] FileSystemFacts file_system_facts(const std::string& path);

/// "12TiB", "840MiB", "0B": without a space, for a log field.
[[nodiscard]] std::string binary_size(std::uint64_t bytes);

// ---- Which commit of the user's code a study ran with. Read from git's files: git itself may be missing on compute
// nodes.

/// The commit that is checked out in `directory` or in the nearest folder above it that git knows, as git writes it;
/// empty: there is none, or git's files cannot be read. Changes that are not committed do not show.
[[nodiscard]] std::string source_commit(const std::string& directory);

} // namespace ranktune::studydir
