// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one thread of this process that calls HDF5, so that any build of HDF5 works (serial or parallel, thread-safe or
// not).

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace ranktune::storage {

/// Runs `task` on the process's HDF5 thread (started at first use) and waits for it; called on that thread, runs it
/// directly. Rethrows what the task throws. Tasks of several callers run in the order of their calls.
///
/// The rule: a function that calls HDF5 runs its body through this; nothing else does.
void on_hdf5_thread(const std::function<void()>& task);

/// The same for a task that returns something.
template <class F>
auto hdf5_call(F&& body) {
    using Result = decltype(body());
    if constexpr (std::is_void_v<Result>) {
        on_hdf5_thread([&] { body(); });
    } else {
        std::optional<Result> result;
        on_hdf5_thread([&] { result.emplace(body()); });
        return std::move(*result);
    }
}

/// Version of the loaded library: "1.10.8".
[[nodiscard]] std::string hdf5_version();

} // namespace ranktune::storage
