// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study of several lives: simulated jobs, of which each but the last one is cut off.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "simulate/cluster/cluster.hpp"
#include "simulate/cluster/memory_journal.hpp"

namespace ranktune::simulate {

using Make = std::function<std::unique_ptr<tuner::Tuner>()>;

/// Lives of one study, all but the last cut off by the death of the head, each beginning with what the journal says.
struct Lives {
    MemoryJournal journal;
    std::set<std::string> files;
    std::vector<std::string> problems;
    study::StudyOutcome outcome = study::StudyOutcome::resumable;
    std::unique_ptr<tuner::Tuner> tuner;

    void run(const Make& make, ClusterOptions options, const std::vector<base::Duration>& deaths) {
        tuner = make();
        tuner::Output created;
        tuner->create("00000000-0000-4000-8000-000000000000", "", "sim", created);
        journal.append(created.records);
        const auto of_workers = options.deaths; // in every life
        for (std::uint32_t life = 0; life <= deaths.size(); ++life) {
            options.incarnation = base::Incarnation{life + 1};
            options.deaths = of_workers;
            if (life < deaths.size()) options.deaths.emplace_back(base::head_rank, deaths[life]);
            const ClusterResult result = run_cluster(options, *tuner, journal, files);
            problems.insert(problems.end(), result.problems.begin(), result.problems.end());
            if (result.head) outcome = result.head->outcome;
            check_replay(make);
            if (result.head && outcome != study::StudyOutcome::resumable) return;
        }
    }

    /// From the records, and from a snapshot in the middle of them.
    void check_replay(const Make& make) {
        auto replayed = make();
        std::vector<study::Record> records;
        journal.for_each([&](const study::Record& record) { records.push_back(record); });
        std::unique_ptr<tuner::Tuner> restored;
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (i == records.size() / 2) {
                study::Bytes bytes;
                study::Encoder out(bytes);
                replayed->snapshot(out);
                restored = make();
                study::Decoder in(bytes);
                restored->restore(in);
            }
            replayed->apply(records[i]);
            if (restored) restored->apply(records[i]);
        }
        replayed->check_invariants();
        if (replayed->digest() != tuner->digest()) problems.emplace_back("a replay gives another state");
        if (restored && restored->digest() != tuner->digest()) problems.emplace_back("a snapshot gives another state");
        tuner = std::move(replayed);
    }

    template <class T>
    [[nodiscard]] std::vector<T> all() const {
        std::vector<T> found;
        journal.for_each([&](const study::Record& record) {
            if (const auto* one = std::get_if<T>(&record)) found.push_back(*one);
        });
        return found;
    }
};

} // namespace ranktune::simulate
