// SPDX-License-Identifier: Apache-2.0
#pragma once
// Captures: what is issued to a stream becomes nodes of a graph instead of running.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "machine.hpp"

namespace stand_in {

/// See enqueue.
struct Operation {
    std::string name;
    std::function<void()> work;
    std::function<void()> issue;
};

struct Capture;
/// An event that was recorded in a capture: which nodes it comes after.
struct CapturedRecord {
    std::shared_ptr<Capture> capture;
    std::vector<std::size_t> after;
};

/// Adds `operation` to the capture of `stream`. Requires that there is one, as record_in_capture does.
void capture(const Stream* stream, Operation operation);
/// Where the captured work of `stream` has got to.
[[nodiscard]] CapturedRecord record_in_capture(const Stream* stream);
/// Later work of `stream` comes after `record`; a stream that is not captured joins the capture. success, or why the
/// capture is broken now.
[[nodiscard]] cudaError_t wait_in_capture(const Stream* stream, const CapturedRecord& record);
/// The capture of `stream` can only be ended from now on. Returns `code`.
cudaError_t break_capture(const Stream* stream, cudaError_t code);
/// For calls that a thread with a capture must not make: breaks it and returns true.
[[nodiscard]] bool forbidden_by_capture();

} // namespace stand_in
