// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/error.hpp"

#include <mpi.h>

#include <array>

namespace ranktune::comm::mpi {

static_assert(MPI_SUCCESS == 0);

namespace {

class Category final : public std::error_category {
  public:
    const char* name() const noexcept override { return "MPI"; }

    std::string message(int code) const override {
        int initialized = 0;
        int finalized = 0;
        MPI_Initialized(&initialized);
        MPI_Finalized(&finalized);
        if (initialized && !finalized) {
            std::array<char, MPI_MAX_ERROR_STRING> text{};
            int length = 0;
            if (MPI_Error_string(code, text.data(), &length) == MPI_SUCCESS) {
                return {text.data(), static_cast<std::size_t>(length)};
            }
        }
        return "MPI error " + std::to_string(code);
    }
};

} // namespace

const std::error_category& category() noexcept {
    static const Category instance;
    return instance;
}

MpiError::MpiError(const std::string& call, int code)
    : Error(call + ": " + category().message(code)), code_(code, category()) {}

} // namespace ranktune::comm::mpi
