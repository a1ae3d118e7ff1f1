// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graveyard: memory that MPI may still read or write after its owner has gone.

#include <cstddef>
#include <memory>

namespace ranktune::comm {

/// MPI forbids cancelling a non-blocking collective, and a request whose peer died never completes: buffers and handles
/// of such operations must live as long as the process. `bury` keeps `remains` until then. Any thread.
void bury(std::shared_ptr<const void> remains);

/// How many objects were buried, for tests: only failures should bury any.
[[nodiscard]] std::size_t buried();

} // namespace ranktune::comm
