// SPDX-License-Identifier: Apache-2.0
#include "studydir/open_study.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "study/start.hpp"
#include "studydir/journal_extent.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/resume.hpp"
#include "tuner/rules/limits.hpp"
#include "tuner/state.hpp"

namespace ranktune::studydir {
namespace {

using study::StudyOutcome;
using study::TrialPhase;

std::unique_ptr<tuner::Tuner> from_record_0(storage::FileSystem& files, const std::string& directory) {
    tuner::Regrown grown(directory, trainables::known_algorithms());
    storage::read_journal(files, directory, [&](study::Record&& record) { grown.apply(record); });
    return grown.take();
}

/// Null: the previous start was killed before its first record.
std::unique_ptr<tuner::Tuner> replay(storage::FileSystem& files, const std::string& directory,
                                     const storage::JournalTail& tail, bool& used_snapshot) {
    auto tuner = tuner::resumed(directory, trainables::known_algorithms(), tail.snapshot, tail.records);
    used_snapshot = tail.snapshot && tuner;
    return tuner || !tail.snapshot ? std::move(tuner) : from_record_0(files, directory);
}

/// Refuses to start: a new study would overwrite the old one, file by file.
void refuse_remains(storage::FileSystem& files, const std::string& directory) {
    if (const std::string text = without_journal(files, {directory}); !text.empty()) throw base::UsageError(text);
}

/// Refuses to start: a later start would delete unknown files there as leftovers of killed ranks.
void refuse_foreign(storage::FileSystem& files, const std::string& directory) {
    const std::string name = foreign_entry(files, StudyDirectory{directory});
    if (name.empty()) return;
    throw base::UsageError("'" + directory + "' is not a study directory and not empty (there is '" + name +
                           "'); a new study needs a directory of its own: choose another with -o, such as -o " +
                           study::shell_text({directory + "/study"}));
}

std::string change_text(const study::KeyChange& change) {
    const auto value = [](const std::string& text) { return text.empty() ? std::string("(not there)") : text; };
    const std::string_view key = change.key;
    constexpr std::string_view inputs = "inputs.";
    std::string what(key);
    if (key.starts_with(inputs)) {
        const std::string_view input = key.substr(inputs.size()); // of [data] in quotes
        what = "the file of " +
               (input.starts_with('"') ? std::string(input.substr(1, input.size() - 2))
                                       : "trainable." + std::string(input)) +
               " holds something else";
    }
    return "\n  " + what + "   " + value(change.before) + " -> " + value(change.after);
}

std::string fewer_trials_text(std::size_t created, std::uint32_t before, const study::StudySpec& spec,
                              const std::string& directory, const std::vector<std::string>& command) {
    const std::string number = std::to_string(before);
    return "study.num_trials: " + std::to_string(created) + " trials have been created in '" + directory +
           "' already, so it cannot be " + std::to_string(spec.num_trials) +
           ". To go on with the study as it is: " + study::shell_text(command) +
           "; with its study file: num_trials = " + number + " under [study] there, or study.num_trials=" + number +
           " on the command line";
}

/// Which configuration of the study does not lie in the space, and why; empty: all do.
std::string outside(const tuner::Tuner& tuner, const space::SearchSpace& space) {
    const auto& trials = tuner.state().trials;
    if (space == tuner.spec().space) return {};
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        space::Configuration configuration = trials[i].configuration;
        for (const study::Scheduled& scheduled : tuner.spec().scheduler.schedule) // which may set what is no value
            if (const space::Parameter* parameter = space.find(scheduled.name);
                parameter != nullptr && configuration.contains(scheduled.name))
                configuration.set(scheduled.name, space::decode(parameter->domain, 0.5));
        if (const std::string why = space.why_outside(configuration); !why.empty())
            return "trial " + std::to_string(i) + ": " + why;
    }
    for (const space::Configuration& point : tuner.state().requests.points())
        for (const study::StartProblem& problem : study::start_problems(point, space))
            return "a trial that was added and waits: " + problem.name + ": " + problem.message;
    try {
        static_cast<void>(tuner.state().observations.moved(tuner.spec().space, space));
        return {};
    } catch (const base::UsageError& error) {
        return std::string("a configuration that the searcher knows: ") + error.what();
    }
}

void refuse_changes(storage::FileSystem& files, const OpenedStudy& opened, const study::StudySpec& spec,
                    const std::string& directory) {
    std::string text;
    for (const auto& change : opened.changes)
        if (!change.may_change) text += change_text(change);
    const bool longer = std::ranges::any_of(opened.changes, [&](const study::KeyChange& change) {
        return change.key == "study.max_iterations" && spec.max_iterations > opened.tuner->spec().max_iterations;
    });
    if (const std::string why = outside(*opened.tuner, spec.space); text.empty() && !why.empty()) {
        for (const auto& change : opened.changes)
            if (change.key.starts_with("space.")) text += change_text(change);
        text += "\n[space] can grow, but every configuration so far has to lie in it: " + why;
    }
    if (!text.empty())
        throw base::UsageError(
            "the study in '" + directory + "' began with another study file; nothing was started" + text +
            "\nResults before and after such a change cannot be compared. Undo it, or keep both: "
            "-o ANOTHER_DIRECTORY, or --fresh, which moves the old directory aside" +
            (longer ? ". Longer training for the best three trials: ranktune extend " + study::shell_text({directory}) +
                          " best 3 --max-iterations " + std::to_string(spec.max_iterations)
                    : ""));
    const auto created = opened.tuner->state().trials.size();
    if (spec.num_trials < created)
        throw base::UsageError(fewer_trials_text(created, opened.tuner->spec().num_trials, spec, directory,
                                                 command_that_goes_on(files, {directory}, "ranktune")));
}

bool budget_grew(const study::StudySpec& before, const study::StudySpec& now) {
    return before.time_budget && (!now.time_budget || *now.time_budget > *before.time_budget);
}

/// A changed failure limit applies to finished studies too: all trials are there to be counted.
bool is_judged_otherwise(const tuner::State& state, const study::StudySpec& spec) {
    const bool lacks = tuner::too_many_failed(state, spec.failure) || tuner::ranges_not_begun(state, spec) > 0;
    return state.end_reason == study::Reason::study_complete &&
           lacks != (state.outcome == StudyOutcome::too_many_failures);
}

/// Whether a study that is over has more to do with this study file.
bool goes_on(const tuner::Tuner& tuner, const study::StudySpec& spec) {
    const auto& state = tuner.state();
    // Every trial would end the same way.
    if (state.outcome == study::StudyOutcome::usage) return false;
    const auto* after = state.side.find({study::SideTask::Kind::after, {}});
    const bool is_due =
        !spec.after.command.empty() && (after == nullptr || after->phase != tuner::SideWork::Phase::done);
    const bool has_results =
        state.outcome == study::StudyOutcome::ok || state.outcome == study::StudyOutcome::too_many_failures;
    if (is_due && has_results) return true;
    if (state.end_reason == study::Reason::study_time) return budget_grew(tuner.spec(), spec);
    if (tuner::is_limit(state.end_reason)) return !tuner::limit_reached(state, spec, state.now);
    return spec.num_trials > tuner.spec().num_trials || is_judged_otherwise(state, spec);
}

/// A study file without searcher.type means the searcher that the study began with: the default may have been another
/// one.
study::StudySpec with_its_searcher(const tuner::Tuner& tuner, study::StudySpec spec) {
    if (!spec.searcher.by_default) return spec;
    spec.searcher.algorithm = tuner.spec().searcher.algorithm;
    spec.searcher.options = tuner.spec().searcher.options;
    return spec;
}

/// Lists of numbers have no order in a study that began without one.
study::StudySpec with_its_lists(const tuner::Tuner& tuner, study::StudySpec spec) {
    std::vector<space::Parameter> parameters(spec.space.parameters().begin(), spec.space.parameters().end());
    for (space::Parameter& parameter : parameters) {
        auto* choice = std::get_if<space::Choice>(&parameter.domain);
        const space::Parameter* before = tuner.spec().space.find(parameter.name);
        if (choice == nullptr || before == nullptr || !space::in_order(choice->values)) continue;
        if (before->domain == space::Domain(space::Choice{choice->values, false})) choice->ordered = false;
    }
    spec.space = space::SearchSpace(std::move(parameters), spec.space.rules());
    return spec;
}

/// What users have set while the study ran stays, unless the study file says something new about it.
study::StudySpec with_steering(const tuner::Tuner& tuner, const study::StudySpec& spec) {
    const tuner::State& state = tuner.state();
    std::vector<std::string> kept;
    for (const study::KeyChange& change : study::differences(tuner.spec(), spec)) {
        const std::string* unsteered = state.requests.before(change.key);
        if (unsteered == nullptr || change.before.empty()) continue;
        if (*unsteered == change.after) kept.push_back(change.key + "=" + change.before);
    }
    if (kept.empty()) return spec;
    return study::parse_resolved_study(study::resolved_toml(spec), "the study file",
                                       {{spec.scheduler.algorithm}, {spec.searcher.algorithm}}, kept);
}

std::vector<Interrupted> interrupted_trials(const tuner::State& state) {
    std::vector<Interrupted> found;
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const auto& trial = state.trials[i];
        if (trial.phase != TrialPhase::running) continue;
        const study::Iteration from = trial.checkpoints.empty() ? 0 : trial.checkpoints.back().iteration;
        const study::Iteration reached = std::max(trial.attempt.iteration, from);
        found.push_back({study::TrialId{i}, from, reached - from});
    }
    return found;
}

/// Fills in `ended` and `ended_by`.
void find_end(OpenedStudy& opened) {
    const auto& outcome = opened.outcome;
    const std::string job = opened.journal.job.empty() ? "" : "job " + opened.journal.job + " ";
    const std::string start = std::to_string(opened.journal.incarnation);
    if (!outcome || outcome->start != opened.journal.incarnation) {
        opened.ended = job + "start " + start + " was cut off without a word";
        return;
    }
    std::string time = outcome->time;
    if (const auto dot = time.find('.'); dot != std::string::npos) time = time.substr(0, dot) + "Z";
    opened.ended = job + "start " + start + " ended at " + time + ": " + outcome->reason;
    opened.ended_by = outcome->by;
}

/// Files that [before] may still write: what they hold counts from the first start after its end.
study::StudySpec without_unmade(study::StudySpec spec) {
    if (spec.before.command.empty()) return spec;
    for (study::DataFile& file : spec.data) file.content.clear();
    std::erase_if(spec.trainable.inputs,
                  [](const study::InputFile& input) { return input.option != study::table_option; });
    return spec;
}

} // namespace

bool holds_study(storage::FileSystem& files, const std::string& directory) {
    return storage::has_journal(files, directory) || !trace_of_a_journal(files, StudyDirectory{directory}).empty();
}

OpenedStudy open_study(storage::FileSystem& files, const std::string& directory, const study::StudySpec& spec,
                       const OpenRequest& request) {
    OpenedStudy opened;
    opened.spec = without_unmade(spec);
    opened.resolved = study::resolved_toml(opened.spec);
    if (request.fresh && holds_study(files, directory)) return opened;
    if (!storage::has_journal(files, directory)) {
        refuse_remains(files, directory);
        refuse_foreign(files, directory);
        return opened;
    }
    // An `outcome` that cannot be read must not count as missing: trials would be suspected for it.
    if (const StudyDirectory study{directory}; files.exists(study.outcome_file()))
        opened.outcome = parse_outcome(storage::read_text(files, study.outcome_file()));
    const auto known = known_extents(files, {directory}, opened.outcome);
    const storage::JournalTail tail = storage::read_journal_tail(files, directory, storage::Check::everything);
    if (const auto missing = what_is_missing(known, tail.summary, directory); !missing.empty())
        throw JournalBehind(missing, tail.summary.writer.host);
    opened.journal = tail.summary;
    opened.uuid = tail.summary.uuid;
    opened.incarnation = base::Incarnation{tail.summary.incarnation + 1};
    opened.tuner = replay(files, directory, tail, opened.from_snapshot);
    if (!opened.tuner) return opened; // a segment without a record: the study begins now
    opened.is_new = false;
    const auto& state = opened.tuner->state();
    if (!state.simulation.empty())
        throw base::UsageError("'" + directory +
                               "' holds a simulated study, of which no trial was ever trained: give " +
                               "the study another directory with -o, or --fresh, which moves the simulated one aside");
    opened.spec = with_steering(
        *opened.tuner,
        with_its_lists(*opened.tuner,
                       with_its_searcher(*opened.tuner, state.side.is_prepared() ? spec : without_unmade(spec))));
    opened.resolved = study::resolved_toml(opened.spec);
    opened.changes = study::differences(opened.tuner->spec(), opened.spec);
    refuse_changes(files, opened, opened.spec, directory);
    if (request.errored != OpenRequest::Errored::leave) {
        for (std::uint32_t i = 0; i < state.trials.size(); ++i)
            if (state.trials[i].phase == TrialPhase::failed) opened.reopened.emplace_back(i);
        std::ranges::copy(tuner::tasks_to_repeat(state, opened.spec), std::back_inserter(opened.reopened));
    }
    if (request.errored == OpenRequest::Errored::restart && request.lost)
        std::ranges::copy(request.lost(*opened.tuner), std::back_inserter(opened.reopened));
    opened.finished = tuner::is_over(state) && opened.reopened.empty() && !goes_on(*opened.tuner, opened.spec);
    opened.interrupted = interrupted_trials(state);
    opened.workers_before = static_cast<std::uint32_t>(state.placement.workers().size());
    find_end(opened);
    return opened;
}

study::Record snapshot_of(const tuner::Tuner& tuner) {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    tuner.snapshot(encoder);
    return study::Snapshot{tuner.digest(),
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                           study::resolved_toml(tuner.spec())};
}

std::vector<study::Record> take_up(OpenedStudy& opened, const OpenRequest& request, const std::string& version) {
    tuner::Output out;
    const base::StudyTime now = opened.tuner->state().now;
    if (!opened.changes.empty()) opened.tuner->change(opened.resolved, version, now, out);
    for (const study::TrialId trial : opened.reopened)
        opened.tuner->reopen(trial, request.errored == OpenRequest::Errored::restart, now, out);
    out.records.push_back(snapshot_of(*opened.tuner));
    return std::move(out.records); // the released checkpoints become orphans and are removed with them
}

std::vector<std::string> orphans_of(storage::FileSystem& files, const std::string& directory,
                                    const tuner::State& state) {
    std::set<std::string> kept;
    const auto keep = [&kept](const study::CheckpointRef& checkpoint) {
        for (auto& path : storage::paths_of(checkpoint.path, checkpoint.shards.size())) kept.insert(std::move(path));
    };
    for (const auto& trial : state.trials) {
        for (const auto& checkpoint : trial.checkpoints) keep(checkpoint);
        // A donor that could not read it has released it; the trial that took it over tries, too.
        for (const auto& takeover : tuner::depends_on(trial)) keep(takeover.donor.checkpoint);
    }
    std::vector<std::string> found;
    const std::string all = StudyDirectory{directory}.checkpoints();
    for (const std::string& trial : files.list(all)) {
        if (!is_number(trial)) continue;
        for (const std::string& name : files.list(all + "/" + trial))
            if (storage::is_checkpoint_name(name) && !kept.contains("checkpoints/" + trial + "/" + name))
                found.push_back(all + "/" + trial + "/" + name);
    }
    return found;
}

std::uint64_t remove_orphans(storage::FileSystem& files, const std::string& directory, const tuner::State& state) {
    std::uint64_t removed = 0;
    for (const std::string& path : orphans_of(files, directory, state)) {
        try {
            files.remove_all(path); // a file, or the folder of a program
            ++removed;
        } catch (const base::IoError&) { // it costs space, nothing else
        }
    }
    const std::string all = StudyDirectory{directory}.checkpoints();
    for (const std::string& trial : files.list(all))
        if (is_number(trial)) files.remove_if_empty(all + "/" + trial);
    // Folders of killed programs: no program runs now.
    const std::string attempts = StudyDirectory{directory}.attempts();
    for (const std::string& name : files.list(attempts)) {
        if (!storage::is_checkpoint_name(name)) continue; // attempts have the same names
        try {
            files.remove_all(attempts + "/" + name);
        } catch (const base::IoError&) { // likewise
        }
    }
    return removed;
}

std::string move_aside(storage::FileSystem& files, const std::string& directory) {
    std::string name = storage::free_name(files, directory);
    files.rename(directory, name);
    return name;
}

std::string resolved_file_of(storage::FileSystem& files, const std::string& directory) {
    if (!storage::has_journal(files, directory)) {
        refuse_remains(files, directory);
        throw base::UsageError("'" + directory + "' is a directory without a study in it; give a study file");
    }
    const auto tail = storage::read_journal_tail(files, directory, storage::Check::since_snapshot);
    std::string spec = tail.snapshot ? tail.snapshot->spec : std::string();
    study::Decoder in(tail.records);
    while (!in.empty()) {
        auto record = study::decode_record(in);
        if (auto* created = std::get_if<study::StudyCreated>(&record)) spec = std::move(created->spec);
        if (auto* changed = std::get_if<study::StudyChanged>(&record)) spec = std::move(changed->spec);
        if (auto* steered = std::get_if<study::Steered>(&record); steered != nullptr && !steered->spec.empty())
            spec = std::move(steered->spec);
    }
    if (spec.empty())
        throw base::UsageError("the study in '" + directory + "' never began: give its study file to start it");
    return spec;
}

} // namespace ranktune::studydir
