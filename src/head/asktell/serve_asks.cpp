// SPDX-License-Identifier: Apache-2.0
#include "head/asktell/serve_asks.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "head/asktell/line_channel.hpp"
#include "head/asktell/outside_ranks.hpp"
#include "head/asktell/refusals.hpp"
#include "head/asktell/session.hpp"
#include "head/head_run.hpp"
#include "process/environment.hpp"
#include "process/signals.hpp"
#include "ranktune/base/text.hpp"
#include "studydir/finished_study.hpp"

namespace ranktune::head {
namespace {

using namespace std::chrono_literals;

/// How long the loop waits for input between two looks at stop requests and other files.
constexpr std::chrono::milliseconds patience = 20ms;
/// The same after the end of the study, for signals.
constexpr std::chrono::milliseconds patience_alone = 500ms;

std::string ready_line(const head::RunOptions& options) {
    nlohmann::ordered_json objectives = nlohmann::ordered_json::array();
    for (const auto& goal : options.spec.objective.goals())
        objectives.push_back({{"metric", goal.metric}, {"mode", std::string(name(goal.mode))}});
    const nlohmann::ordered_json facts{{"directory", options.directory},
                                       {"name", options.spec.name},
                                       {"objectives", std::move(objectives)},
                                       {"max_iterations", options.spec.max_iterations}};
    return nlohmann::ordered_json{{"ready", facts}}.dump();
}

/// The requests of the loop, while a head serves and after it.
class Desk {
  public:
    Desk(LineChannel& channel, AskSession& session) : channel_(channel), session_(session) {}

    /// One round of the head's loop.
    void attend(const head::HeadMachine& head) {
        const auto until = std::chrono::steady_clock::now() + patience;
        do {
            session_.tend();
            serve();
            if (channel_.closed() && waiting_.empty()) return leave();
            channel_.wait(waiting_.empty() ? patience : 1ms);
        } while (!head.end() && std::chrono::steady_clock::now() < until);
        serve();
    }

    /// The head is gone: the next signal ends this, too.
    void attend_alone(process::SignalReader& signals) {
        while (signals.poll()) { // they were for the head
        }
        while (serve(), !channel_.closed() && !signals.poll()) channel_.wait(patience_alone);
    }

  private:
    void serve() {
        try {
            while (const auto line = channel_.next()) waiting_.push_back(*line);
        } catch (const base::FormatError& error) {
            channel_.write(nlohmann::ordered_json{{"id", nullptr}, {"error", error.what()}}.dump());
        }
        while (!waiting_.empty()) {
            const auto answer = session_.answer(waiting_.front());
            if (!answer && !channel_.closed()) return; // answers have the order of requests
            waiting_.pop_front();
            if (answer) channel_.write(*answer);
            if (session_.is_closed()) channel_.close();
        }
    }
    void leave() {
        if (!std::exchange(left_, true)) session_.leave();
    }

    LineChannel& channel_;
    AskSession& session_;
    std::deque<std::string> waiting_;
    bool left_ = false;
};

} // namespace

int serve_asks(head::RunOptions options, int in, int out, std::uint64_t peer) {
    LineChannel channel(in, out, peer);
    OutsideRanks ranks(most_at_once, options.version, process::host_name());
    AskSession session(ranks);
    Desk desk(channel, session);
    bool ready = false;
    const auto say_ready = [&] {
        if (!std::exchange(ready, true)) channel.write(ready_line(options));
    };
    std::string why;
    bool failed = false;
    auto outcome = study::StudyOutcome::ok;
    options.observer = &session;
    options.on_note = [](const std::string& note) { std::cerr << note << '\n' << std::flush; };
    options.on_open = [&](const studydir::OpenedStudy& opened, const std::string&) {
        if (opened.finished) say_ready();
        if (!opened.finished || !opened.tuner) return;
        const auto& state = opened.tuner->state();
        why = studydir::end_words(state.end_reason, state.end_message);
    };
    options.outside = [&](head::HeadMachine& head, const tuner::Tuner& tuner, const process::ProcessClock& clock) {
        if (!head.began()) return;
        session.set_head(head, tuner, clock);
        say_ready();
        desk.attend(head);
    };
    options.on_end = [&](const head::RunEnd& end) {
        outcome = end.outcome;
        if (!end.message.empty() || why.empty()) why = end.message;
        failed = end.tuner != nullptr && end.whose == head::HeadEnd::Whose::head && end.by == study::Asker::none;
    };
    if (const auto refused = refusals(options.spec); !refused.empty())
        throw base::UsageError(base::join(refused, "\n"));
    options.spec.max_concurrent = 1; // AskSession raises it
    process::SignalReader signals;
    static_cast<void>(head::run_head(ranks, &signals, options, "none"));
    session.head_is_gone(why.empty() ? studydir::end_words(study::Reason::study_complete, "") : why, failed);
    if (!ready) throw base::UsageError(why);
    desk.attend_alone(signals);
    return static_cast<int>(outcome);
}

} // namespace ranktune::head
