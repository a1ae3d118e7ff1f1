// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transport over MPI point-to-point messages.

#include <memory>

#include "comm/mpi/environment.hpp"
#include "comm/transport/transport.hpp"

namespace ranktune::comm {

/// A transport over a duplicate of the world communicator. Making it is collective over all ranks; so is destroying it
/// while MPI is alive. Must not outlive the environment.
///
/// Messages are received by MPI_Improbe and MPI_Imrecv and sent by MPI_Isend from buffers the transport owns; nothing
/// ever waits. A request whose peer died never completes: it and its buffer are then kept until the process ends. An
/// error of MPI (a peer that the network reports as gone) is treated the same way: liveness is judged by heartbeats,
/// not here.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(const mpi::Environment& environment);

} // namespace ranktune::comm
