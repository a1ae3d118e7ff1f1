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

/// An end of the study that somebody asks for.
struct EndAsked {
    study::Asker by = study::Asker::none;
    std::string why = std::string(study::name(by)); ///< in words
    bool at_once = false;
    bool insisted = false;                          ///< somebody has asked before, and does so again
    study::Reason reason = study::Reason::draining; ///< of an end at once
    study::Asker as = study::Asker::none;           ///< the signal that says the same, should it come as well
};

/// Runs the head to its end. The first signal ends the study cleanly; one that insists (StopSequence), at once. A
/// signal that stands for Ctrl-C counts as INT.
/// `signals` may be null. `stopping` is called when a clean stop has been asked for, and before workers are
/// told to leave at once: a launcher may kill this process at any moment from then on, without another word. `asked`
/// (may be empty) is called in every round and must not block, like `each_round` (may be empty).
[[nodiscard]] HeadEnd serve_head(comm::Transport& transport, HeadMachine& head, const process::ProcessClock& clock,
                                 process::Waker& waker, process::SignalReader* signals, base::LogSink& log,
                                 const std::function<void(const EndAsked& what)>& stopping,
                                 const std::function<std::optional<EndAsked>()>& asked = {},
                                 const std::function<void()>& each_round = {});

} // namespace ranktune::head
