// SPDX-License-Identifier: Apache-2.0
#include "report/load.hpp"

#include "tuner/resume.hpp"

namespace ranktune::report {

void require_study(storage::FileSystem& files, const std::string& directory) {
    if (storage::has_journal(files, directory)) return;
    throw base::UsageError("'" + directory +
                           "' holds no study (no journal in it); give the directory that `ranktune run` made");
}

LoadedStudy load_state(storage::FileSystem& files, const std::string& directory) {
    require_study(files, directory);
    const storage::JournalTail tail = storage::read_journal_tail(files, directory);
    LoadedStudy loaded;
    loaded.journal = tail.summary;
    if (!tail.spec.empty())
        loaded.tuner = tuner::resumed(tail.spec, directory + "/resolved.toml", tail.snapshot, tail.records);
    return loaded.tuner ? std::move(loaded) : load_study(files, directory, false);
}

LoadedStudy load_study(storage::FileSystem& files, const std::string& directory, bool with_reports) {
    require_study(files, directory);
    LoadedStudy loaded;
    tuner::Regrown grown(directory);
    loaded.journal = storage::read_journal(files, directory, [&](study::Record&& record) {
        grown.apply(record);
        if (auto* report = std::get_if<study::Reported>(&record)) {
            if (with_reports) loaded.reports.push_back(std::move(*report));
        } else if (auto* start = std::get_if<study::TrialStarted>(&record)) {
            loaded.starts.push_back(std::move(*start));
            loaded.started_in.push_back(loaded.workers.empty() ? 0 : loaded.workers.size() - 1);
        } else if (auto* began = std::get_if<study::IncarnationBegan>(&record)) {
            loaded.workers.push_back(std::move(began->workers));
            loaded.began.push_back(began->wall_time);
        }
    });
    loaded.tuner = grown.take();
    if (!loaded.tuner) throw base::UsageError("the study in '" + directory + "' has not begun: its journal is empty");
    return loaded;
}

base::TrialId trial_named(const tuner::State& state, const std::string& word, const std::string& directory) {
    if (word == "best") {
        if (!state.best) throw base::UsageError("'" + directory + "' has no best trial yet: none has reported");
        return *state.best;
    }
    const auto number = static_cast<std::uint32_t>(std::stoul(word));
    if (number < state.trials.size()) return base::TrialId{number};
    const std::string there = state.trials.empty()
                                  ? "; it has none yet"
                                  : "; its trials are #0 to #" + std::to_string(state.trials.size() - 1);
    throw base::UsageError("'" + directory + "' has no trial #" + std::to_string(number) + there);
}

} // namespace ranktune::report
