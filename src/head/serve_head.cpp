// SPDX-License-Identifier: Apache-2.0
#include "head/serve_head.hpp"

#include <chrono>
#include <vector>

#include "comm/transport/flush.hpp"

namespace ranktune::head {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

/// `as`: the signal that this process received.
void take_signal(EndAsked what, study::Asker as, process::StopStep step, HeadMachine& head,
                 const process::ProcessClock& clock, base::LogSink& log,
                 const std::function<void(const EndAsked& what)>& stopping) {
    const char* action = step == process::StopStep::begin     ? "stop after checkpoints"
                         : step == process::StopStep::at_once ? "stop at once"
                                                              : "stopping already";
    std::vector<base::LogField> fields{{"name", what.why}, {"action", action}};
    if (as != what.by) fields.push_back({"as", std::string(study::name(as))});
    what.insisted = step == process::StopStep::at_once && !what.at_once;
    log.write(base::LogLevel::warning, "signal", fields);
    if (step == process::StopStep::begin || (step == process::StopStep::repeat && is_person(what.by))) {
        head.on_stop_request({what.why, study::Reason::draining, what.by}, clock.now());
        stopping(what);
    } else if (step == process::StopStep::at_once) {
        stopping(what);
        head.on_stop_at_once({what.why, what.reason, what.by}, clock.now());
    }
}

/// When workers left because the head was held up, the launcher ends the other ranks: that is not a request to stop.
std::optional<EndAsked> end_by_launcher(study::Asker signal, const HeadMachine& head) {
    const std::string why = signal == study::Asker::sigterm ? head.desertion() : std::string();
    if (why.empty()) return std::nullopt;
    return EndAsked{.why = why + "; then the launcher ended the run", .at_once = true, .reason = study::Reason::lost};
}

/// What to do for this stop. The launcher may send its signal for the same request: that is no second request.
process::StopStep step_of(const EndAsked& stop, process::StopSequence& stops) {
    const study::Asker asker = stop.as == study::Asker::none ? stop.by : stop.as;
    const bool first = stops.next(asker, Steady::now()) == process::StopStep::begin;
    if (stop.at_once) return process::StopStep::at_once;
    return first ? process::StopStep::begin : process::StopStep::repeat;
}

/// Takes what has arrived, but not more than a round's share. Returns the number of messages.
int take_messages(comm::Transport& transport, HeadMachine& head, const process::ProcessClock& clock) {
    int taken = 0;
    for (; taken < comm::messages_per_round; ++taken) {
        const auto message = transport.poll();
        if (!message) break;
        head.on_message(message->from, message->bytes, clock.now());
    }
    return taken;
}

/// After a pause of the whole process (SIGSTOP), TERM may come from a launcher whose ranks have left. Their messages
/// say so, but MPI takes some rounds to deliver them. So TERM is held back for a moment; only briefly, because mpirun
/// sends KILL a second later.
class AfterPause {
  public:
    void begin_round(Steady::time_point now) {
        if (now - round_ >= 1s) back_ = now;
        round_ = now;
    }
    /// Whether the signal is held back; `due` returns it later.
    [[nodiscard]] bool keeps(study::Asker signal) {
        if (signal != study::Asker::sigterm || (!kept_ && round_ - back_ >= 1s)) return false;
        if (!kept_) kept_ = round_;
        return true;
    }
    [[nodiscard]] std::optional<study::Asker> due(bool explained) {
        if (!kept_ || (!explained && round_ - *kept_ < 250ms)) return std::nullopt;
        kept_.reset();
        back_ = {};
        return study::Asker::sigterm;
    }

  private:
    Steady::time_point round_ = Steady::now();
    Steady::time_point back_{};
    std::optional<Steady::time_point> kept_;
};

} // namespace

HeadEnd serve_head(comm::Transport& transport, HeadMachine& head, const process::ProcessClock& clock,
                   process::Waker& waker, process::SignalReader* signals, base::LogSink& log,
                   const std::function<void(const EndAsked& what)>& stopping,
                   const std::function<std::optional<EndAsked>()>& asked, const std::function<void()>& each_round) {
    process::AdaptiveNap naps(50us, 1000us, 5ms);
    process::StopSequence stops;
    auto awaited = study::Asker::none; ///< the signal of a noted stop, which may still arrive
    Steady::time_point next_cpu{};
    Steady::time_point next_signals{};
    const auto take = [&](study::Asker signal) {
        // However late the launcher delivers the noted signal, it does not count as insisting.
        const bool noted = signal == awaited;
        if (noted) awaited = study::Asker::none;
        const study::Asker meaning = signals->meaning(signal);
        const bool by_keyboard = meaning == study::Asker::keyboard;
        const process::StopStep step =
            noted ? process::StopStep::repeat : stops.next(by_keyboard ? meaning : signal, Steady::now());
        if (const auto end = end_by_launcher(signal, head))
            take_signal(*end, signal, process::StopStep::at_once, head, clock, log, stopping);
        else
            take_signal({meaning}, signal, step, head, clock, log, stopping);
    };
    AfterPause after_pause;
    while (!head.end()) {
        const auto begun = Steady::now();
        after_pause.begin_round(begun);
        const int taken = take_messages(transport, head, clock);
        if (signals != nullptr && begun >= next_signals) { // not in each round: it is a call of the kernel
            next_signals = begun + process::between_signals;
            while (const auto signal = signals->poll())
                if (!after_pause.keeps(*signal)) take(*signal);
        }
        if (const auto signal = after_pause.due(!head.desertion().empty())) take(*signal);
        if (const auto stop = asked ? asked() : std::nullopt) {
            awaited = stop->as;
            take_signal(*stop, stop->by, step_of(*stop, stops), head, clock, log, stopping);
        }
        if (each_round) each_round();
        if (const auto now = Steady::now(); now >= next_cpu) {
            next_cpu = now + 100ms;
            head.set_head_cpu(process::process_cpu_seconds());
        }
        head.on_tick(clock.now());
        const auto now = Steady::now();
        if (taken > 0) naps.busy(now);
        // A message that comes now ends the nap, if it rings.
        const bool quiet = taken < comm::messages_per_round && transport.is_quiet();
        if (taken == 0 || quiet)
            waker.nap(process::nap_until(head.wake_at(), clock.now(), naps.next(now, quiet)),
                      signals != nullptr ? signals->fd() : -1, transport.bell());
    }
    comm::flush_transport(transport, waker);
    return *head.end();
}

} // namespace ranktune::head
