// SPDX-License-Identifier: Apache-2.0
#include "head/asktell/line_channel.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

#include "process/process_watch.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::head {

LineChannel::LineChannel(int in, int out, std::uint64_t peer) : in_(in), out_(out), peer_pid_(peer) {
    if (peer != 0) peer_ = process::open_process(peer);
}

void LineChannel::wait(std::chrono::milliseconds patience) {
    if (closed_) return;
    pollfd watched[] = {{in_, POLLIN, 0}, {peer_ ? peer_.get() : -1, POLLIN, 0}};
    static_cast<void>(::poll(watched, 2, static_cast<int>(patience.count())));
    if (watched[0].revents == 0) { // its last lines come first
        const bool has_a_new_parent = peer_pid_ != 0 && static_cast<std::uint64_t>(::getppid()) != peer_pid_;
        closed_ = peer_ ? watched[1].revents != 0 : has_a_new_parent;
        return;
    }
    char bytes[1 << 16];
    const ssize_t got = ::read(in_, bytes, sizeof bytes);
    if (got > 0)
        lines_.add({bytes, static_cast<std::size_t>(got)});
    else if (got == 0 || (errno != EINTR && errno != EAGAIN))
        closed_ = true;
}

std::optional<std::string> LineChannel::next() {
    if (garbled_) return std::nullopt;
    try {
        return lines_.next();
    } catch (const base::FormatError&) {
        closed_ = garbled_ = true;
        throw;
    }
}

void LineChannel::write(std::string line) {
    line += '\n';
    for (std::size_t done = 0; done < line.size();) {
        const ssize_t put = ::write(out_, line.data() + done, line.size() - done);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            closed_ = true;
            return;
        }
        done += static_cast<std::size_t>(put);
    }
}

} // namespace ranktune::head
