// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a study whose trials a loop of the user's asks for and tells: a head in this process, without MPI.

#include "head/run_options.hpp"

namespace ranktune::head {

/// Serves the requests that come in on descriptor `in` (AskSession) until it is closed; answers go to `out`. The first
/// line there is {"ready": ...}, once the study is open. `peer`: the process that asks (LineChannel). `options` lack
/// what this sets: `outside`, `observer`, `on_open`, `on_end`, `on_note`. A `max_concurrent` in them is refused: that
/// of an earlier loop must not be there. Returns the exit code: the study's. Throws base::UsageError with what the
/// study cannot do (refusals), and when it cannot be opened.
int serve_asks(head::RunOptions options, int in, int out, std::uint64_t peer);

} // namespace ranktune::head
