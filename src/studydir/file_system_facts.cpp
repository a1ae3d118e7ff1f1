// SPDX-License-Identifier: Apache-2.0
#include "studydir/file_system_facts.hpp"

#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdio>
#include <iterator>

namespace ranktune::studydir {

std::string file_system_name(std::uint64_t number) {
    struct Known {
        std::uint64_t number;
        const char* name;
    };
    // statfs(2), and the clients of parallel file systems, whose numbers are in their own sources.
    constexpr Known known[] = {{0x0BD00BD0, "lustre"}, {0x6969, "nfs"},         {0x47504653, "gpfs"},
                               {0x19830326, "beegfs"}, {0x00C36400, "ceph"},    {0xEF53, "ext4"},
                               {0x58465342, "xfs"},    {0x9123683E, "btrfs"},   {0x2FC12FC1, "zfs"},
                               {0x01021994, "tmpfs"},  {0x794C7630, "overlay"}, {0x65735546, "fuse"},
                               {0xFF534D42, "cifs"},   {0xFE534D42, "smb2"},    {0x01021997, "9p"},
                               {0x5346544E, "ntfs"},   {0xAAD7AAEA, "panfs"}};
    for (const Known& each : known)
        if (each.number == number) return each.name;
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

FileSystemFacts file_system_facts(const std::string& path) {
    FileSystemFacts facts;
    struct statfs kind {};
    struct statvfs room {};
    if (statfs(path.c_str(), &kind) != 0 || statvfs(path.c_str(), &room) != 0) {
        facts.error = {errno, std::generic_category()};
        return facts;
    }
    facts.type = file_system_name(static_cast<std::uint64_t>(kind.f_type) & 0xFFFFFFFFU);
    facts.free_bytes = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
    if (room.f_files > 0) facts.free_inodes = room.f_favail;
    return facts;
}

std::string binary_size(std::uint64_t bytes) {
    constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1023.5 && unit + 1 < std::size(units); ++unit) value /= 1024.0;
    char text[32];
    std::snprintf(text, sizeof text, "%.0f%s", value, units[unit]);
    return text;
}

} // namespace ranktune::studydir
