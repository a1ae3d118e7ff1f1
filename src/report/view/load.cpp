// SPDX-License-Identifier: Apache-2.0
#include "report/view/load.hpp"

#include <limits>

#include "ranktune/trainables/algorithms.hpp"
#include "studydir/study_directory.hpp"
#include "tuner/resume.hpp"

namespace ranktune::report {

void require_study(storage::FileSystem& files, const std::string& directory) {
    if (storage::has_journal(files, directory)) return;
    if (!files.exists(directory))
        throw base::UsageError("there is no directory '" + directory +
                               "'; give the directory that `ranktune run` made (ranktune ls FOLDER lists those of a "
                               "folder)");
    if (const std::string gone = studydir::without_journal(files, {directory}); !gone.empty())
        throw base::UsageError(gone);
    throw base::UsageError("'" + directory +
                           "' holds no study (no journal in it); give the directory that `ranktune run` made");
}

LoadedStudy load_state(storage::FileSystem& files, const std::string& directory) {
    require_study(files, directory);
    const auto tail = storage::read_journal_tail(files, directory, storage::Check::since_snapshot);
    LoadedStudy loaded;
    loaded.journal = tail.summary;
    loaded.tuner = tuner::resumed(directory, trainables::known_algorithms(), tail.snapshot, tail.records);
    return loaded.tuner ? std::move(loaded) : load_study(files, directory);
}

void LoadedStudy::add(const study::Record& record, std::uint64_t number) {
    origins.add(record, number);
    if (const auto* start = std::get_if<study::TrialStarted>(&record)) {
        const auto* checkpoint = study::checkpoint_of(start->from);
        const auto* donor = std::get_if<study::Donor>(&start->from);
        starts.push_back(
            {start->trial, start->attempt, number, static_cast<std::uint32_t>(workers.empty() ? 0 : workers.size() - 1),
             static_cast<std::uint32_t>(start->ranks.size()), ranks.size(), start->at,
             checkpoint == nullptr ? 0 : checkpoint->iteration, donor == nullptr ? start->trial : donor->trial});
        ranks.insert(ranks.end(), start->ranks.begin(), start->ranks.end());
    } else if (const auto* begins = std::get_if<study::IncarnationBegan>(&record)) {
        workers.push_back(begins->workers);
        began.push_back(begins->wall_time);
    }
}

LoadedStudy load_study(storage::FileSystem& files, const std::string& directory, History* history) {
    require_study(files, directory);
    LoadedStudy loaded;
    tuner::Regrown grown(directory, trainables::known_algorithms());
    constexpr auto all = std::numeric_limits<std::uint64_t>::max();
    loaded.journal = storage::read_history(files, directory, all, [&](study::Record&& record, std::uint64_t number) {
        grown.apply(record);
        loaded.add(record, number);
        if (history != nullptr) history->add(record, number, grown.tuner());
    });
    loaded.tuner = grown.take();
    loaded.notes = studydir::Notes::read(files, {directory});
    if (!loaded.tuner) throw base::UsageError("the study in '" + directory + "' has not begun: its journal is empty");
    return loaded;
}

study::SuggestionBasis basis_of(storage::FileSystem& files, const std::string& directory, study::TrialId trial) {
    study::SuggestionBasis basis;
    tuner::Regrown grown(directory, trainables::known_algorithms());
    bool found = false;
    constexpr auto all = std::numeric_limits<std::uint64_t>::max();
    static_cast<void>(storage::read_history(files, directory, all, [&](study::Record&& record, std::uint64_t) {
        if (found) return;
        const auto* created = std::get_if<study::TrialCreated>(&record);
        found = created != nullptr && created->trial == trial;
        if (found && created->origin.kind == study::Origin::Kind::searcher)
            basis = grown.tuner().basis_of(created->origin);
        else
            grown.apply(record);
    }));
    return basis;
}

void read_reports(storage::FileSystem& files, const std::string& directory, std::uint64_t records,
                  const std::function<void(const study::Reported&)>& visit) {
    storage::read_history(files, directory, records, [&](study::Record&& record, auto) {
        if (const auto* report = std::get_if<study::Reported>(&record)) visit(*report);
    });
}

base::TrialId trial_named(const tuner::State& state, const std::string& word, const std::string& directory) {
    if (word == "best") {
        if (!state.best)
            throw NoResult("'" + directory + "' has no best trial" + (tuner::is_over(state) ? "" : " yet") +
                           ": none has reported a finite value that is compared; `ranktune status " + directory +
                           "` shows what there is");
        return *state.best;
    }
    const auto number = static_cast<std::uint32_t>(std::stoul(word.starts_with('#') ? word.substr(1) : word));
    if (number < state.trials.size()) return base::TrialId{number};
    const std::string there = state.trials.empty()
                                  ? "; it has none yet"
                                  : "; its trials are #0 to #" + std::to_string(state.trials.size() - 1);
    throw base::UsageError("'" + directory + "' has no trial #" + std::to_string(number) + there);
}

} // namespace ranktune::report
