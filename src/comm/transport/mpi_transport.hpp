// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transport over MPI point-to-point messages.

#include <memory>

#include "comm/mpi/environment.hpp"
#include "comm/transport/transport.hpp"

namespace ranktune::comm {

/// A transport over a duplicate of the world communicator. Construction is collective over all ranks; so is destruction
/// while MPI is alive. Must not outlive the environment.
///
/// Messages are received by MPI_Improbe and MPI_Imrecv and sent by MPI_Isend from buffers the transport owns; no call
/// waits. A request whose peer died never completes: it and its buffer are kept until the process ends. So is a request
/// with an MPI error (the network reports the peer as gone): heartbeats decide about liveness, not this class.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(const mpi::Environment& environment);

} // namespace ranktune::comm
