// SPDX-License-Identifier: Apache-2.0
#pragma once
// ForkServer: a Python interpreter that has imported the user's file, and forks a process for each attempt.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "process/child.hpp"
#include "process/spawn.hpp"

namespace ranktune::process {

/// tools/python/ranktune_function.py has the other half. Used only by the thread that made it, like a Child.
class ForkServer {
  public:
    /// Starts the interpreter: see `spawn` for the errors. `output`: one line that it prints.
    ForkServer(const std::vector<std::string>& words, const std::vector<std::string>& environment,
               const std::string& directory, Child::Output output);

    /// Waits until it has imported the user's file; `each_turn` is called often; what it throws ends the wait.
    /// Throws base::Error when the interpreter has ended: with its last words, such as the exception of the import.
    void wait_until_ready(const std::function<void()>& each_turn);
    /// Whether it can fork.
    [[nodiscard]] bool is_alive();
    /// Starts a process, which is a child of this process and leads a group of its own, and returns its number. Throws
    /// SetUpError when the interpreter cannot.
    [[nodiscard]] pid_t fork(const std::vector<std::string>& environment, const std::string& directory,
                             const SpawnDescriptors& descriptors);

  private:
    bool ready_ = false;
    bool broken_ = false; ///< a request had no answer: a later one may get that answer
    Child interpreter_;
};

} // namespace ranktune::process
