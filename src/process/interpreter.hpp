// SPDX-License-Identifier: Apache-2.0
#pragma once
// Interpreter: a Python interpreter that has imported the user's file, for the attempts of this rank.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "process/child.hpp"
#include "process/spawn.hpp"

namespace ranktune::process {

/// tools/python/ranktune_function.py has the other half. Used only by the thread that made it, like a Child.
class Interpreter {
  public:
    /// forks: a process for each attempt. calls: the function itself, for one attempt after the other.
    enum class Manner : std::uint8_t { forks, calls };

    /// Starts the interpreter: see `spawn` for the errors. `words` tell it its manner. `output`: one line that it
    /// prints.
    Interpreter(Manner manner, const std::vector<std::string>& words, const std::vector<std::string>& environment,
                const std::string& directory, Child::Output output);
    /// Ends it: one that calls is given time to end by itself.
    ~Interpreter();
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    /// Waits until it has imported the user's file; `each_turn` is called often; what it throws ends the wait.
    /// Throws base::Error when the interpreter has ended: with its last words, such as the exception of the import.
    void wait_until_ready(const std::function<void()>& each_turn);
    /// Whether it can begin an attempt with these variables: one that calls has its GPUs for good.
    [[nodiscard]] bool serves(const std::vector<std::string>& environment);
    [[nodiscard]] bool calls() const { return manner_ == Manner::calls; }
    /// Begins an attempt and returns the number of its process, which leads a group of its own: a new child of this
    /// process, or the interpreter. Throws SetUpError when the interpreter cannot.
    [[nodiscard]] pid_t begin(const std::vector<std::string>& environment, const std::string& directory,
                              const SpawnDescriptors& descriptors);

    /// Both of one that calls. How the attempt that it began last has ended; nothing: it has not. To be asked until
    /// it has.
    [[nodiscard]] std::optional<ChildExit> returned();
    /// The attempt is ended by signal, and the interpreter with it.
    void retire() { broken_ = true; }

  private:
    Manner manner_;
    bool ready_ = false;
    /// It ends after this attempt; or a request had no answer, and a later one may get that answer.
    bool broken_ = false;
    std::optional<ChildExit> last_;    ///< how the attempt ended after which it ends
    std::vector<std::string> devices_; ///< variables that name them
    Child interpreter_;
};

} // namespace ranktune::process
