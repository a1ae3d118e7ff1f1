// SPDX-License-Identifier: Apache-2.0
#include "cli/study_summary.hpp"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/checks/missing_records.hpp"
#include "process/program/json_input.hpp"
#include "report/explain/endings.hpp"
#include "report/export/export.hpp"
#include "report/screens/front.hpp"
#include "report/view/side_tasks.hpp"
#include "report/view/wall_time.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

/// What the head knows beyond the journal: the file `status`, which each start writes anew. Empty: it is missing,
/// unreadable, or from another version.
nlohmann::json status_of(const std::string& directory) {
    try {
        auto status = process::read_json(storage::read_text(storage::posix_file_system(),
                                                            studydir::StudyDirectory{directory}.status_file(),
                                                            studydir::most_status_bytes));
        if (status.is_object()) return status;
    } catch (const nlohmann::json::exception&) {
    } catch (const base::Error&) {
    }
    return nlohmann::json::object();
}

void take_figures(const nlohmann::json& status, report::Live& live) {
    try {
        live.checkpoints_missed = status.value("checkpoints_missed", std::uint64_t{0});
        live.checkpoint_error = status.value("checkpoint_error", std::string());
        live.fallbacks = status.value("checkpoint_fallbacks", std::uint64_t{0});
        if (const auto data = status.find("data"); data != status.end())
            live.copies = {data->value("nodes", std::uint32_t{0}), data->value("bytes", std::uint64_t{0}),
                           data->value("copied", std::uint64_t{0}), data->value("read", std::uint64_t{0})};
    } catch (const nlohmann::json::exception&) { // from another version
    }
}

/// "2026-11-20T14:02:13Z ada@login1: pause trial #0: refused, trial #0 is paused by a user already".
std::vector<std::string> answers_in(const nlohmann::json& status) {
    std::vector<std::string> answers;
    try {
        for (const nlohmann::json& each : status.value("requests", nlohmann::json::array())) {
            const std::string who = each.value("who", std::string());
            const std::string words = each.value("words", std::string());
            std::string text = each.value("time", std::string()) + " " + (who.empty() ? "" : who + ": ");
            text += each.value("what", std::string()) + (each.value("accepted", false) ? ": accepted" : ": refused");
            answers.push_back(report::printable(words.empty() ? text : text + ", " + words));
        }
    } catch (const nlohmann::json::exception&) { // from another version
    }
    return answers;
}

/// The Pareto front, from the best to the worst in the first objective.
nlohmann::ordered_json front_json(const tuner::Tuner& tuner) {
    nlohmann::ordered_json front = nlohmann::ordered_json::array();
    const auto goals = tuner.spec().objective.goals();
    for (const study::TrialId id : report::front_of(tuner)) {
        const auto& trial = tuner.state().trial(id);
        nlohmann::ordered_json values = nlohmann::ordered_json::object();
        for (std::size_t i = 0; i < goals.size(); ++i) values[goals[i].metric] = report::objective_value(trial, i);
        const auto* checkpoint = tuner::best_checkpoint(trial, tuner.spec().objective);
        front.push_back({{"trial", id.value()},
                         {"values", values},
                         {"iteration", trial.best_iteration},
                         {"state", study::name(trial.phase)},
                         {"configuration", report::json_of(tuner::best_configuration(trial))},
                         {"checkpoint", checkpoint == nullptr ? nlohmann::ordered_json(nullptr)
                                                              : nlohmann::ordered_json(checkpoint->path)}});
    }
    return front;
}

/// The report that is nearest to the constraints, when none keeps them.
nlohmann::ordered_json nearest_json(const tuner::Tuner& tuner) {
    const tuner::Nearest& nearest = *tuner.state().nearest;
    const auto goals = tuner.spec().objective.goals();
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < goals.size(); ++i) values[goals[i].metric] = nearest.values.at(i);
    const auto& trial = tuner.state().trial(nearest.trial);
    return {{"trial", nearest.trial.value()},
            {"values", values},
            {"iteration", nearest.iteration},
            {"violation", nearest.score.violation},
            {"state", study::name(trial.phase)},
            {"configuration", report::json_of(tuner::configuration_at(trial, nearest.iteration))}};
}

} // namespace

report::LoadedStudy load_state(const std::string& directory) {
    const MissingRecords missing(directory);
    report::LoadedStudy study = report::load_state(storage::posix_file_system(), directory);
    missing.tell(study.journal);
    return study;
}

std::optional<report::LoadedStudy> readable_state(storage::FileSystem& files, const std::string& directory) {
    try {
        return report::load_state(files, directory);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

report::Live live_of(const tuner::Tuner& tuner, const std::string& directory) {
    const tuner::State& state = tuner.state();
    const Standing standing = standing_of(state, directory);
    report::Live live;
    live.directory = directory;
    live.elapsed_s = base::to_seconds(state.now);
    live.deadline = standing.text;
    live.interrupted = standing.interrupted;
    const nlohmann::json status = status_of(directory);
    live.answers = answers_in(status);
    if (state.ended || live.interrupted) return live;
    take_figures(status, live);
    const double now = report::seconds_now();
    live.elapsed_s = std::max(live.elapsed_s, report::study_seconds(state, now).value_or(0.0));
    live.stopping = report::stopping_text(tuner, now);
    return live;
}

nlohmann::ordered_json summary(const report::LoadedStudy& study, const std::string& directory) {
    const auto& state = study.tuner->state();
    const Standing standing = standing_of(state, directory);
    const bool interrupted = standing.interrupted;
    nlohmann::ordered_json root = {{"schema", 1},
                                   {"name", study.tuner->spec().name},
                                   {"ended", state.ended},
                                   {"trials", state.trials.size()},
                                   {"num_trials", study.tuner->spec().num_trials},
                                   {"reports", state.reports},
                                   {"iterations", state.iterations}};
    if (!state.simulation.empty()) root["simulated"] = state.simulation;
    root["exit_code"] =
        state.ended ? nlohmann::ordered_json(static_cast<int>(state.outcome)) : nlohmann::ordered_json(nullptr);
    if (standing.outcome) root["exit_code"] = static_cast<int>(standing.outcome->outcome);
    root["stopping"] =
        state.draining && !state.ended && !interrupted ? nlohmann::ordered_json(state.drain_message) : nullptr;
    for (std::size_t i = 0; i < study::phase_count; ++i) {
        const auto phase = static_cast<study::TrialPhase>(i);
        root["states"][std::string(study::name(phase))] = state.in(phase);
    }
    if (interrupted) { // nobody runs these trials any more
        auto& states = root["states"];
        states["interrupted"] = state.in(study::TrialPhase::running);
        states["running"] = 0;
    }
    if (state.best) {
        const auto& trial = state.trial(*state.best);
        root["best"] = {{"trial", state.best->value()},
                        {"metric", study.tuner->spec().objective.metric},
                        {"value", trial.best},
                        {"iteration", trial.best_iteration},
                        {"state", study::name(trial.phase)}};
        root["best"]["configuration"] = report::json_of(tuner::best_configuration(trial));
        const auto* checkpoint = tuner::best_checkpoint(trial, study.tuner->spec().objective);
        root["best"]["checkpoint"] =
            checkpoint == nullptr ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(checkpoint->path);
        if (const std::string cause = report::unsaved_cause(trial); !cause.empty()) root["best"]["unsaved"] = cause;
        if (checkpoint != nullptr) root["best"]["checkpoint_iteration"] = checkpoint->iteration;
        if (checkpoint != nullptr && checkpoint->value) root["best"]["checkpoint_value"] = *checkpoint->value;
        for (const std::string& metric : report::side_metrics(state))
            if (const auto value = report::side_metric(state, *state.best, metric))
                root["best"]["after_trial"][metric] = report::json_of(space::Value(*value));
    } else {
        root["best"] = nullptr;
        if (state.nearest) root["nearest"] = nearest_json(*study.tuner);
    }
    if (study.tuner->spec().objective.several()) root["front"] = front_json(*study.tuner);
    if (const auto& side = state.side; !side.all().empty())
        root["side_tasks"] = {
            {"over", side.over()}, {"running", side.running().size()}, {"waiting", side.waiting().size()}};
    const nlohmann::json status = status_of(directory);
    if (status.contains("requests")) root["requests"] = status["requests"];
    return root;
}

void print(const nlohmann::ordered_json& json) {
    std::cout << json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

Standing standing_of(const tuner::State& state, const std::string& directory) {
    const char* word = tuner::is_over(state) ? "finished" : "stopped";
    if (state.ended) return {fmt::format("{}, exit {}", word, static_cast<int>(state.outcome)), false, {}};
    auto& files = storage::posix_file_system();
    if (const auto writer = storage::possible_writer(files, directory))
        return {"run by " + describe(*writer), false, {}};
    Standing standing{"not running", true, studydir::read_outcome(files, {directory})};
    if (standing.outcome && standing.outcome->start != state.incarnation.value()) standing.outcome.reset();
    if (standing.outcome) standing.text = fmt::format("stopped, exit {}", static_cast<int>(standing.outcome->outcome));
    return standing;
}

} // namespace ranktune::cli
