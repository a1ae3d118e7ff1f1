// SPDX-License-Identifier: Apache-2.0
#include "studydir/extension/extension.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/finished_study.hpp"
#include "studydir/log_file.hpp"
#include "studydir/notes/notes.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {
namespace {

using base::Incarnation;
using base::Iteration;
using base::TrialId;

const study::CheckpointRef* newest_checkpoint(const tuner::Trial& trial) {
    const auto newest = std::ranges::max_element(trial.checkpoints, {}, &study::CheckpointRef::iteration);
    return newest == trial.checkpoints.end() ? nullptr : &*newest;
}

std::string trial_words(TrialId trial) { return "trial #" + std::to_string(trial.value()); }

void require_extendable(const tuner::Tuner& old, const ExtensionRequest& request) {
    if (!old.state().simulation.empty())
        throw base::UsageError("'" + request.from + "' holds a simulated study, whose trials were never trained");
    for (const TrialId trial : request.trials)
        if (old.state().trial(trial).iteration >= request.spec.max_iterations)
            throw base::UsageError(trial_words(trial) + " has trained " +
                                   std::to_string(old.state().trial(trial).iteration) +
                                   " iterations already: give --max-iterations more than that");
}

void copy_whole_file(storage::FileSystem& files, const std::string& from, const std::string& to) {
    const auto source = files.open(from, storage::FileSystem::Open::read);
    files.write_whole(to, [&](storage::File& target) { source->copy_to(target, 0, source->size()); });
    files.set_read_only(to);
}

/// Files of checkpoints never change, so both studies may have one under its name.
void link_or_copy(storage::FileSystem& files, const std::string& from, const std::string& to) {
    try {
        if (files.link(from, to)) return;
    } catch (const base::IoError&) { // another file system, or one without links
    }
    copy_whole_file(files, from, to);
}

/// The checkpoint in the new directory.
study::CheckpointRef taken(storage::FileSystem& files, const ExtensionRequest& request,
                           const study::CheckpointRef& checkpoint, TrialId trial) {
    const storage::CheckpointKey key{trial, checkpoint.iteration, Incarnation{1}, base::AttemptId{1}};
    if (files.kind(request.from + "/" + checkpoint.path) == storage::FileSystem::Kind::directory) {
        storage::CheckpointStore old(files, request.from);
        auto copied = storage::CheckpointStore(files, request.to).adopt(key, old.locate(checkpoint), false);
        copied.value = checkpoint.value;
        return copied;
    }
    study::CheckpointRef copied = checkpoint;
    copied.path = storage::checkpoint_path(key);
    copied.generation = 0;
    files.make_below(request.to, "checkpoints/" + std::to_string(trial.value()));
    const auto from = storage::paths_of(checkpoint.path, checkpoint.shards.size());
    const auto to = storage::paths_of(copied.path, checkpoint.shards.size());
    for (std::size_t i = 0; i < from.size(); ++i)
        link_or_copy(files, request.from + "/" + from[i], request.to + "/" + to[i]);
    return copied;
}

/// The newest report of each iteration of each wanted trial.
using Reports = std::map<TrialId, std::map<Iteration, study::Reported>>;

Reports reports_of(storage::FileSystem& files, const ExtensionRequest& request) {
    Reports reports;
    constexpr auto all = std::numeric_limits<std::uint64_t>::max();
    storage::read_history(files, request.from, all, [&](study::Record&& record, std::uint64_t) {
        const auto* report = std::get_if<study::Reported>(&record);
        if (report == nullptr || std::ranges::find(request.trials, report->trial) == request.trials.end()) return;
        reports[report->trial].insert_or_assign(report->iteration, *report);
    });
    return reports;
}

/// Drives a core as the head of a job would that trained the trials up to where they stand, and was stopped.
class Rehearsed {
  public:
    explicit Rehearsed(const study::StudySpec& spec) : tuner_(spec) {}

    void begin(const std::string& uuid, const std::string& resolved, const std::string& version) {
        const study::StudySpec& spec = tuner_.spec();
        tuner_.create(uuid, resolved, version, out_);
        study::Began began{incarnation_, {}, wall_time_now()};
        std::uint32_t ranks = 0;
        for (const auto& start : spec.searcher.start) ranks += std::max(spec.ranks_for(start), spec.resources.ranks);
        const bool of_two_kinds = spec.resources.gpus == study::GpuUse::some;
        for (std::uint32_t i = 0; i < (of_two_kinds ? 2 * ranks : ranks); ++i) {
            const bool has_gpu = of_two_kinds ? i < ranks : spec.resources.gpus != study::GpuUse::none;
            began.workers.push_back({base::Rank{i + 1}, "earlier", has_gpu ? 1U : 0U});
        }
        step(std::move(began));
    }
    void train(TrialId trial, const std::map<Iteration, study::Reported>& reports, const tuner::State& old,
               const study::CheckpointRef& checkpoint) {
        for (const auto& [iteration, report] : reports) {
            if (iteration > checkpoint.iteration) break;
            std::vector<study::NamedMetric> metrics;
            for (const auto& metric : report.metrics)
                metrics.push_back({old.metrics.at(metric.id.value()), metric.value});
            step(study::ReportArrived{trial, attempt(trial), incarnation_, iteration, report.seconds,
                                      std::move(metrics)});
        }
        step(study::CheckpointSaved{trial, attempt(trial), incarnation_, checkpoint});
    }
    void end(const std::string& why) {
        step(study::StopRequested{why});
        for (std::uint32_t i = 0; i < tuner_.state().trials.size(); ++i)
            if (tuner_.state().trials[i].attempt.live)
                step(study::AttemptOver{
                    TrialId{i}, attempt(TrialId{i}), incarnation_, study::AttemptOutcome::paused, {}});
        if (!tuner_.state().ended) throw std::logic_error("an extension that does not end");
        out_.records.push_back(snapshot_of(tuner_));
    }

    [[nodiscard]] const std::vector<study::Record>& records() const { return out_.records; }
    [[nodiscard]] const tuner::State& state() const { return tuner_.state(); }

  private:
    [[nodiscard]] base::AttemptId attempt(TrialId trial) const { return tuner_.state().trial(trial).attempt.id; }
    void step(study::EventBody body) { tuner_.step({study::StudyTime{}, std::move(body)}, out_); }

    tuner::Tuner tuner_;
    tuner::Output out_;
    Incarnation incarnation_{1};
};

void write_extension(storage::FileSystem& files, const ExtensionRequest& request, const std::string& uuid,
                     const Rehearsed& rehearsed, const std::string& why) {
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = request.to;
    options.uuid = uuid;
    storage::Journal journal(files, options, log);
    journal.append(rehearsed.records());
    journal.close();
    OutcomeFile outcome;
    outcome.outcome = study::StudyOutcome::resumable;
    outcome.reason = why;
    outcome.progress = true;
    outcome.reports = rehearsed.state().reports;
    outcome.time = wall_time_now();
    outcome.cause = EndCause::asked;
    outcome.by = study::Asker::verb;
    outcome.records = rehearsed.records().size();
    publish_text(files, StudyDirectory{request.to}.outcome_file(), outcome_text(outcome), true);
}

/// Both studies say of the trials where the others are.
void link_by_notes(const ExtensionRequest& request, const std::vector<ExtendedTrial>& trials) {
    const std::string who = process::user_at_host();
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        const ExtendedTrial& each = trials[i];
        const std::string here = each.iteration > 0
                                     ? "goes on from iteration " + std::to_string(each.iteration) + " of "
                                     : "begins again what was ";
        append_note(StudyDirectory{request.to}.notes_file(),
                    {wall_time_now(), who, TrialId{i}, here + trial_words(each.was) + " of " + request.from});
        append_note(StudyDirectory{request.from}.notes_file(),
                    {wall_time_now(), who, each.was,
                     "is trained up to iteration " + std::to_string(request.spec.max_iterations) + " as " +
                         trial_words(TrialId{i}) + " of " + request.to});
    }
}

} // namespace

std::vector<ExtendedTrial> extend_study(storage::FileSystem& files, const tuner::Tuner& old,
                                        const ExtensionRequest& request) {
    require_extendable(old, request);
    files.make_directories(request.to);
    if (holds_study(files, request.to))
        throw base::UsageError("'" + request.to + "' holds a study already; choose another directory with -o");
    if (const std::string other = foreign_entry(files, StudyDirectory{request.to}); !other.empty())
        throw base::UsageError("'" + request.to + "' is not empty (there is '" + other +
                               "'); choose another directory with -o");
    const std::string resolved = study::resolved_toml(request.spec);
    const std::string why = "extended from " + request.from;
    const std::string uuid = process::make_uuid();
    // Whole under its name, or not there: a kill leaves a folder that the next try removes.
    ExtensionRequest unfinished = request;
    unfinished.to += ".unfinished";
    files.remove_all(unfinished.to);
    files.make_directories(unfinished.to);
    const StudyDirectory place{unfinished.to};
    create_study_directory(files, place, resolved, true);
    publish_text(files, place.resolved_file(), resolved, false);

    const Reports reports = reports_of(files, request);
    Rehearsed rehearsed(request.spec);
    rehearsed.begin(uuid, resolved, request.version);
    std::vector<ExtendedTrial> trials;
    for (std::uint32_t i = 0; i < request.trials.size(); ++i) {
        const TrialId was = request.trials[i];
        const study::CheckpointRef* checkpoint = newest_checkpoint(old.state().trial(was));
        trials.push_back({was, checkpoint == nullptr ? 0 : checkpoint->iteration});
        if (checkpoint == nullptr) continue;
        const auto own = reports.find(was);
        rehearsed.train(TrialId{i}, own == reports.end() ? std::map<Iteration, study::Reported>() : own->second,
                        old.state(), taken(files, unfinished, *checkpoint, TrialId{i}));
    }
    rehearsed.end(why);
    write_extension(files, unfinished, uuid, rehearsed, why);
    files.rename(unfinished.to, request.to);
    link_by_notes(request, trials);
    return trials;
}

} // namespace ranktune::studydir
