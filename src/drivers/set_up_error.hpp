// SPDX-License-Identifier: Apache-2.0
#pragma once
// SetUpError: ranktune itself could not make what an attempt needs before its program runs.

#include <string>
#include <system_error>

#include "ranktune/base/error.hpp"

namespace ranktune::drivers {

/// A folder, a file, a pipe or a process of ranktune's own: the outcome `unstarted`. No configuration can be the cause.
class SetUpError : public base::Error {
  public:
    using Error::Error;
    SetUpError(const std::string& what, int error)
        : Error(what + ": " + std::error_code(error, std::generic_category()).message()) {}
};

} // namespace ranktune::drivers
