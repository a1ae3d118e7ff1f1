// SPDX-License-Identifier: Apache-2.0
// Runs Catch2 on every rank, with MPI errors returned. Each rank writes a report: rank 0 to the terminal, the others to
// <program>.rank<N>.txt, shown when that rank fails. The largest exit code counts for all. --hang-rank N stops rank N
// until a debugger sets `go`. Tests that exchange messages must use CHECK, not REQUIRE: a rank that leaves a test case
// early makes the others hang.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include <mpi.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace ranktune::test {
namespace {
const comm::mpi::Environment* environment = nullptr;
}
const comm::mpi::Environment& world() { return *environment; }
} // namespace ranktune::test

namespace {

void wait_for_debugger(int rank) {
    std::cerr << "rank " << rank << " waits, process " << getpid() << ": attach and `set var go = 1`" << std::endl;
    volatile int go = 0;
    while (go == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

/// Handles --hang-rank N, and returns the other arguments.
std::vector<std::string> take_arguments(int argc, char** argv, int rank) {
    std::vector<std::string> rest;
    for (int i = 0; i < argc; ++i) {
        if (std::string(argv[i]) == "--hang-rank" && i + 1 < argc) {
            if (std::stoi(argv[++i]) == rank) wait_for_debugger(rank);
        } else {
            rest.emplace_back(argv[i]);
        }
    }
    return rest;
}

void show(const std::string& report, int rank) {
    std::ifstream file(report);
    std::cerr << "---- rank " << rank << " (" << report << ")\n" << file.rdbuf() << std::flush;
}

} // namespace

int main(int argc, char** argv) {
    const ranktune::comm::mpi::Environment environment;
    ranktune::test::environment = &environment;
    const int rank = environment.rank();
    auto arguments = take_arguments(argc, argv, rank);
    const std::string report =
        arguments[0] + "." + std::to_string(environment.size()) + ".rank" + std::to_string(rank) + ".txt";
    if (rank > 0) arguments.insert(arguments.end(), {"--out", report});
    std::vector<const char*> pointers;
    for (const auto& argument : arguments) pointers.push_back(argument.c_str());

    Catch::Session session;
    int result = session.applyCommandLine(static_cast<int>(pointers.size()), pointers.data());
    if (result == 0) result = session.run();
    if (result != 0 && rank > 0) show(report, rank);
    int worst = result;
    MPI_Allreduce(&result, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return worst;
}
