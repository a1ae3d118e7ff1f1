// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every rank of the world has to say, on every rank: once, at the start.

#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi/environment.hpp"

namespace ranktune::comm::mpi {

/// The texts of all ranks, by rank. Collective over the world; blocks. Throws MpiError.
[[nodiscard]] std::vector<std::string> gather_texts(const Environment& environment, std::string_view mine);

} // namespace ranktune::comm::mpi
