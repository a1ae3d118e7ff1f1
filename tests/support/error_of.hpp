// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::testing {

/// The message of the `Error` that `act` throws; empty: it throws none.
template <class Error = base::Error, class Act>
[[nodiscard]] std::string error_of(Act&& act) {
    try {
        static_cast<void>(std::forward<Act>(act)());
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

} // namespace ranktune::testing
