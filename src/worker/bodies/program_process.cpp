// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_process.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

namespace ranktune::worker {

ProgramProcess::~ProgramProcess() {
    child_.reset();
    output_.finish();
    if (folder_.empty()) return;
    // Processes of other ranks may not have ended yet.
    std::error_code error;
    for (int turn = 0; turn < 5; ++turn) {
        std::filesystem::remove_all(folder_, error);
        if (!error) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

void ProgramProcess::start(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                           const std::string& directory, process::Child::Clock::duration term_grace, Write heard) {
    child_ = std::make_unique<process::Child>(
        words, environment, directory,
        [this, heard = std::move(heard)](std::string_view line) {
            print(line);
            if (heard) heard(line);
        },
        term_grace);
}

void ProgramProcess::start(const std::shared_ptr<process::Interpreter>& interpreter,
                           const std::vector<std::string>& environment, const std::string& directory,
                           process::Child::Clock::duration term_grace) {
    child_ = std::make_unique<process::Child>(
        interpreter, environment, directory, [this](std::string_view line) { print(line); }, term_grace);
}

void ProgramProcess::end_output() {
    output_.finish();
    output_.begin_again();
}

} // namespace ranktune::worker
