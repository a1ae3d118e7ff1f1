// SPDX-License-Identifier: Apache-2.0
#include "studydir/last_end.hpp"

#include "process/environment.hpp"
#include "studydir/crash_note.hpp"

namespace ranktune::studydir {

std::string_view name(ToldEnd end) { return end == ToldEnd::crash ? "crash" : "outside"; }

std::optional<ToldEnd> told_end() {
    const std::string word = process::environment_variable(last_end_variable);
    for (const ToldEnd end : {ToldEnd::crash, ToldEnd::outside})
        if (word == name(end)) return end;
    return std::nullopt;
}

std::optional<study::JobDeath> death_of_job(const LastEnd& end) {
    if (!end.trials_ran) return std::nullopt;
    if (!end.notes.empty()) return study::JobDeath{end.notes};
    // Whose fault that was is unknown: a trial that runs at a second death is tried alone.
    if (!end.sick.empty()) return study::JobDeath{};
    if (end.told == ToldEnd::outside) return std::nullopt;
    // mpirun stops the head when another rank has died: the launcher's exit code outweighs `outcome`.
    if (end.told == ToldEnd::crash) return study::JobDeath{};
    if (end.requeued) return std::nullopt; // preempted or node failure: Slurm does not requeue a job that crashed
    if (!end.outcome) return study::JobDeath{};
    switch (end.outcome->cause) {
        case EndCause::asked:
        case EndCause::storage:
        case EndCause::stalled:
            return std::nullopt;
        default:
            return study::JobDeath{};
    }
}

LastEnd last_end(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened) {
    LastEnd end;
    if (opened.is_new) return end;
    const auto& state = opened.tuner->state();
    end.trials_ran = !state.ended && state.trials.live_attempts() > 0;
    end.told = told_end();
    end.requeued =
        opened.journal.job == process::slurm_job() && process::slurm_restart_count() > opened.journal.restart_count;
    end.outcome = opened.outcome;
    // A start that failed before it began (a full disk) has no trials and no outcome.
    const std::uint32_t ran = state.incarnation.value();
    if (end.outcome && end.outcome->start < ran) end.outcome.reset(); // of an earlier start
    CrashNotes left = read_crash_notes(files, directory, ran);
    end.notes = std::move(left.trial);
    end.sick = std::move(left.device);
    return end;
}

} // namespace ranktune::studydir
