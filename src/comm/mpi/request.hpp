// SPDX-License-Identifier: Apache-2.0
#pragma once
// Request: a move-only MPI_Request.

#include <mpi.h>

#include <utility>

#include "comm/mpi/error.hpp"

namespace ranktune::comm::mpi {

/// A started non-blocking operation. Its buffer must live until `test` has returned true. Destroying an active request
/// drops the handle (MPI cannot cancel or free it safely): the operation continues, so its buffer must be kept to the
/// exit.
class Request {
  public:
    Request() = default;
    Request(Request&& other) noexcept : handle_(std::exchange(other.handle_, MPI_REQUEST_NULL)) {}
    Request& operator=(Request&& other) noexcept {
        handle_ = std::exchange(other.handle_, MPI_REQUEST_NULL);
        return *this;
    }
    ~Request() = default;
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    /// Argument for the call that starts the operation. Requires that none is under way.
    [[nodiscard]] MPI_Request* slot() { return &handle_; }
    /// Drives progress; true when complete (or never started). Throws MpiError.
    [[nodiscard]] bool test() {
        int flag = 0;
        check(MPI_Test(&handle_, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        return flag != 0;
    }
    /// Drives progress; true when complete, or given up by MPI with an error (its peer has died).
    [[nodiscard]] bool ended() noexcept {
        int flag = 0;
        return MPI_Test(&handle_, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
    }

  private:
    MPI_Request handle_ = MPI_REQUEST_NULL;
};

} // namespace ranktune::comm::mpi
