// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/gather.hpp"

#include <mpi.h>

#include "comm/mpi/error.hpp"

namespace ranktune::comm::mpi {

std::vector<std::string> gather_texts(const Environment& environment, std::string_view mine) {
    const auto ranks = static_cast<std::size_t>(environment.size());
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(ranks);
    check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
    std::vector<int> offsets(ranks);
    int all = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
        offsets[r] = all;
        all += lengths[r];
    }
    std::string together(static_cast<std::size_t>(all), '\0');
    check(MPI_Allgatherv(mine.data(), length, MPI_CHAR, together.data(), lengths.data(), offsets.data(), MPI_CHAR,
                         MPI_COMM_WORLD),
          "MPI_Allgatherv");
    std::vector<std::string> texts;
    texts.reserve(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
        texts.push_back(together.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
    return texts;
}

} // namespace ranktune::comm::mpi
