// SPDX-License-Identifier: Apache-2.0
#pragma once
// Child: the process of a program on this rank, from its start until it and all descendants have ended.

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/program/messages.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {

class Interpreter;
struct SpawnDescriptors;

/// How a process ended.
struct ChildExit {
    int code = 0;   ///< of exit
    int signal = 0; ///< signal that killed it; 0: it exited
    [[nodiscard]] bool clean() const { return code == 0 && signal == 0; }
    /// "exit code 3", "killed by signal 11 (Segmentation fault)".
    [[nodiscard]] std::string text() const;
};

/// Reads the program's standard output, standard error and messages. The owner must call `wait` often, or the program
/// blocks on a full pipe. Used only by the thread that made it; the end of that thread kills the program.
class Child {
  public:
    using Clock = std::chrono::steady_clock;
    /// Called with one line that the program printed, without its newline.
    using Output = std::function<void(std::string_view)>;
    /// Default time between TERM and KILL.
    static constexpr std::chrono::seconds usual_term_grace{5};

    /// Starts the program: see `spawn` for the errors.
    Child(const std::vector<std::string>& words, const std::vector<std::string>& environment,
          const std::string& directory, Output output, Clock::duration term_grace = usual_term_grace);
    /// The same for an attempt that an interpreter begins. If the interpreter `calls` the function itself, the attempt
    /// has a process only as long as it lasts: `exited` says how it ended; what ends it by signal ends the interpreter.
    /// Throws SetUpError.
    Child(const std::shared_ptr<Interpreter>& interpreter, const std::vector<std::string>& environment,
          const std::string& directory, Output output, Clock::duration term_grace = usual_term_grace);
    /// Stops the remaining processes: TERM, then KILL.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// Waits until the program sends a message, prints something or ends, or `other` can be read (-1: none), at most
    /// `patience`; reads everything available of the program. Returns whether there was anything.
    bool wait(Clock::duration patience, int other = -1);
    /// The next message line. Throws base::FormatError when it is too long.
    [[nodiscard]] std::optional<std::string> next_line() { return messages_.next(); }
    /// The same, waited for; nullopt: none within `patience`, or the program has closed its end. Whether it has ended
    /// is not looked at, nor what it prints.
    [[nodiscard]] std::optional<std::string> line_within(Clock::duration patience);
    /// Sends as soon as the program reads; never blocks. Drops a message while more than a MiB would be unread with it,
    /// but never the only one.
    void send(std::string_view line);
    /// Sends a line with descriptors, which the program then has, too. May block. Nothing else may be unsent.
    void send_with(std::string_view line, std::span<const int> descriptors);
    /// Closes this end of the connection, which the program reads as its end.
    void hang_up() { control_.reset(); }
    /// Bytes that the program has not read yet and the socket does not hold.
    [[nodiscard]] std::size_t unsent() const { return unsent_.size(); }
    /// Sends TERM to the program and its descendants now, KILL after the grace. A second call does nothing.
    void stop();
    /// Sends KILL now.
    void kill();

    /// Set once the program has ended, everything that it sent has been read, and none of its descendants is alive.
    [[nodiscard]] const std::optional<ChildExit>& exited() const { return exit_; }
    /// The last lines of its standard error, for failure messages; empty: none.
    [[nodiscard]] std::string last_words() const { return error_.tail(); }
    /// The last lines of its standard output.
    [[nodiscard]] std::string last_output() const { return out_.tail(); }
    /// The last line of it that is not empty, up to a MiB.
    [[nodiscard]] const std::string& last_line() const { return out_.last_line; }
    /// Whether the last line of a stream had no end: of a program that was killed it may lack a part.
    [[nodiscard]] bool ends_within_line() const { return ends_within_line_; }
    /// The last line of either stream that names an error of storage (storage::names_refusal); empty: none.
    [[nodiscard]] const std::string& refusal() const { return refusal_; }
    /// Returns it, and forgets it.
    std::string take_refusal() { return std::exchange(refusal_, {}); }
    /// Writes out lines that have no end yet, and forgets what was said: what follows belongs to something else.
    void end_output();
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    using Start = std::function<pid_t(const std::vector<std::string>& environment, const SpawnDescriptors& theirs)>;
    Child(const Start& start, std::shared_ptr<Interpreter> host, std::vector<std::string> environment, Output output,
          Clock::duration term_grace);

    /// One of the program's output streams.
    struct Stream {
        storage::FileDescriptor fd;
        std::string partial;
        std::deque<std::string> last = {}; ///< lines
        std::size_t kept = 0;              ///< bytes of them
        std::string last_line = {};        ///< that is not empty, whole
        bool goes_on = false;              ///< what comes next belongs to the last line, which was cut

        [[nodiscard]] std::string tail() const;
    };

    bool take_in();
    bool read_stream(Stream& stream);
    void take_lines(Stream& stream, bool all);
    void write_line(Stream& stream, std::string_view line);
    bool read_control();
    bool flush();
    bool look_for_end();
    bool look_for_return();
    void drain();
    void signal_group(int signal) const;

    Output output_;
    Clock::duration term_grace_;
    storage::FileDescriptor control_;
    Stream out_;
    Stream error_;
    std::string refusal_;
    bool ends_within_line_ = false;
    std::shared_ptr<Interpreter> host_; ///< which calls the function itself; null: it is a process of its own
    storage::FileDescriptor pidfd_;     ///< empty on kernels without pidfd
    pid_t pid_ = -1;
    process::LineBuffer messages_;
    std::string unsent_;
    std::optional<Clock::time_point> kill_at_;
    std::optional<ChildExit> exit_;
};

} // namespace ranktune::process
