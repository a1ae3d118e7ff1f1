// SPDX-License-Identifier: Apache-2.0
#include "process/guard.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/lease.hpp"

namespace ranktune::process {
namespace {

/// Keeps a list of groups: "+ 12" adds one, "- 12" removes it. At the end of input kills the listed groups, then
/// repeatedly all processes with the mark ($1) in their environment; then stays while one of the other processes ($2
/// ...) lives.
constexpr const char* script =
    "trap '' HUP INT TERM USR1 USR2\n"
    "all=' '\n"
    "mark=$1\n"
    "shift\n"
    "while read -r what group; do\n"
    "  case $what in\n"
    "    +) all=\"$all$group \" ;;\n"
    "    -) all=\"${all%% $group *} ${all#* $group }\" ;;\n"
    "  esac\n"
    "done\n"
    "if [ \"$all\" != ' ' ]; then\n"
    "  for group in $all; do kill -s KILL -- \"-$group\"; done 2>/dev/null\n"
    "  for round in 1 2 3 4 5 6 7 8 9 10; do\n"
    "    left=$(grep -lszFx -- \"$mark\" /proc/[0-9]*/environ | tr -dc '0-9\\n')\n"
    "    [ -n \"$left\" ] || break\n"
    "    kill -s KILL $left 2>/dev/null\n"
    "    sleep 1\n"
    "  done\n"
    "fi\n"
    "while [ $# -gt 0 ]; do\n"
    "  if kill -s 0 \"$1\" 2>/dev/null; then sleep 1; else shift; fi\n"
    "done\n";

constexpr std::string_view mark_name = "RANKTUNE_GUARD=";

/// The mark of this process: pid, start time and pid namespace identify it uniquely on this machine since boot.
std::string make_mark() {
    std::random_device device;
    const storage::LeaseHolder me = storage::this_holder("", 0);
    return std::string(mark_name) + std::to_string(me.writer.pid) + "/" + std::to_string(me.process_started) + "/" +
           me.pid_namespace + "/" + std::to_string(device()) + std::to_string(device());
}

/// Whether the mark belongs to an ended process of this pid namespace.
bool is_of_the_dead(const std::string& mark, const std::string& pid_namespace) {
    std::istringstream in(mark.substr(mark_name.size()));
    std::string pid;
    std::string started;
    std::string space;
    if (!std::getline(in, pid, '/') || !std::getline(in, started, '/') || !std::getline(in, space, '/')) return false;
    const std::uint64_t number = std::strtoull(pid.c_str(), nullptr, 10);
    if (number == 0 || space.empty() || space != pid_namespace) return false;
    const auto found = storage::process_start(number);
    return !found || *found != std::strtoull(started.c_str(), nullptr, 10);
}

/// The mark in a process's environment; empty: none, or another user's process.
std::string mark_of(const std::string& process) {
    struct stat owner {};
    if (stat(process.c_str(), &owner) != 0 || owner.st_uid != geteuid()) return {};
    std::ifstream environment(process + "/environ");
    for (std::string entry; std::getline(environment, entry, '\0');)
        if (entry.starts_with(mark_name)) return entry;
    return {};
}

} // namespace

Guard::Guard() : mark_(make_mark()) {}

int end_programs_of_the_dead() {
    const std::string pid_namespace = storage::this_holder("", 0).pid_namespace;
    const std::string own = mark_of("/proc/self"); // set when this process itself belongs to a trial
    int ended = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const std::string mark = mark_of(entry->path());
        if (mark.empty() || mark == own || !is_of_the_dead(mark, pid_namespace)) continue;
        if (::kill(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)), SIGKILL) == 0) ++ended;
    }
    return ended;
}

Guard& Guard::instance() {
    static Guard guard;
    return guard;
}

void Guard::hold(storage::FileDescriptor descriptor, const std::vector<std::uint64_t>& processes) {
    {
        const std::lock_guard lock(mutex_);
        if (started_) return;
        held_ = std::move(descriptor);
        for (const std::uint64_t pid : processes) others_.push_back(std::to_string(pid));
    }
    prepare();
}

void Guard::prepare() {
    const std::lock_guard lock(mutex_);
    if (started_) return;
    started_ = true;
    static_cast<void>(end_programs_of_the_dead()); // left by workers that were killed with their guards
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    const storage::FileDescriptor theirs(ends[0]);
    socket_.reset(ends[1]);
    const storage::FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
    try {
        std::vector<std::string> words{"/bin/sh", "-c", script, "ranktune-guard", mark_};
        words.insert(words.end(), others_.begin(), others_.end());
        static_cast<void>(spawn(words, {"PATH=/bin:/usr/bin"}, "/",
                                {theirs.get(), null.get(), null.get(), held_ ? held_.get() : null.get()}, false));
        held_.reset(); // the guard has it
    } catch (const base::Error&) {
        socket_.reset();
    }
}

void Guard::begin(pid_t group) { tell('+', group); }

void Guard::end(pid_t group) { tell('-', group); }

void Guard::tell(char what, pid_t group) {
    const std::lock_guard lock(mutex_);
    if (!socket_) return;
    const std::string line = std::string(1, what) + " " + std::to_string(group) + "\n";
    [[maybe_unused]] const auto sent = send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace ranktune::process
