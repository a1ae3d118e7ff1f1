// SPDX-License-Identifier: Apache-2.0
#include "process/fork_server.hpp"

#include <chrono>
#include <optional>

#include "ranktune/base/error.hpp"
#include "trainables/program/messages.hpp"

namespace ranktune::process {
namespace {

constexpr std::chrono::milliseconds turn{50};
/// A machine that swaps may take long; without an answer by then it has hung.
constexpr std::chrono::minutes longest_fork{1};

} // namespace

ForkServer::ForkServer(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                       const std::string& directory, Child::Output output)
    : interpreter_(words, environment, directory, std::move(output)) {}

void ForkServer::wait_until_ready(const std::function<void()>& each_turn) {
    while (!ready_) {
        each_turn();
        interpreter_.wait(turn);
        while (const auto line = interpreter_.next_line()) ready_ = ready_ || trainables::is_ready_message(*line);
        if (!interpreter_.exited()) continue;
        const std::string words = interpreter_.last_words();
        const auto last = words.rfind('\n');
        throw base::Error(
            "the interpreter of the function ended while it imported the file: " + interpreter_.exited()->text() +
            (words.empty() ? "" : ": " + words.substr(last + 1) + "\nlast lines of its standard error:\n" + words));
    }
}

bool ForkServer::is_alive() {
    interpreter_.wait(std::chrono::nanoseconds(0));
    return !broken_ && !interpreter_.exited();
}

pid_t ForkServer::fork(const std::vector<std::string>& environment, const std::string& directory,
                       const SpawnDescriptors& descriptors) {
    broken_ = true;
    const int handed[] = {descriptors.out, descriptors.error, descriptors.control};
    interpreter_.send_with(trainables::fork_request(environment, directory), handed);
    // Called while no other program of this process can begin or end: the interpreter's end is noticed later.
    const auto line = interpreter_.line_within(longest_fork);
    if (!line) throw SetUpError("the interpreter that starts the processes of the function has ended, or hangs");
    const auto answer = trainables::parse_forked(*line);
    broken_ = false;
    if (answer.pid <= 0) throw SetUpError("the interpreter cannot start the function's process: " + answer.error);
    return static_cast<pid_t>(answer.pid);
}

} // namespace ranktune::process
