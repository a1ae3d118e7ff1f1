// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "journal_by_hand.hpp"
#include "report/screens/screens.hpp"
#include "report/view/load.hpp"
#include "storage/journal/journal.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace load_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::rising;
using ranktune::report::testing::small_study;
using ranktune::report::testing::StudyByHand;
using ranktune::report::testing::TemporaryDirectory;
using ranktune::report::testing::write_journal;

TEST_CASE("a study read back from its journal is the study that was written", "[report]") {
    const TemporaryDirectory directory;
    StudyByHand study(small_study(3));
    study.began(2);
    study.play_out(rising);
    REQUIRE(study.tuner.state().ended);
    write_journal(directory.path(), study.records);

    auto& files = storage::posix_file_system();
    const LoadedStudy loaded = load_study(files, directory.path());
    CHECK(loaded.tuner->digest() == study.tuner.digest());
    std::uint64_t reports = 0;
    read_reports(files, directory.path(), loaded.journal.records, [&](const study::Reported&) { ++reports; });
    CHECK(reports == study.tuner.state().reports);
    read_reports(files, directory.path(), 0, [&](const study::Reported&) { FAIL("behind what was read before"); });
    CHECK(loaded.journal.records == study.records.size());
    CHECK(loaded.journal.cut_bytes == 0);
    CHECK(loaded.starts.size() >= study.tuner.state().trials.size());
    REQUIRE(loaded.workers.size() == 1);
    CHECK(loaded.workers[0].size() == 2);
    CHECK(loaded.began == std::vector<std::string>{"2026-11-20T14:02:11Z"});
    CHECK(live_table(*loaded.tuner, {}, {}) == live_table(study.tuner, {}, {}));
    CHECK(load_state(files, directory.path()).tuner->digest() == study.tuner.digest());
}

TEST_CASE("the state is read from the newest snapshot on, and from the beginning when that is of another version",
          "[report]") {
    StudyByHand study(small_study(3));
    study.began(2);
    study.train(0, 1, 0.5);
    auto& files = storage::posix_file_system();
    study::Bytes state;
    study::Encoder encoder(state);
    study.tuner.snapshot(encoder);
    for (const bool good : {true, false}) {
        const TemporaryDirectory directory;
        auto records = study.records;
        study::Snapshot snapshot{study.tuner.digest(),
                                 {reinterpret_cast<const char*>(state.data()), state.size()},
                                 study::resolved_toml(study.tuner.spec())};
        if (!good) snapshot.state[0] = '\x7f';
        records.emplace_back(snapshot);
        write_journal(directory.path(), records);
        const auto loaded = load_state(files, directory.path());
        CHECK(loaded.tuner->digest() == study.tuner.digest());
        CHECK(loaded.journal.records == records.size());
    }
}

TEST_CASE("a directory without a study is refused in words", "[report]") {
    const TemporaryDirectory directory;
    try {
        (void)load_study(storage::posix_file_system(), directory.path());
        FAIL("accepted");
    } catch (const base::UsageError& error) {
        CHECK(std::string(error.what()).find("holds no study") != std::string::npos);
        CHECK(std::string(error.what()).find(directory.path()) != std::string::npos);
    }
}

TEST_CASE("a study that has not begun is refused in words", "[report]") {
    const TemporaryDirectory directory;
    write_journal(directory.path(), {});
    CHECK_THROWS_AS(load_study(storage::posix_file_system(), directory.path()), base::UsageError);
}

TEST_CASE("a journal that does not begin with its study is damaged", "[report]") {
    const TemporaryDirectory directory;
    StudyByHand study(small_study(3));
    study.began(1);
    write_journal(directory.path(), {study.records.begin() + 1, study.records.end()});
    CHECK_THROWS_AS(load_study(storage::posix_file_system(), directory.path()), base::FormatError);
}

} // namespace load_test
