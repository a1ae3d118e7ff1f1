// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the journal of a large study without training, for benchmarks of readers.

#include <chrono>
#include <cstdint>
#include <string>

#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::bench {

inline study::StudySpec spec_of(std::uint32_t trials, std::uint64_t iterations) {
    const std::string text =
        "[study]\nname = \"bench\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = " + std::to_string(trials) +
        "\nmax_iterations = " + std::to_string(iterations) +
        "\nseed = 1\n[trainable]\nname = \"bench\"\n[searcher]\ntype = \"random\"\n[space]\nlr = \"loguniform(1e-4, "
        "1.0)\"\nn = \"randint(1, "
        "1000)\"\n";
    return study::parse_resolved_study(text, "bench.toml", trainables::known_algorithms());
}

inline storage::JournalOptions options_for(const std::string& directory, const tuner::Tuner& tuner,
                                           std::uint32_t start) {
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "00000000-0000-4000-8000-000000000000";
    options.incarnation = start;
    options.snapshot = [&tuner] { return studydir::snapshot_of(tuner); };
    return options;
}

/// With 256 workers; reports arrive in rounds of 256 trials. Hours of a head take seconds here, so the journal is
/// synced by number of reports instead of by the clock.
inline void write_study(const std::string& directory, const study::StudySpec& spec) {
    base::NullLog log;
    tuner::Tuner tuner(spec);
    storage::Journal journal(storage::posix_file_system(), options_for(directory, tuner, 1), log);
    tuner::Output out;
    tuner.create("00000000-0000-4000-8000-000000000000", study::resolved_toml(spec), "bench", out);
    study::Began began{base::Incarnation{1}, {}, "2000-01-01T00:00:00Z"};
    for (std::uint32_t r = 1; r <= 256; ++r) began.workers.push_back({base::Rank{r}, "n" + std::to_string(r / 64), 0});
    base::StudyTime now{};
    constexpr std::uint64_t reports_per_sync = 10'000;
    std::uint64_t reports = 0;
    tuner.step({now, began}, out);
    while (!tuner.state().ended) {
        const auto commands = std::move(out.commands);
        journal.append(out.records);
        out.clear();
        for (const auto& command : commands) {
            const auto* start = std::get_if<study::StartTrial>(&command);
            if (start == nullptr) continue;
            for (base::Iteration i = 1; i <= spec.max_iterations; ++i) {
                now += std::chrono::milliseconds(1);
                const double loss = 1.0 / static_cast<double>(i + start->trial.value() % 97);
                tuner.step({now, study::ReportArrived{start->trial,
                                                      start->attempt,
                                                      start->incarnation,
                                                      i,
                                                      static_cast<double>(i),
                                                      {{"loss", loss}}}},
                           out);
                journal.append(out.records);
                out.records.clear();
                if (++reports % reports_per_sync == 0) journal.sync();
            }
            tuner.step({now,
                        study::AttemptOver{
                            start->trial, start->attempt, start->incarnation, study::AttemptOutcome::stopped, {}}},
                       out);
        }
    }
    journal.append(out.records);
    journal.close();
}

} // namespace ranktune::bench
