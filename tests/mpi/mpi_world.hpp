// SPDX-License-Identifier: Apache-2.0
#pragma once
// What MPI tests know of the world they run in.

#include "comm/mpi/environment.hpp"

namespace ranktune::test {

/// The environment that main made: valid in every test case.
[[nodiscard]] const comm::mpi::Environment& world();

} // namespace ranktune::test
