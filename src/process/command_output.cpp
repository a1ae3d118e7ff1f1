// SPDX-License-Identifier: Apache-2.0
#include "process/command_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "process/environment.hpp"
#include "process/spawn.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {
namespace {

using Clock = std::chrono::steady_clock;
using storage::FileDescriptor;

constexpr std::size_t most_text = 1 << 20;
constexpr std::size_t most_error = 4096;

/// Reads available bytes; false at the end of the stream.
bool take(int fd, std::string& into, std::size_t most) {
    std::array<char, 4096> part{};
    const ssize_t count = read(fd, part.data(), part.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count == 0) return false;
    into.append(part.data(), std::min(static_cast<std::size_t>(count), most - std::min(most, into.size())));
    return true;
}

/// Reads both streams until they end. False: timed out.
bool read_all(int out, int error, CommandOutput& result, Clock::time_point until) {
    std::array<pollfd, 2> sources{{{out, POLLIN, 0}, {error, POLLIN, 0}}};
    while (sources[0].fd >= 0 || sources[1].fd >= 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return false;
        if (poll(sources.data(), sources.size(), static_cast<int>(left)) < 0 && errno != EINTR) return false;
        if (sources[0].revents != 0 && !take(out, result.text, most_text)) sources[0].fd = -1;
        if (sources[1].revents != 0 && !take(error, result.error, most_error)) sources[1].fd = -1;
        sources[0].revents = sources[1].revents = 0;
    }
    return true;
}

/// Waits for the exit code, and kills the program at `until`.
void wait_for(pid_t child, Clock::time_point until, CommandOutput& result) {
    for (;;) {
        int status = 0;
        const pid_t done = waitpid(child, &status, WNOHANG);
        if (done == child && WIFEXITED(status)) {
            result.exit = WEXITSTATUS(status);
            return;
        }
        if (done == child || (done < 0 && errno != EINTR)) {
            result.no_exit = NoExit::killed;
            return;
        }
        if (Clock::now() >= until) break;
        usleep(1000); // its pipes are closed: it ends soon
    }
    result.no_exit = NoExit::timed_out;
    kill(-child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

} // namespace

CommandOutput run_command(const std::vector<std::string>& words, std::chrono::milliseconds patience) {
    CommandOutput result;
    const auto until = Clock::now() + patience;
    try {
        Pipe out = make_pipe();
        Pipe error = make_pipe();
        const FileDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
        const pid_t child = spawn(words, environment_entries(), "/",
                                  {nothing.get(), out.write.get(), error.write.get(), nothing.get()});
        out.write = FileDescriptor();
        error.write = FileDescriptor();
        const bool in_time = read_all(out.read.get(), error.read.get(), result, until);
        wait_for(child, in_time ? until : Clock::now(), result);
        if (!in_time) result.error = "no answer within " + std::to_string(patience.count() / 1000) + " s";
    } catch (const NoSuchProgram& failure) {
        result.no_exit = NoExit::no_such_program;
        result.error = failure.what();
    } catch (const std::exception& failure) {
        result.no_exit = NoExit::not_started;
        result.error = failure.what();
    }
    while (!result.error.empty() && result.error.back() == '\n') result.error.pop_back();
    return result;
}

} // namespace ranktune::process
