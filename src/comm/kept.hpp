// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that MPI may still read or write after its owner has gone.

#include <cstddef>
#include <memory>

namespace ranktune::comm {

/// MPI forbids cancelling a non-blocking collective, and a request whose peer died never completes: buffers and handles
/// of such operations must live as long as the process. Any thread.
void keep_to_exit(std::shared_ptr<const void> object);

/// How many objects are kept, for tests: only failures should keep any.
[[nodiscard]] std::size_t kept_to_exit();

} // namespace ranktune::comm
