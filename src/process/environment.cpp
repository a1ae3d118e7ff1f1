// SPDX-License-Identifier: Apache-2.0
#include "process/environment.hpp"

#include <pwd.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

namespace ranktune::process {

std::vector<std::string> environment_entries() {
    std::vector<std::string> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
    return entries;
}

base::Variables environment_variables() {
    base::Variables variables;
    for (const std::string& entry : environment_entries())
        if (const auto at = entry.find('='); at != std::string::npos)
            variables.emplace(entry.substr(0, at), entry.substr(at + 1));
    return variables;
}

std::string environment_variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? value : "";
}

const std::string& user_at_host() {
    static const std::string who = [] {
        const passwd* user = ::getpwuid(::geteuid());
        return (user == nullptr ? std::to_string(::geteuid()) : std::string(user->pw_name)) + "@" + host_name();
    }();
    return who;
}

std::string host_name() {
    auto name = environment_variable("SLURMD_NODENAME");
    if (!name.empty()) return name;
    char buffer[256] = {};
    if (gethostname(buffer, sizeof buffer - 1) != 0) return "localhost";
    return buffer;
}

std::uint64_t memory_bytes() {
    std::uint64_t bytes =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (!line.starts_with("0::/")) continue;
        // A limit may be set on any group above.
        for (std::filesystem::path group = "/sys/fs/cgroup" + line.substr(3); group != "/sys/fs/cgroup" && group != "/";
             group = group.parent_path()) {
            std::uint64_t limit = 0;
            if (std::ifstream(group / "memory.max") >> limit) bytes = std::min(bytes, limit);
        }
    }
    return bytes;
}

std::string file_system_name(std::uint64_t number) {
    struct Known {
        std::uint64_t number;
        const char* name;
    };
    // From statfs(2) and the sources of the clients of parallel file systems.
    constexpr Known known[] = {{0x0BD00BD0, "lustre"}, {0x6969, "nfs"},         {0x47504653, "gpfs"},
                               {0x19830326, "beegfs"}, {0x00C36400, "ceph"},    {0xEF53, "ext4"},
                               {0x58465342, "xfs"},    {0x9123683E, "btrfs"},   {0x2FC12FC1, "zfs"},
                               {0x01021994, "tmpfs"},  {0x794C7630, "overlay"}, {0x65735546, "fuse"},
                               {0xFF534D42, "cifs"},   {0xFE534D42, "smb2"},    {0x01021997, "9p"},
                               {0x5346544E, "ntfs"},   {0xAAD7AAEA, "panfs"},   {0x858458F6, "ramfs"}};
    for (const Known& each : known)
        if (each.number == number) return each.name;
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string file_system_type(const std::string& path) {
    struct statfs about {};
    if (::statfs(path.c_str(), &about) != 0) return {};
    return file_system_name(static_cast<std::uint32_t>(about.f_type));
}

std::string slurm_job() { return environment_variable("SLURM_JOB_ID"); }

std::uint32_t slurm_restart_count() {
    return static_cast<std::uint32_t>(std::strtoul(environment_variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10));
}

std::string slurm_end_time() {
    const auto seconds =
        static_cast<std::time_t>(std::strtoll(environment_variable("SLURM_JOB_END_TIME").c_str(), nullptr, 10));
    if (seconds <= 0) return {};
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char text[40];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string make_uuid() {
    std::random_device device;
    std::uint32_t words[4];
    for (auto& word : words) word = device();
    words[1] = (words[1] & 0xFFFF0FFFU) | 0x00004000U; // version 4
    words[2] = (words[2] & 0x3FFFFFFFU) | 0x80000000U; // variant of RFC 4122
    char text[40];
    std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16, words[1] & 0xFFFFU,
                  words[2] >> 16, words[2] & 0xFFFFU, words[3]);
    return text;
}

} // namespace ranktune::process
