// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "scenarios/scenario.hpp"

namespace ranktune::scenarios {
namespace {

using namespace study;

std::string number(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}
std::string id(TrialId trial) { return "#" + std::to_string(trial.value()); }
std::string id(TrialId trial, AttemptId attempt) { return id(trial) + "." + std::to_string(attempt.value()); }
std::string list(const std::vector<Rank>& ranks) {
    std::string text;
    for (const Rank rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank.value());
    return text;
}
std::string verb(const Verdict& v) {
    constexpr const char* names[] = {"go on", "pause", "stop", "stop without a checkpoint", "exploit"};
    const std::string why = describe(v.reason, v.a, v.b);
    return std::string(names[static_cast<int>(v.verb)]) + (why.empty() ? "" : " (" + why + ")");
}
std::string from(const StartFrom& start) {
    if (const auto* checkpoint = std::get_if<CheckpointRef>(&start))
        return "checkpoint at " + std::to_string(checkpoint->iteration);
    if (const auto* donor = std::get_if<Donor>(&start))
        return "the state of " + id(donor->trial) + " at " + std::to_string(donor->checkpoint.iteration);
    return "scratch";
}

struct RecordText {
    std::string operator()(const StudyCreated&) const { return "study created"; }
    std::string operator()(const IncarnationBegan& r) const {
        return "incarnation " + std::to_string(r.incarnation.value()) + " with " + std::to_string(r.workers.size()) +
               " workers";
    }
    std::string operator()(const MetricDefined& r) const {
        return "metric " + std::to_string(r.id.value()) + " is " + r.name;
    }
    std::string operator()(const TrialCreated& r) const {
        return "created " + id(r.trial) + (r.ranks == 1 ? "" : " wants " + std::to_string(r.ranks) + " ranks") +
               (r.bracket == 0 ? "" : " bracket " + std::to_string(r.bracket));
    }
    std::string operator()(const TrialStarted& r) const {
        return "started " + id(r.trial, r.attempt) + " on " + list(r.ranks) + " from " + from(r.from);
    }
    std::string operator()(const Reported& r) const {
        return "reported " + id(r.trial) + " at " + std::to_string(r.iteration) + ": " + verb(r.verdict);
    }
    std::string operator()(const CheckpointCommitted& r) const {
        return "committed " + id(r.trial) + " at " + std::to_string(r.checkpoint.iteration);
    }
    std::string operator()(const CheckpointReleased& r) const {
        return "released " + r.path + (r.stays ? ", its file stays" : "");
    }
    std::string operator()(const AttemptEnded& r) const {
        return "ended " + id(r.trial, r.attempt) + " " + std::string(name(r.outcome)) +
               (r.retry ? ", to be retried" : "") + (r.failure.empty() ? "" : ": " + describe(r.failure));
    }
    std::string operator()(const TrialPromoted& r) const {
        return "promoted " + id(r.trial) + " from " + std::to_string(r.from) + " to " + std::to_string(r.target) +
               (r.reason == Reason::finish_top ? " (finish_top)" : "");
    }
    std::string operator()(const TrialClosed& r) const {
        return "closed " + id(r.trial) + " " + std::string(name(r.phase)) + ": " + describe(r.reason, r.a, r.b) +
               (r.failure.empty() ? "" : " (" + describe(r.failure) + ")");
    }
    std::string operator()(const RankLost& r) const {
        return "lost rank " + std::to_string(r.rank.value()) + (r.guilty ? " by its own fault: " : ": ") + r.why;
    }
    std::string operator()(const DrainBegan& r) const { return "draining: " + r.why; }
    std::string operator()(const StudyEnded& r) const {
        return "study ended, exit " + std::to_string(static_cast<int>(r.outcome)) + ": " + r.message;
    }
    std::string operator()(const Snapshot&) const { return "snapshot"; }
    std::string operator()(const StudyChanged&) const { return "study changed"; }
    std::string operator()(const DeadlineSet& r) const {
        return r.deadline ? "deadline at " + number(base::to_seconds(r.deadline->time_since_epoch())) + " s"
                          : std::string("no deadline");
    }
    std::string operator()(const ReportHeld& r) const {
        return "held " + id(r.trial) + " at " + std::to_string(r.iteration);
    }
    std::string operator()(const TrialReopened& r) const {
        return "reopened " + id(r.trial) + (r.from_scratch ? " from scratch" : "");
    }
    std::string operator()(const JobDied& r) const {
        std::string text = "the job died";
        for (const auto& entry : r.notes)
            text += "; " + id(entry.note.trial, entry.note.attempt) + ": " + describe(entry.note.failure) +
                    (entry.retry ? ", to be retried" : "");
        return text;
    }
    std::string operator()(const HostRetired& r) const {
        std::string text =
            (r.device.empty() ? "host " + r.host : r.device + " of " + r.host) + " is out of service after";
        for (const TrialId trial : r.trials) text += " " + id(trial);
        return text;
    }
    std::string operator()(const YieldAsked& r) const { return "asked to yield: " + id(r.trial); }
    std::string operator()(const Exploited& r) const {
        return "exploited " + id(r.trial) + " at " + std::to_string(r.iteration) + ": " + from(r.donor) + ", " +
               r.configuration.text();
    }
    std::string operator()(const ExploitUndone& r) const {
        const char* why = r.why == StateLoss::evicted ? " for want of room"
                          : r.why == StateLoss::anew  ? " to begin anew"
                                                      : "";
        return "exploit of " + id(r.trial) + " undone" + why;
    }
    std::string operator()(const TicketOpened& r) const {
        return "ticket " + std::to_string(r.ticket) + " sees " + std::to_string(r.seen);
    }
    std::string operator()(const TicketPrepared& r) const {
        return "ticket " + std::to_string(r.ticket) + ": " +
               (r.configuration ? r.configuration->text() : "failed: " + r.why);
    }
    std::string operator()(const Steered& r) const { return r.who + ": " + r.what; }
    std::string operator()(const WarmStarted& r) const {
        return "warm start with " + std::to_string(r.trials.size()) + " earlier trials";
    }
    std::string operator()(const SideStarted& r) const {
        return "started " + describe(r.task) + " on " + std::to_string(r.rank.value());
    }
    std::string operator()(const SideReported& r) const {
        return "reported " + describe(r.task) + " with " + std::to_string(r.metrics.size()) + " metrics";
    }
    std::string operator()(const SideEnded& r) const {
        return "ended " + describe(r.task) + " " + std::string(name(r.outcome)) + (r.retry ? ", to be retried" : "") +
               (r.failure.empty() ? "" : ": " + describe(r.failure));
    }
};

struct CommandText {
    std::string operator()(const StartTrial& c) const {
        return "start " + id(c.trial, c.attempt) + " on " + list(c.ranks) + ", decision at " +
               std::to_string(c.decision_point);
    }
    std::string operator()(const Decide& c) const {
        return "decide " + id(c.trial) + " at " + std::to_string(c.iteration) + ": " + verb(c.verdict) +
               (c.decision_point == 0 ? "" : ", next decision at " + std::to_string(c.decision_point));
    }
    std::string operator()(const Interrupt& c) const {
        return "interrupt " + id(c.trial, c.attempt) + ": " + verb(c.verdict);
    }
    std::string operator()(const Abandon& c) const {
        return "abandon " + id(c.trial, c.attempt) + " on " + list(c.ranks);
    }
    std::string operator()(const DeleteCheckpoint& c) const { return "delete " + c.path; }
    std::string operator()(const Prepare& c) const { return "prepare ticket " + std::to_string(c.ticket); }
    std::string operator()(const EndStudy& c) const {
        return "end, exit " + std::to_string(static_cast<int>(c.outcome));
    }
};

} // namespace

std::string render(const study::Record& record) { return std::visit(RecordText{}, record) + "\n"; }
std::string render(const study::Command& command) { return "> " + std::visit(CommandText{}, command) + "\n"; }

} // namespace ranktune::scenarios
