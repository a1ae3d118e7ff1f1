// SPDX-License-Identifier: Apache-2.0
#include "head/head_observer.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "base/json_text.hpp"
#include "study/constraint.hpp"
#include "studydir/log_file.hpp"

namespace ranktune::head {
namespace {

using base::LogLevel;

std::string decimal(double value, const char* format) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string id_text(base::TrialId id) { return std::to_string(id.value()); }

double busy_percent(const HeadFigures& figures) {
    const double all = figures.training_s + figures.starting_s + figures.idle_s;
    return all > 0.0 ? 100.0 * figures.training_s / all : 0.0;
}

/// Resident memory of this process, in MiB; 0 if unknown.
double resident_mib() {
    std::ifstream file("/proc/self/statm");
    double pages = 0.0;
    double resident = 0.0;
    if (!(file >> pages >> resident)) return 0.0;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0);
}

/// Logs the records that people look for at 2 a.m.; the journal has all of them.
struct RecordLogger {
    base::LogSink& log;
    const tuner::State& state;

    void operator()(const study::AttemptEnded& ended) const {
        if (ended.outcome < study::AttemptOutcome::failed) return;
        const study::TrialPhase phase = state.trial(ended.trial).phase;
        log.write(LogLevel::warning, "attempt",
                  {{"trial", id_text(ended.trial)},
                   {"attempt", std::to_string(ended.attempt.value())},
                   {"outcome", std::string(study::name(ended.outcome))},
                   {"action", ended.retry                                           ? "retry"
                              : ended.outcome == study::AttemptOutcome::unreachable ? "keep"
                              : study::is_final(phase)                              ? "close"
                                                                                    : "none"},
                   {"message", study::describe(ended.failure)}});
    }
    void operator()(const study::TrialClosed& closed) const {
        if (closed.phase != study::TrialPhase::failed) return;
        log.write(LogLevel::warning, "failed",
                  // The line of its last attempt, just above, says why.
                  {{"trial", id_text(closed.trial)}, {"reason", study::describe(closed.reason, closed.a, closed.b)}});
    }
    void operator()(const study::SideEnded& ended) const {
        if (ended.outcome < study::AttemptOutcome::failed) return;
        log.write(LogLevel::warning, "task",
                  {{"task", study::describe(ended.task)},
                   {"outcome", std::string(study::name(ended.outcome))},
                   {"action", ended.retry ? "retry" : "none"},
                   {"message", study::describe(ended.failure)}});
    }
    void operator()(const study::JobDied& died) const {
        log.write(LogLevel::warning, "job-died", {{"notes", std::to_string(died.notes.size())}});
        for (const auto& [note, retry] : died.notes)
            log.write(LogLevel::warning, "crash-note",
                      {{"trial", id_text(note.trial)},
                       {"attempt", std::to_string(note.attempt.value())},
                       {"action", retry ? "retry" : "close"},
                       {"message", study::describe(note.failure)}});
    }
    void operator()(const study::HostRetired& retired) const {
        std::string trials;
        for (const auto trial : retired.trials) trials += (trials.empty() ? "#" : " #") + id_text(trial);
        std::vector<base::LogField> fields{{"host", retired.host}};
        if (!retired.device.empty()) fields.push_back({"gpu", retired.device});
        fields.push_back({"failed_there", trials});
        fields.push_back({"action", "they run elsewhere, uncharged"});
        log.write(LogLevel::warning, retired.device.empty() ? "host-out-of-service" : "gpu-out-of-service", fields);
    }
    void operator()(const study::DrainBegan& drain) const {
        log.write(LogLevel::info, "drain",
                  {{"reason", study::describe(drain.reason, 0, 0)}, {"why", drain.why}, {"new_trials", "off"}});
    }
    void operator()(const study::Steered& steered) const {
        log.write(LogLevel::info, "steered", {{"by", steered.who}, {"what", steered.what}});
    }
    void operator()(const study::StudyEnded& ended) const {
        log.write(LogLevel::info, "ended",
                  {{"exit", std::to_string(static_cast<int>(ended.outcome))},
                   {"why", ended.message.empty() ? study::describe(ended.reason, 0, 0) : ended.message}});
    }
    template <class Other>
    void operator()(const Other&) const {}
};

} // namespace

HeadObserver::HeadObserver(Observer* next, base::LogSink& log, studydir::Publisher& status,
                           const storage::Journal& journal, Answers answers, std::function<void()> tables)
    : Observer(next),
      log_(log),
      status_(status),
      journal_(journal),
      answers_(std::move(answers)),
      tables_(std::move(tables)) {}

void HeadObserver::on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                              const HeadFigures& figures) {
    for (const auto& record : records) std::visit(RecordLogger{log_, tuner.state()}, record);
    if (begins_after(records)) tables_();
    Observer::on_records(tuner, records, figures);
}

void HeadObserver::on_tick(const tuner::Tuner& tuner, const HeadFigures& figures) {
    if (figures.elapsed_s >= next_stat_s_) {
        next_stat_s_ = figures.elapsed_s + 60.0;
        write_stat(tuner, figures);
    }
    if (figures.elapsed_s >= next_status_s_ || tuner.state().ended) {
        next_status_s_ = figures.elapsed_s + 1.0;
        status_.publish(status_json(tuner, figures, journal_.statistics().synced, answers_()));
    }
    Observer::on_tick(tuner, figures);
}

void HeadObserver::write_stat(const tuner::Tuner& tuner, const HeadFigures& figures) {
    const auto& state = tuner.state();
    const auto journal = journal_.statistics();
    const double cpu = figures.elapsed_s > 0.0 ? 100.0 * figures.head_cpu_s / figures.elapsed_s : 0.0;
    log_.write(LogLevel::info, "stat",
               {{"reports", std::to_string(state.reports)},
                {"trials", std::to_string(state.trials.size())},
                {"running", std::to_string(state.in(study::TrialPhase::running))},
                {"busy", decimal(busy_percent(figures), "%.1f%%")},
                {"head_cpu", decimal(cpu, "%.1f%%")},
                {"rss_mib", decimal(resident_mib(), "%.0f")},
                {"journal_mib", decimal(static_cast<double>(journal.bytes) / (1024.0 * 1024.0), "%.1f")},
                {"commit_p99_ms", decimal(journal.commit_p99_ms, "%.1f")},
                {"stale", std::to_string(figures.stale_messages)}});
}

namespace {

std::string answers_json(const std::vector<studydir::AnsweredRequest>& answers) {
    std::string list;
    for (const studydir::AnsweredRequest& each : answers) {
        base::JsonObject object(4);
        object.text("time", each.time).text("who", each.who).text("what", each.what);
        object.boolean("accepted", each.answer.accepted).text("words", each.answer.words);
        list += (list.empty() ? "" : ", ") + object.str();
    }
    return "[" + list + "]";
}

} // namespace

std::string status_json(const tuner::Tuner& tuner, const HeadFigures& figures, std::uint64_t synced,
                        const std::vector<studydir::AnsweredRequest>& answers) {
    const auto& state = tuner.state();
    base::JsonObject phases(2);
    for (const auto phase : {study::TrialPhase::waiting, study::TrialPhase::running, study::TrialPhase::paused,
                             study::TrialPhase::finished, study::TrialPhase::stopped, study::TrialPhase::failed})
        phases.integer(study::name(phase), state.in(phase));
    base::JsonObject object;
    object.integer("schema", 1)
        .text("study", tuner.spec().name)
        .text("uuid", state.uuid)
        .text("time", studydir::wall_time_now())
        .integer("start", state.incarnation.value())
        .integer("records_synced", synced)
        .number("elapsed_s", figures.elapsed_s)
        .boolean("ended", state.ended)
        .boolean("draining", state.draining)
        .text("metric", tuner.spec().objective.metric)
        .text("metrics", study::metrics_text(tuner.spec().objective))
        .text("mode", study::name(tuner.spec().objective.mode))
        .integer("num_trials", tuner.spec().num_trials)
        .integer("trials", state.trials.size())
        .raw("phases", phases.str())
        .integer("reports", state.reports)
        .integer("iterations", state.iterations)
        .number("busy_percent", busy_percent(figures))
        .number("data_wait_s", figures.data_s)
        .number("head_cpu_s", figures.head_cpu_s)
        .integer("checkpoints_missed", figures.checkpoints_missed)
        .integer("checkpoint_fallbacks", figures.fallbacks);
    if (figures.checkpoints_missed > 0) object.text("checkpoint_error", figures.checkpoint_error);
    if (const CopyFigures& copies = figures.copies; copies.nodes > 0) {
        base::JsonObject data(2);
        data.integer("nodes", copies.nodes)
            .integer("bytes", copies.bytes)
            .integer("copied", copies.copied)
            .integer("read", copies.read);
        object.raw("data", data.str());
    }
    if (state.best) {
        const auto& best = state.trial(*state.best);
        base::JsonObject summary(2);
        summary.integer("trial", state.best->value())
            .number("value", best.best)
            .integer("iteration", best.best_iteration);
        object.raw("best", summary.str());
    }
    if (!state.front.trials().empty()) object.integer("front", state.front.trials().size());
    if (!state.best && state.nearest) object.integer("nearest", state.nearest->trial.value());
    if (!state.side.all().empty()) {
        base::JsonObject tasks(2);
        tasks.integer("over", state.side.over())
            .integer("running", state.side.running().size())
            .integer("waiting", state.side.waiting().size());
        object.raw("side_tasks", tasks.str());
    }
    if (!answers.empty()) object.raw("requests", answers_json(answers));
    return object.str() + "\n";
}

} // namespace ranktune::head
