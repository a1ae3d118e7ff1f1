// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop of the head: it owns the transport, the clock and the signals.

#include <functional>
#include <optional>
#include <string>

#include "comm/transport/transport.hpp"
#include "head/head_machine.hpp"
#include "process/signals.hpp"
#include "process/wake.hpp"

namespace ranktune::head {

/// A request to end the study.
struct EndAsked {
    study::Asker by = study::Asker::none;
    std::string why = std::string(study::name(by)); ///< in words
    bool at_once = false;
    bool insisted = false;                          ///< somebody asked before and asks again
    study::Reason reason = study::Reason::draining; ///< of an end at once
    study::Asker as = study::Asker::none;           ///< the signal for the same request, which may arrive as well
};

/// Runs the head to its end. The first signal ends the study cleanly; one that insists (StopSequence) ends it at once.
/// A signal that stands for Ctrl-C counts as INT. `signals` may be null. `stopping` is called when a clean stop is
/// requested, and before workers are told to leave at once: from then on a launcher may kill this process at any
/// moment. `asked` and `each_round` (both may be empty) are called in every round and must not block.
[[nodiscard]] HeadEnd serve_head(comm::Transport& transport, HeadMachine& head, const process::ProcessClock& clock,
                                 process::Waker& waker, process::SignalReader* signals, base::LogSink& log,
                                 const std::function<void(const EndAsked& what)>& stopping,
                                 const std::function<std::optional<EndAsked>()>& asked = {},
                                 const std::function<void()>& each_round = {});

} // namespace ranktune::head
