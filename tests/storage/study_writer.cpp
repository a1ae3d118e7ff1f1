// SPDX-License-Identifier: Apache-2.0
// Writes a study's journal, checkpoints and tables. For tests that read the files or kill the writer meanwhile.
//   study_writer DIR INCARNATION BATCHES
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "journal_fixture.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/results.hpp"

using namespace ranktune;
using namespace ranktune::storage;

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const std::string home = argv[1];
    const auto incarnation = static_cast<std::uint32_t>(std::atoi(argv[2]));
    const auto batches = static_cast<std::uint64_t>(std::atoll(argv[3]));
    try {
        base::NullLog log;
        JournalOptions options = test::options(home, incarnation);
        options.commit_interval = std::chrono::milliseconds(5);
        Journal journal(posix_file_system(), options, log);
        CheckpointStore store(posix_file_system(), home);
        std::vector<float> weights(30000);
        std::iota(weights.begin(), weights.end(), 0.0F);
        std::vector<base::Float16> halves;
        std::vector<base::BFloat16> brains;
        for (std::uint32_t bits = 0; bits < 65'536; ++bits) {
            halves.push_back(base::Float16::from_bits(static_cast<std::uint16_t>(bits)));
            brains.push_back(base::BFloat16::from_bits(static_cast<std::uint16_t>(bits)));
        }
        std::vector<std::int64_t> trials;
        std::vector<double> losses;
        for (std::uint64_t i = 0; i < batches; ++i) {
            journal.append(test::reports(5 * i, 5));
            trials.push_back(static_cast<std::int64_t>(i));
            losses.push_back(1.0 / (1.0 + static_cast<double>(i)));
            if (i % 20 != 0) continue;
            study::MemoryState state;
            state.put<float>("layers.0.weight", weights, {300, 100});
            state.put("every.float16", halves, {256, 256});
            state.put("every.bfloat16", brains, {256, 256});
            static_cast<void>(
                store.save({base::TrialId(0), i, base::Incarnation(incarnation), base::AttemptId(1)}, state));
            using Role = Column::Role;
            Results results{"test", "uuid", "loss", "min", "0", "", {}};
            results.tables.push_back({"reports",
                                      "",
                                      {{"trial", Role::field, "", "", trials},
                                       {"loss", Role::metric, "", "", losses},
                                       {"verdict", Role::field, "", "", std::vector<std::string>(i + 1, "go_on")}}});
            publish_results(posix_file_system(), home + "/metrics.h5", results);
        }
        journal.close();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "study_writer: %s\n", error.what());
        return 1;
    }
    return 0;
}
