// SPDX-License-Identifier: Apache-2.0
// replay: rebuilds the state of a study from its journal, and checks that the algorithms decide the same again.

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/checks/missing_records.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/replay/replay.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/simulated.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "tuner/resume.hpp"

namespace ranktune::cli {
namespace {

struct Replayed {
    std::unique_ptr<tuner::Tuner> tuner;
    report::LogicalDigest digest;
    std::uint64_t records = 0;
    bool newest_missing = false; ///< a warning has been printed
};

Replayed replayed(const ReplayArguments& arguments) {
    Replayed study;
    report::require_study(storage::posix_file_system(), arguments.directory);
    tuner::Regrown grown(arguments.directory, trainables::known_algorithms());
    const MissingRecords missing(arguments.directory);
    const auto found =
        storage::read_journal(storage::posix_file_system(), arguments.directory, [&](study::Record&& record) {
            if (arguments.until && study.records >= *arguments.until) return;
            grown.apply(record);
            study.digest.add(record);
            ++study.records;
        });
    study.tuner = grown.take();
    if (!study.tuner) throw base::UsageError("the study in '" + arguments.directory + "' has no record yet");
    study.tuner->check_invariants();
    study.newest_missing = missing.tell(found);
    return study;
}

/// Returns the exit code.
int verify(const ReplayArguments& arguments, const Replayed& study) {
    const auto result = report::verify_journal(storage::posix_file_system(), arguments.directory,
                                               arguments.until.value_or(std::numeric_limits<std::uint64_t>::max()));
    if (!result.difference.empty()) {
        std::cout << report::difference_text(result, study.tuner->state().version, version(), arguments.directory,
                                             detect_terminal().style);
        return 1;
    }
    std::cout << report::verified_text(result);
    if (const auto mark = report::simulated_text(study.tuner->state()); !mark.empty()) std::cout << mark << "\n";
    return study.newest_missing ? 1 : 0;
}

/// Returns the exit code.
int print_schedule(const ReplayArguments& arguments, const Replayed& study) {
    const auto trial = report::trial_named(study.tuner->state(), arguments.schedule, arguments.directory);
    const bool best = arguments.schedule == "best";
    const study::StudySpec spec = best ? report::repeated_best(*study.tuner) : report::repeated(*study.tuner, trial);
    std::cout << fmt::format("# Trains one trial from scratch as trial #{} of the study {} was trained{}.\n",
                             trial.value(), study.tuner->spec().name, best ? " up to its best report" : "");
    if (const auto mark = report::simulated_text(study.tuner->state()); !mark.empty())
        std::cout << "# " << mark << "\n";
    std::cout << study::resolved_toml(spec);
    return study.newest_missing ? 1 : 0;
}

} // namespace

int replay(const ReplayArguments& arguments) {
    const Replayed study = replayed(arguments);
    if (!arguments.schedule.empty()) return print_schedule(arguments, study);
    if (arguments.logical_digest) {
        std::cout << fmt::format("{:016x}\n", study.digest.value());
        if (const auto mark = report::deterministic_text(study.tuner->state()); !mark.empty())
            std::cerr << report::escaped(mark) << "\n";
        return arguments.verify ? verify(arguments, study) : 0;
    }
    if (arguments.verify) return verify(arguments, study);
    const auto& state = study.tuner->state();
    std::cout << fmt::format("{} records, {} reports, start {}; state digest {:016x}\n", study.records, state.reports,
                             state.incarnation.value(), study.tuner->digest());
    std::cout << report::live_table(*study.tuner, {}, detect_terminal().style);
    return 0;
}

} // namespace ranktune::cli
