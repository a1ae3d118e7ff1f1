// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors as std::error_code, and the exception that carries them. (After arbor's mpi_error.hpp.)

#include <string>
#include <system_error>

#include "ranktune/base/error.hpp"

namespace ranktune::comm::mpi {

/// Values are the return codes of MPI functions, texts those of MPI_Error_string (between MPI_Init and MPI_Finalize;
/// the bare number otherwise).
[[nodiscard]] const std::error_category& category() noexcept;

/// An MPI call failed. Its communicator is unusable: poison the group, or leave.
class MpiError : public base::Error {
  public:
    MpiError(const std::string& call, int code);
    [[nodiscard]] std::error_code code() const { return code_; }

  private:
    std::error_code code_;
};

/// Throws MpiError naming `call` unless `code` is MPI_SUCCESS.
inline void check(int code, const char* call) {
    if (code != 0) throw MpiError(call, code);
}

} // namespace ranktune::comm::mpi
