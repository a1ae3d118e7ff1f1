// SPDX-License-Identifier: Apache-2.0
#pragma once
// DisturbedError: how an attempt ends that failed for a cause outside of its trial.

#include "ranktune/base/error.hpp"

namespace ranktune::drivers {

/// A time-out, a program that was killed: the outcome `disturbed`.
class DisturbedError : public base::Error {
  public:
    using Error::Error;
};

} // namespace ranktune::drivers
