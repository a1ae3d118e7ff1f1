// SPDX-License-Identifier: Apache-2.0
#include "data/staging/places.hpp"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "storage/file_system.hpp"

namespace ranktune::data {
namespace {

constexpr std::uint64_t memory_divisor = 4;

bool is_memory(const std::string& path) {
    const std::string type = process::file_system_type(path);
    return type == "tmpfs" || type == "ramfs";
}

std::uint64_t free_memory() {
    std::ifstream file("/proc/meminfo");
    for (std::string name; file >> name;) {
        std::uint64_t kib = 0;
        if (name == "MemAvailable:" && file >> kib) return kib << 10U;
        file.ignore(1024, '\n');
    }
    return 0;
}

/// Of all copies that are there, those that are being made included.
std::uint64_t bytes_below(const std::string& folder) {
    std::uint64_t bytes = 0;
    std::error_code error; // others remove copies
    for (std::filesystem::recursive_directory_iterator at(folder, error), end; at != end && !error;
         at.increment(error)) {
        const std::uintmax_t size = at->file_size(error);
        if (!error) bytes += size;
        error.clear();
    }
    return bytes;
}

/// Throws base::IoError. False: the folder is somebody else's, who may have made it where everybody may write.
bool make_own(const std::string& folder) {
    storage::FileSystem& files = storage::posix_file_system();
    files.make_directories(folder);
    if (files.kind(folder) != storage::FileSystem::Kind::directory || !files.is_own(folder)) return false;
    files.set_mode(folder, 0700);
    return true;
}

/// Adds a folder below `above`, or why not. `what` names it: "$TMPDIR".
void add_place(CopyPlaces& places, const std::string& above, const std::string& what, bool makes) {
    const std::string called = what + " (" + above + ")";
    CopyPlace place{above + "/ranktune-" + std::to_string(::getuid())};
    try {
        if (makes && !make_own(place.folder))
            return places.refused.push_back(called + " has a '" + place.folder + "' of somebody else");
    } catch (const base::IoError& error) {
        return places.refused.push_back(called + ": " + error.what());
    }
    const bool is_there = storage::posix_file_system().exists(place.folder); // made beforehand, perhaps by root
    if (!makes && is_there && !storage::posix_file_system().is_own(place.folder))
        return places.refused.push_back(called + " has a '" + place.folder + "' of somebody else");
    const std::string& written = is_there ? place.folder : above;
    struct statfs about {};
    if (::statfs(written.c_str(), &about) != 0 || ::access(written.c_str(), W_OK | X_OK) != 0)
        return places.refused.push_back(called + " is no folder that this user may write to");
    place.room = about.f_bavail * static_cast<std::uint64_t>(about.f_bsize);
    place.shortage = "free in " + called;
    if (is_memory(above)) {
        const std::uint64_t used = bytes_below(place.folder);
        const std::uint64_t share = std::min(free_memory() + used, process::memory_bytes()) / memory_divisor;
        place.room = std::min(place.room, share - std::min(share, used));
        place.shortage = "of memory for copies in " + called;
    }
    places.usable.push_back(std::move(place));
}

CopyPlaces places_for(const std::string& directory, bool makes) {
    CopyPlaces places;
    const auto try_place = [&](const std::string& above, const std::string& what) {
        if (is_network(above))
            places.refused.push_back(what + " (" + above + ") is a network file system");
        else
            add_place(places, above, what, makes);
    };
    if (!directory.empty()) {
        try_place(directory, "data.directory");
        return places;
    }
    if (const std::string temporary = process::environment_variable("TMPDIR"); !temporary.empty())
        try_place(temporary, "$TMPDIR");
    add_place(places, "/dev/shm", "memory", makes);
    return places;
}

} // namespace

bool is_network(const std::string& path) {
    constexpr std::string_view kinds[] = {"nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb2", "fuse", "panfs"};
    return std::ranges::find(kinds, process::file_system_type(path)) != std::end(kinds);
}

bool same_file_system(const std::string& a, const std::string& b) {
    struct stat one {};
    struct stat other {};
    return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev;
}

CopyPlaces find_places(const std::string& directory) { return places_for(directory, true); }
CopyPlaces look_for_places(const std::string& directory) { return places_for(directory, false); }

} // namespace ranktune::data
