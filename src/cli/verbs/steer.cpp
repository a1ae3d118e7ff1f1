// SPDX-License-Identifier: Apache-2.0
// pause, resume, cancel, add, set: requests to a running study, through files in its directory.

#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cli/study_input.hpp"
#include "cli/verbs/verbs.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/control.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::cli {
namespace {

using namespace std::chrono_literals;

/// The head looks once a second, and answers after its next sync.
constexpr auto answer_patience = 15s;
constexpr auto answer_pause = 50ms;

/// The space changes at starts only.
study::StudySpec spec_of(storage::FileSystem& files, const std::string& directory) {
    return study::parse_resolved_study(studydir::resolved_file_of(files, directory), directory + "/resolved.toml",
                                       trainables::known_algorithms());
}

/// Empty: it is not finished.
std::string finished_text(storage::FileSystem& files, const std::string& directory) {
    const auto outcome = studydir::read_outcome(files, {directory});
    if (!outcome || outcome->cause != studydir::EndCause::over) return {};
    return "the study in '" + directory + "' is finished. More trials: " + report::going_on(directory) +
           " study.num_trials=N";
}

bool is_run(storage::FileSystem& files, const std::string& directory) {
    const auto holder = storage::read_lease(files, directory);
    if (!holder) return false;
    const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
    return storage::judge(*holder, me, storage::process_start) != storage::LeaseState::stale;
}

/// Where no head runs that would answer. Throws base::UsageError.
void refuse_settings(storage::FileSystem& files, const std::string& directory,
                     const std::vector<std::string>& settings) {
    const std::string text = studydir::resolved_file_of(files, directory);
    const study::StudySpec spec =
        study::parse_resolved_study(text, "the request", trainables::known_algorithms(), settings);
    for (const std::string& setting : settings) {
        const std::string key = study::key_of(setting);
        if (study::may_be_set(key)) continue;
        if (study::may_change_later(key, spec))
            throw base::UsageError(key + " changes with the next start: " + report::going_on(directory, {setting}));
        throw base::UsageError(key +
                               " cannot change in a study that has begun, because results depend on it; another study "
                               "can have it: ranktune run STUDY_FILE " +
                               study::shell_text({setting}) + " -o DIRECTORY");
    }
}

/// What the user said, once more: in a study file a setting lasts.
std::string remark_of(const study::Steering& ask) {
    if (ask.verb != study::SteerVerb::set) return {};
    return "the study keeps it, also after a restart; a study file with another value overrules it\n";
}

std::string wait_for_answer(storage::FileSystem& files, const std::string& directory, const std::string& name,
                            const study::Steering& ask) {
    for (const auto until = std::chrono::steady_clock::now() + answer_patience;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(answer_pause)) {
        const auto answer = studydir::take_answer(files, {directory}, name);
        if (!answer) continue;
        if (!answer->accepted) throw base::UsageError(study::describe(ask) + ": refused, " + answer->words);
        return report::escaped("accepted  " + answer->words) + "\n" + remark_of(ask);
    }
    return fmt::format(
        "asked, but the head has not answered within {} s: it may be starting or ending, or its file "
        "system is slow. The request stays, and takes effect once; what happened: ranktune status {}\n",
        answer_patience.count(), report::escaped(study::shell_text({directory})));
}

} // namespace

std::string ask_of_head(const SteerArguments& arguments) {
    auto& files = storage::posix_file_system();
    const std::string& directory = arguments.directory;
    report::require_study(files, directory);
    if (std::string why = finished_text(files, directory); !why.empty()) throw base::UsageError(why);
    study::SteeringFile request{process::user_at_host(), {}};
    study::Steering& ask = request.ask;
    ask.request = studydir::random_request();
    ask.verb = arguments.verb;
    ask.settings = arguments.settings;
    if (!arguments.trial.empty()) ask.trial = base::TrialId{static_cast<std::uint32_t>(std::stoul(arguments.trial))};
    const bool runs = is_run(files, directory);
    if (ask.verb == study::SteerVerb::set && !runs) refuse_settings(files, directory, ask.settings);
    if (ask.verb == study::SteerVerb::add) {
        const study::StudySpec spec = spec_of(files, directory);
        if (!arguments.csv.empty())
            ask.points = study::parse_points_csv(text_of(arguments.csv, "add: cannot read the table"), arguments.csv,
                                                 spec.space);
        else
            ask.points.push_back(study::parse_point(arguments.settings, spec.space));
        ask.settings.clear();
    }
    const std::string name = studydir::ask_of_study(files, {directory}, request);
    if (runs) return wait_for_answer(files, directory, name, ask);
    return report::escaped("noted     " + study::describe(ask)) +
           "\nnothing runs there now: it takes effect when the study goes on: " +
           report::escaped(report::going_on(directory)) + "\n";
}

int steer(const SteerArguments& arguments) {
    std::cout << ask_of_head(arguments);
    return 0;
}

std::string why_not_steered(const std::string& directory) {
    auto& files = storage::posix_file_system();
    if (!files.is_own(directory)) return "only the owner of a study may steer it";
    return finished_text(files, directory);
}

} // namespace ranktune::cli
