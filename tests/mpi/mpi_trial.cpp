// SPDX-License-Identifier: Apache-2.0
// A trial that is an MPI program itself, a job of one rank: reports its size once.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const std::string line = "{\"report\": {\"score\": " + std::to_string(size) + "}}\n";
    const char* descriptor = std::getenv("RANKTUNE_FD");
    const bool told = descriptor != nullptr &&
                      write(std::atoi(descriptor), line.data(), line.size()) == static_cast<ssize_t>(line.size());
    MPI_Finalize();
    return told ? 0 : 1;
}
