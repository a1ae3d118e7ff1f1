// SPDX-License-Identifier: Apache-2.0
#pragma once
// Child: the process of a program on this rank, from its start until nothing of it is left.

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file_descriptor.hpp"
#include "trainables/program/messages.hpp"

namespace ranktune::process {

/// How a process ended.
struct ChildExit {
    int code = 0;   ///< of exit
    int signal = 0; ///< that killed it; 0: it exited
    [[nodiscard]] bool clean() const { return code == 0 && signal == 0; }
    /// "exit code 3", "killed by signal 11 (Segmentation fault)".
    [[nodiscard]] std::string text() const;
};

/// Its standard output and error and its messages are read here, and nowhere else: whoever owns a Child calls `wait`
/// often, or the program is held up by a full pipe. Used by the thread that made it, whose end kills the program.
class Child {
  public:
    using Clock = std::chrono::steady_clock;
    /// One line that the program printed, without its end.
    using Output = std::function<void(std::string_view)>;
    /// From TERM to KILL, unless said otherwise.
    static constexpr std::chrono::seconds usual_term_grace{5};

    /// Starts the program: see `spawn` for the errors.
    Child(const std::vector<std::string>& words, const std::vector<std::string>& environment,
          const std::string& directory, Output output, Clock::duration term_grace = usual_term_grace);
    /// Stops what is left: TERM, then KILL.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Sleeps until the program says something, prints something or ends, at most `patience`; takes in what there is.
    /// Whether there was anything.
    bool wait(Clock::duration patience);
    /// The next line that it sent. Throws base::FormatError when one is too long.
    [[nodiscard]] std::optional<std::string> next_line() { return messages_.next(); }
    /// Sends as soon as the program reads; never blocks. What a program that does not read was to be told is dropped
    /// once it is more than a MiB.
    void send(std::string_view line);
    /// TERM to the program and its descendants now, KILL after the grace. Again: nothing.
    void stop();
    /// KILL, now.
    void kill();

    /// Set once the program has ended, all that it sent has been taken in, and none of its descendants lives.
    [[nodiscard]] const std::optional<ChildExit>& exited() const { return exit_; }
    /// The end of what it printed on standard error, for messages about failures; empty: nothing.
    [[nodiscard]] std::string last_words() const { return error_.tail(); }
    /// The same of its standard output.
    [[nodiscard]] std::string last_output() const { return out_.tail(); }
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    /// One of its outputs.
    struct Stream {
        storage::FileDescriptor fd;
        std::string partial;
        std::deque<std::string> last = {}; ///< lines
        std::size_t kept = 0;              ///< bytes of them

        [[nodiscard]] std::string tail() const;
    };

    bool take_in();
    bool read_stream(Stream& stream);
    void take_lines(Stream& stream, bool all);
    void write_line(Stream& stream, std::string_view line);
    bool read_control();
    bool flush();
    bool look_for_end();
    void drain();
    void signal_group(int signal) const;

    Output output_;
    Clock::duration term_grace_;
    storage::FileDescriptor control_;
    Stream out_;
    Stream error_;
    storage::FileDescriptor pidfd_; ///< empty on kernels that have none
    pid_t pid_ = -1;
    trainables::LineBuffer messages_;
    std::string unsent_;
    std::optional<Clock::time_point> kill_at_;
    std::optional<ChildExit> exit_;
};

} // namespace ranktune::process
