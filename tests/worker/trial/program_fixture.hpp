// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study of one small Python program on ranks that are threads, with scripted verdicts.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

namespace fs = std::filesystem;
using study::AttemptOutcome;
using namespace std::chrono_literals;

/// Prologue of every test program: the protocol in a few lines of Python.
inline constexpr const char* prologue = R"(
import json, os, signal, socket, sys, time
link = socket.socket(fileno=int(os.environ["RANKTUNE_FD"])).makefile("rw")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
first = int(os.environ["RANKTUNE_ITERATION"]) + 1
folder = os.environ["RANKTUNE_CHECKPOINT_DIR"]
def send(**message):
    link.write(json.dumps(message) + "\n")
    link.flush()
def answer():
    return json.loads(link.readline())
def report(value, **more):
    send(report={"score": value} if rank == 0 else {}, **more)
    return answer()
)";

/// A study of one program in a directory of its own.
struct Programs {
    explicit Programs(int ranks, const std::string& text)
        : io(storage::posix_file_system(), home.path(), true, std::chrono::milliseconds(0)),
          setting{{std::string("PATH=") + std::getenv("PATH"), "OMPI_COMM_WORLD_RANK=5"},
                  home.path(),
                  "here",
                  [this](base::TrialId, std::string_view line) {
                      const std::lock_guard lock(mutex);
                      output.emplace_back(line);
                  },
                  60s,
                  60s}, // see below
          cluster(ranks, {}, &setting, &io) {
        fs::create_directory(home.path() + "/python");
        std::ofstream(home.path() + "/python/ranktune.py"); // must exist; these programs do not use it
        const std::string script = home.path() + "/program.py";
        std::ofstream(script) << prologue << text;
        study::ProgramSpec program;
        program.command = "/usr/bin/python3 -S -E " + script + " {args}";
        program.directory = home.path();
        cluster.spec().name = "tests";
        cluster.spec().objective = {"score", study::Mode::max};
        cluster.spec().trainable.program = program;
        // Never reached: a busy machine may be slow.
        cluster.spec().output.abort_grace = 60s;
    }
    [[nodiscard]] bool scratch_is_empty() const { return !fs::exists(attempts()) || fs::is_empty(attempts()); }
    [[nodiscard]] fs::path attempts() const { return fs::path(home.path()) / "attempts"; }
    [[nodiscard]] std::string printed() {
        const std::lock_guard lock(mutex);
        std::string all;
        for (const auto& line : output) all += line + "\n";
        return all;
    }

    ranktune::testing::TemporaryDirectory home;
    worker::StoreIo io;
    std::mutex mutex;
    std::vector<std::string> output;
    worker::ProgramSetting setting;
    TrialCluster cluster;
};

inline void check_outcomes(const std::vector<RankLog>& logs, AttemptOutcome outcome) {
    for (const auto& log : logs) {
        INFO(describe(log.ended->failure));
        CHECK(log.ended->outcome == outcome);
    }
}

/// The message of the one rank that has one.
inline std::string blame(const std::vector<RankLog>& logs) {
    std::string found;
    for (const auto& log : logs) {
        if (log.ended->failure.empty()) continue;
        CHECK(found.empty());
        found = describe(log.ended->failure);
    }
    return found;
}

} // namespace ranktune::testing
