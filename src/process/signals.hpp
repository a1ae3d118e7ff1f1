// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signals that end a run: blocked in every thread, read from a file descriptor by one loop.

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <map>
#include <optional>

#include "process/signal_note.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {

/// The signals that end a run.
inline constexpr std::array stop_signal_numbers{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The asker for a stop signal; none for other signals.
[[nodiscard]] study::Asker asker_of(int signal);

/// A file that reaches the limit of file sizes (ulimit -f) is then an error of the write (EFBIG), like a full disk, and
/// no longer a signal that kills the process. Call it first in `main`. Processes that are started get the default
/// action back.
void outlive_file_size_limit();

/// Blocks INT, TERM, HUP, USR1 and USR2 in the calling thread and in all threads it starts later. Call it first in
/// `main`, before MPI starts its own threads: the kernel delivers a signal to any thread that does not block it. A
/// library may start threads even before `main` (a tool in LD_PRELOAD): a handler forwards their signals to the
/// reader's thread.
void block_stop_signals();

/// How long a loop that has much to do may go on without looking for signals.
inline constexpr std::chrono::milliseconds between_signals{1};

/// Reads the signals that `block_stop_signals` has blocked. One per process at a time; used by the thread that made it.
class SignalReader {
  public:
    /// `meanings`: see SignalMeanings. Throws base::IoError when the process is out of file descriptors.
    explicit SignalReader(SignalMeanings meanings = {});
    ~SignalReader();
    SignalReader(const SignalReader&) = delete;
    SignalReader& operator=(const SignalReader&) = delete;

    /// The next pending signal. Never blocks. A signal that was sent several times while pending counts once.
    [[nodiscard]] std::optional<study::Asker> poll();
    /// See SignalMeanings::of.
    [[nodiscard]] study::Asker meaning(study::Asker signal) const { return meanings_.of(signal); }
    /// For Waker::nap.
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_ = -1;
    SignalMeanings meanings_;
};

/// The effect of a stop signal, given the earlier ones.
enum class StopStep {
    begin,  ///< the first signal: a clean stop
    repeat, ///< a repetition by the launcher: no effect
    at_once ///< a person repeats the request: stop at once
};

/// Distinguishes a person who insists from a launcher that repeats a signal. Slurm sends TERM twice within milliseconds
/// at the time limit, also after the USR1 of `--signal`; KillWait is still left for checkpoints then. So the study
/// stops at once only after a second INT (or Ctrl-C), or when a signal is repeated `insisting` or more after its first
/// arrival.
class StopSequence {
  public:
    static constexpr std::chrono::seconds insisting{5};

    [[nodiscard]] StopStep next(study::Asker asker, std::chrono::steady_clock::time_point now);

  private:
    std::map<study::Asker, std::chrono::steady_clock::time_point> first_;
};

/// Builds and writes a text within a signal handler. Text beyond its capacity is cut. Allocates nothing, locks nothing.
class SignalText {
  public:
    SignalText& add(const char* text) {
        while (*text != '\0' && size_ < sizeof text_) text_[size_++] = *text++;
        return *this;
    }
    SignalText& add(long number) {
        char digits[24];
        char* at = digits + sizeof digits;
        *--at = '\0';
        auto left = number < 0 ? 0UL - static_cast<unsigned long>(number) : static_cast<unsigned long>(number);
        do {
            *--at = static_cast<char>('0' + left % 10);
            left /= 10;
        } while (left != 0);
        if (number < 0) *--at = '-';
        return add(at);
    }
    void write_to(int fd) const { [[maybe_unused]] const auto done = write(fd, text_, size_); }

  private:
    char text_[512];
    std::size_t size_ = 0;
};

} // namespace ranktune::process
