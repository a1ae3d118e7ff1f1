// SPDX-License-Identifier: Apache-2.0
#include "process/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

#include "process/descendants.hpp"
#include "process/guard.hpp"
#include "process/interpreter.hpp"
#include "process/process_watch.hpp"
#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "storage/error_kinds.hpp"

namespace ranktune::process {
namespace {

constexpr std::size_t longest_line = std::size_t{64} << 10U; // of output; longer lines are cut
constexpr std::size_t longest_last_line = std::size_t{1} << 20U;
constexpr std::size_t longest_backlog = std::size_t{1} << 20U; // of unread decisions
constexpr std::size_t last_lines = 12;
constexpr std::size_t last_bytes = 2000;
constexpr int most_reads = 16; // per stream and turn, so that a flooded stream does not starve the others

int checked_start(int result, const char* what) {
    if (result < 0) throw SetUpError(std::string("cannot start a program: ") + what, errno);
    return result;
}

void make_non_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

struct Pair {
    storage::FileDescriptor ours;
    storage::FileDescriptor theirs;
};

Pair make_stream() try {
    Pipe pipe = make_pipe();
    make_non_blocking(pipe.read.get());
    return {std::move(pipe.read), std::move(pipe.write)};
} catch (const base::IoError& error) {
    throw SetUpError("cannot start a program: pipe", error.code().value());
}

Pair make_socket() {
    int ends[2];
    checked_start(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socket");
    make_non_blocking(ends[0]);
    return {storage::FileDescriptor(ends[0]), storage::FileDescriptor(ends[1])};
}

constexpr int longest_send_ms = 60'000;

/// The last state of a line with carriage returns (progress bars), as a terminal would show it.
std::string_view as_shown(std::string_view line) {
    while (line.ends_with('\r')) line.remove_suffix(1);
    return line.substr(line.rfind('\r') + 1);
}

} // namespace

std::string ChildExit::text() const {
    if (signal == 0) return "exit code " + std::to_string(code);
    const char* name = sigdescr_np(signal);
    return "killed by signal " + std::to_string(signal) + (name != nullptr ? std::string(" (") + name + ")" : "");
}

Child::Child(const std::vector<std::string>& words, const std::vector<std::string>& environment,
             const std::string& directory, Output output, Clock::duration term_grace)
    : Child([&](const auto& variables, const auto& theirs) { return spawn(words, variables, directory, theirs); },
            nullptr, environment, std::move(output), term_grace) {}

Child::Child(const std::shared_ptr<Interpreter>& interpreter, const std::vector<std::string>& environment,
             const std::string& directory, Output output, Clock::duration term_grace)
    : Child([&](const auto& variables, const auto& theirs) { return interpreter->begin(variables, directory, theirs); },
            interpreter->calls() ? interpreter : nullptr, environment, std::move(output), term_grace) {}

Child::Child(const Start& start, std::shared_ptr<Interpreter> host, std::vector<std::string> variables, Output output,
             Clock::duration term_grace)
    : output_(std::move(output)), term_grace_(term_grace), host_(std::move(host)) {
    const storage::FileDescriptor null(checked_start(open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null"));
    Pair out = make_stream();
    Pair error = make_stream();
    Pair control = make_socket();
    const std::string& mark = Guard::instance().mark();
    std::erase_if(variables, [&](const std::string& entry) { // set by an outer study of which this one is a trial
        return entry.starts_with(mark.substr(0, mark.find('=') + 1));
    });
    variables.push_back(mark);
    const auto begin = [&] {
        return start(variables, {null.get(), out.theirs.get(), error.theirs.get(), control.theirs.get()});
    };
    pid_ = host_ ? begin() : start_as_child(begin);
    out_.fd = std::move(out.ours);
    error_.fd = std::move(error.ours);
    control_ = std::move(control.ours);
    pidfd_ = open_process(static_cast<std::uint64_t>(pid_));
}

Child::~Child() {
    stop();
    while (!exit_) wait(std::chrono::milliseconds(20));
}

bool Child::wait(Clock::duration patience, int other) {
    if (exit_) return false;
    if (kill_at_) patience = std::min(patience, std::max(*kill_at_ - Clock::now(), Clock::duration::zero()));
    // Without a pidfd the end is only found by polling.
    if (!pidfd_) patience = std::min<Clock::duration>(patience, std::chrono::milliseconds(5));
    pollfd fds[] = {{pidfd_.get(), POLLIN, 0}, // those below 0 are ignored
                    {control_.get(), POLLIN, 0},
                    {out_.fd.get(), POLLIN, 0},
                    {error_.fd.get(), POLLIN, 0},
                    {other, POLLIN, 0}};
    if (!unsent_.empty()) fds[1].events |= POLLOUT;
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count();
    const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    const bool any = ppoll(fds, std::size(fds), &limit, nullptr) > 0;
    if (kill_at_ && Clock::now() >= *kill_at_) kill();
    const bool taken = (any || !pidfd_) && take_in();
    const bool may_be_over = !pidfd_ || host_ || (any && fds[0].revents != 0);
    return (may_be_over && look_for_end()) || taken;
}

bool Child::take_in() {
    bool any = flush();
    any = read_control() || any;
    any = read_stream(out_) || any;
    return read_stream(error_) || any;
}

bool Child::read_stream(Stream& stream) {
    char buffer[16384];
    bool any = false;
    for (int turn = 0; stream.fd && turn < most_reads; ++turn) {
        const ssize_t size = read(stream.fd.get(), buffer, sizeof buffer);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) break; // nothing to read
        if (size == 0) stream.fd.reset();
        any = true;
        stream.partial.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        take_lines(stream, false); // a line without an end: when the program has ended (drain)
    }
    return any;
}

void Child::take_lines(Stream& stream, bool all) {
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = stream.partial.find('\n', begin)) != std::string::npos; begin = end + 1)
        write_line(stream, std::string_view(stream.partial).substr(begin, end - begin));
    stream.partial.erase(0, begin);
    if (stream.partial.size() > longest_line || (all && !stream.partial.empty())) {
        write_line(stream, stream.partial);
        stream.partial.clear();
        stream.goes_on = !all;
    }
}

void Child::end_output() {
    for (Stream* stream : {&out_, &error_}) {
        take_lines(*stream, true);
        stream->last_line.clear();
        stream->last.clear();
        stream->kept = 0;
    }
    refusal_.clear();
}

void Child::write_line(Stream& stream, std::string_view line) {
    line = as_shown(line);
    output_(line);
    const bool goes_on = std::exchange(stream.goes_on, false);
    if (line.empty()) return;
    if (!goes_on) stream.last_line.clear();
    if (stream.last_line.size() < longest_last_line) stream.last_line += line;
    if (storage::names_refusal(line)) refusal_ = line.substr(0, last_bytes);
    auto& last = stream.last;
    auto& bytes = stream.kept;
    // The beginning of an error says most, the end of other output.
    last.emplace_back(&stream == &out_ && line.size() > last_bytes ? line.substr(line.size() - last_bytes)
                                                                   : line.substr(0, last_bytes));
    bytes += last.back().size();
    while (last.size() > last_lines || (bytes > last_bytes && last.size() > 1)) {
        bytes -= last.front().size();
        last.pop_front();
    }
}

std::string Child::Stream::tail() const {
    std::string text;
    for (const std::string& line : last) text += (text.empty() ? "" : "\n") + line;
    return text;
}

bool Child::read_control() {
    char buffer[16384];
    bool any = false;
    for (int turn = 0; control_ && turn < most_reads; ++turn) {
        const ssize_t size = recv(control_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) break;
        any = true;
        if (size <= 0) {
            control_.reset(); // the program closed its end or is gone
        } else {
            messages_.add({buffer, static_cast<std::size_t>(size)});
            if (static_cast<std::size_t>(size) < sizeof buffer) break; // that was all
        }
    }
    return any;
}

void Child::send(std::string_view line) {
    if (!unsent_.empty() && unsent_.size() + line.size() > longest_backlog) return;
    unsent_ += line;
    flush();
}

std::optional<std::string> Child::line_within(Clock::duration patience) {
    const auto until = Clock::now() + patience;
    while (true) {
        if (auto line = messages_.next()) return line;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        if (!control_ || left <= 0) return std::nullopt;
        pollfd fd{control_.get(), POLLIN, 0};
        static_cast<void>(poll(&fd, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))));
        read_control();
    }
}

void Child::send_with(std::string_view line, std::span<const int> descriptors) {
    alignas(cmsghdr) char space[CMSG_SPACE(8 * sizeof(int))] = {};
    bool handed = false; // the descriptors go with the first bytes
    while (!line.empty() && control_) {
        iovec bytes{const_cast<char*>(line.data()), line.size()};
        msghdr message{};
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        if (!handed) {
            message.msg_control = space;
            message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
            std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
        }
        const ssize_t size = sendmsg(control_.get(), &message, MSG_NOSIGNAL);
        if (size >= 0) {
            handed = true;
            line.remove_prefix(static_cast<std::size_t>(size));
            continue;
        }
        if (errno == EINTR) continue;
        pollfd room{control_.get(), POLLOUT, 0};
        if (errno != EAGAIN || poll(&room, 1, longest_send_ms) <= 0) return; // it has ended, or hangs: no answer comes
    }
}

bool Child::flush() {
    while (control_ && !unsent_.empty()) {
        const ssize_t size = ::send(control_.get(), unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return false; // the buffer is full, or the program is gone, which the next read shows
        unsent_.erase(0, static_cast<std::size_t>(size));
    }
    return false;
}

void Child::signal_group(int signal) const {
    if (!exit_) ::kill(-pid_, signal);
}

void Child::stop() {
    if (exit_ || kill_at_) return;
    if (host_) host_->retire();
    kill_at_ = Clock::now() + term_grace_;
    signal_group(SIGTERM);
    signal_group(SIGCONT); // a stopped process would not react
}

void Child::kill() {
    if (host_) host_->retire();
    kill_at_ = Clock::time_point::max();
    signal_group(SIGKILL);
}

/// The interpreter reaps itself.
bool Child::look_for_return() {
    const auto exit = host_->returned();
    if (!exit) return false;
    end_orphans();
    drain();
    exit_ = exit;
    return true;
}

bool Child::look_for_end() {
    if (host_) return look_for_return();
    siginfo_t info{};
    // WNOWAIT: while the process is a zombie, the number of its group is not reused.
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        if (errno != ECHILD) return false;
        info.si_code = CLD_KILLED; // other code in this process has reaped it: its status is lost
        info.si_status = SIGKILL;
    } else if (info.si_pid == 0) {
        return false;
    }
    signal_group(SIGKILL);
    const bool killed = info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED;
    const int status = info.si_status;
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
    }
    end_descendants_of(pid_);
    drain();
    exit_ = killed ? ChildExit{0, status} : ChildExit{status, 0};
    return true;
}

/// Reads the rest of the pipes; all writers are dead. (The limit is for a descendant that could not be killed.)
void Child::drain() {
    for (int turn = 0; turn < 1000 && (control_ || out_.fd || error_.fd); ++turn)
        if (!take_in()) break;
    for (Stream* stream : {&out_, &error_}) {
        ends_within_line_ = ends_within_line_ || !stream->partial.empty();
        take_lines(*stream, true);
        stream->fd.reset();
    }
    control_.reset();
    pidfd_.reset();
}

} // namespace ranktune::process
