// SPDX-License-Identifier: Apache-2.0
#include "drivers/program/guard.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <string>

#include "drivers/program/spawn.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::drivers {
namespace {

/// Keeps a list of groups: "+ 12" adds one, "- 12" takes it off. At the end of its input it kills what is on the list,
/// and then, as often as it finds any, who has the mark ($1) in its environment.
constexpr const char* script =
    "trap '' HUP INT TERM USR1 USR2\n"
    "all=' '\n"
    "while read -r what group; do\n"
    "  case $what in\n"
    "    +) all=\"$all$group \" ;;\n"
    "    -) all=\"${all%% $group *} ${all#* $group }\" ;;\n"
    "  esac\n"
    "done\n"
    "[ \"$all\" = ' ' ] && exit\n"
    "for group in $all; do kill -s KILL -- \"-$group\"; done 2>/dev/null\n"
    "for round in 1 2 3 4 5 6 7 8 9 10; do\n"
    "  left=$(grep -lszFx -- \"$1\" /proc/[0-9]*/environ | tr -dc '0-9\\n')\n"
    "  [ -n \"$left\" ] || exit\n"
    "  kill -s KILL $left 2>/dev/null\n"
    "  sleep 1\n"
    "done\n";

std::string make_mark() {
    std::random_device device;
    return "RANKTUNE_GUARD=" + std::to_string(getpid()) + "-" + std::to_string(device()) + std::to_string(device());
}

} // namespace

Guard::Guard() : mark_(make_mark()) {}

Guard& Guard::instance() {
    static Guard guard;
    return guard;
}

void Guard::prepare() {
    const std::lock_guard lock(mutex_);
    if (started_) return;
    started_ = true;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    const storage::FileDescriptor theirs(ends[0]);
    socket_.reset(ends[1]);
    const storage::FileDescriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
    try {
        static_cast<void>(spawn({"/bin/sh", "-c", script, "ranktune-guard", mark_}, {"PATH=/bin:/usr/bin"}, "/",
                                {theirs.get(), null.get(), null.get(), null.get()}, false));
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

} // namespace ranktune::drivers
