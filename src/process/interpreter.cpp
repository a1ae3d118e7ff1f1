// SPDX-License-Identifier: Apache-2.0
#include "process/interpreter.hpp"

#include <algorithm>
#include <chrono>

#include "process/program/messages.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::process {
namespace {

constexpr std::chrono::milliseconds turn{50};
/// A machine that swaps may take long; without an answer by then it has hung.
constexpr std::chrono::minutes longest_start{1};

std::vector<std::string> devices_of(std::vector<std::string> environment) {
    std::erase_if(environment, [](const std::string& entry) {
        return entry.substr(0, entry.find('=')).find("VISIBLE_DEVICES") == std::string::npos;
    });
    return environment;
}

} // namespace

Interpreter::Interpreter(Manner manner, const std::vector<std::string>& words,
                         const std::vector<std::string>& environment, const std::string& directory,
                         Child::Output output)
    : manner_(manner),
      devices_(devices_of(environment)),
      interpreter_(words, environment, directory, std::move(output)) {}

Interpreter::~Interpreter() {
    if (!calls() || !ready_ || broken_) return;
    interpreter_.hang_up(); // it ends as a program does, with what it has registered for that
    const auto until = Child::Clock::now() + Child::usual_term_grace;
    while (!interpreter_.exited() && Child::Clock::now() < until) interpreter_.wait(turn);
}

void Interpreter::wait_until_ready(const std::function<void()>& each_turn) {
    while (!ready_) {
        each_turn();
        interpreter_.wait(turn);
        while (const auto line = interpreter_.next_line()) ready_ = ready_ || process::is_ready_message(*line);
        if (!interpreter_.exited()) continue;
        const std::string words = interpreter_.last_words();
        const auto last = words.rfind('\n');
        throw base::Error(
            "the interpreter of the function ended while it imported the file: " + interpreter_.exited()->text() +
            (words.empty() ? "" : ": " + words.substr(last + 1) + "\nlast lines of its standard error:\n" + words));
    }
}

bool Interpreter::serves(const std::vector<std::string>& environment) {
    interpreter_.wait(std::chrono::nanoseconds(0));
    return !broken_ && !interpreter_.exited() && (!calls() || devices_of(environment) == devices_);
}

pid_t Interpreter::begin(const std::vector<std::string>& environment, const std::string& directory,
                         const SpawnDescriptors& descriptors) {
    broken_ = true;
    const int handed[] = {descriptors.out, descriptors.error, descriptors.control};
    interpreter_.send_with(process::start_request(environment, directory), handed);
    // Called while no other program of this process can begin or end: the interpreter's end is noticed later.
    const auto line = interpreter_.line_within(longest_start);
    if (!line) throw SetUpError("the interpreter that runs the function has ended, or hangs");
    const auto answer = process::parse_started(*line);
    broken_ = false;
    if (answer.pid <= 0) throw SetUpError("the interpreter cannot start the function's process: " + answer.error);
    return static_cast<pid_t>(answer.pid);
}

std::optional<ChildExit> Interpreter::returned() {
    interpreter_.wait(std::chrono::nanoseconds(0));
    if (const auto line = interpreter_.next_line()) {
        const auto said = process::parse_returned(*line);
        if (!said.ends) return ChildExit{said.code, 0};
        broken_ = true;
        last_ = ChildExit{said.code, 0};
    }
    // What the attempt has left behind ends with the interpreter.
    return last_ && interpreter_.exited() ? last_ : interpreter_.exited();
}

} // namespace ranktune::process
