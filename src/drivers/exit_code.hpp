// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exit codes of ranks that are no outcome of a study.

namespace ranktune::drivers {

/// Of a worker that has heard nothing of its head for run.heartbeat_timeout. Above that of a resumable study, because
/// srun ends with the highest code of its tasks: whoever started the step learns that nobody asked for this end.
inline constexpr int head_lost_code = 76;

} // namespace ranktune::drivers
