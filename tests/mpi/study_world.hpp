// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs whole studies on the ranks of a test's world.

#include <mpi.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "launch/run_study.hpp"
#include "mpi_world.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "storage/journal/journal.hpp"
#include "support/files.hpp"
#include "support/known.hpp"

namespace ranktune::test {

/// The result of a study; `tuner`, `outcome` and `figures` on rank 0 only.
struct StudyResult {
    int code = -1;
    bool same_code = false;              ///< whether all ranks got the same code
    std::unique_ptr<tuner::Tuner> tuner; ///< replayed from the journal; null: no journal
    std::string outcome;                 ///< content of the file `outcome`
    head::HeadFigures figures;
};

/// Collective over the world. The study directory is removed afterwards.
inline StudyResult run_study(const std::string& toml) {
    head::RunOptions options;
    options.version = "test";
    std::string directory = (std::filesystem::temp_directory_path() / "ranktune-mpi-XXXXXX").string();
    StudyResult result;
    const bool head = world().rank() == 0;
    if (head) {
        if (mkdtemp(directory.data()) == nullptr) throw base::Error("mkdtemp");
        options.spec =
            study::parse_study(toml, "/study.toml", {}, ranktune::testing::known(trainables::known_trainables()));
        options.study_text = toml;
        options.directory = directory;
        options.on_end = [&](const head::RunEnd& end) { result.figures = end.figures; };
    }
    result.code = launch::run_study(world(), options);
    int low = 0;
    int high = 0;
    MPI_Allreduce(&result.code, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&result.code, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    result.same_code = low == high;
    if (!head) return result;
    if (storage::has_journal(storage::posix_file_system(), directory)) {
        result.tuner = std::make_unique<tuner::Tuner>(options.spec);
        storage::read_journal(storage::posix_file_system(), directory,
                              [&](study::Record&& record) { result.tuner->apply(record); });
    }
    result.outcome = ranktune::testing::read_file(directory + "/outcome");
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    return result;
}

} // namespace ranktune::test
