// SPDX-License-Identifier: Apache-2.0
// Verification by replay, and the digest of the results of a study.
#include "report/replay/replay.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "journal_by_hand.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace replay_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::rising;
using ranktune::report::testing::small_study;
using ranktune::report::testing::StudyByHand;
using ranktune::report::testing::TemporaryDirectory;
using ranktune::report::testing::write_journal;

namespace {

StudyByHand played(std::uint32_t workers) {
    StudyByHand study(small_study(9));
    study.began(workers);
    study.play_out(rising);
    return study;
}

Verification verify(const std::vector<study::Record>& records, std::uint64_t until = 1000000) {
    const TemporaryDirectory directory;
    write_journal(directory.path(), records);
    return verify_journal(storage::posix_file_system(), directory.path(), until);
}

template <class T>
T& first(std::vector<study::Record>& records, std::size_t& at) {
    for (at = 0; at < records.size(); ++at)
        if (auto* found = std::get_if<T>(&records[at])) return *found;
    throw std::runtime_error("there is no such record");
}

std::uint64_t digest(const std::vector<study::Record>& records) {
    LogicalDigest digest;
    for (const auto& record : records) digest.add(record);
    return digest.value();
}

} // namespace

TEST_CASE("A journal is verified when every decision is made again", "[report]") {
    const auto study = played(2);
    const auto result = verify(study.records);
    CHECK(result.difference.empty());
    CHECK(result.records == study.records.size());
    CHECK(result.decisions > study.tuner.state().reports);
    for (std::uint64_t until = 0; until < study.records.size(); ++until) {
        const auto part = verify(study.records, until);
        CHECK(part.difference.empty());
        CHECK(part.records == until);
    }
}

TEST_CASE("A decision that the algorithm would not make is found, with its record", "[report]") {
    std::size_t at = 0;
    auto records = played(2).records;
    first<study::Reported>(records, at).verdict = {study::Verb::go_on, study::Reason::in_top, 1.0, 1.0};
    auto result = verify(records);
    CHECK(result.difference_at == at);
    CHECK(result.difference.find("recorded Reported #0 at 1: go on") == 0);
    CHECK(result.difference.find("decided again: Reported #0 at 1: pause") != std::string::npos);

    records = played(2).records;
    first<study::TrialCreated>(records, at).configuration.set("lr", space::Value(0.25));
    result = verify(records);
    CHECK(result.difference_at == at);

    records = played(2).records;
    first<study::TrialStarted>(records, at);
    records.erase(records.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK_FALSE(verify(records).difference.empty());
}

TEST_CASE("A difference says what it means for the study, and what to do", "[report]") {
    Verification found;
    found.difference = "recorded #0 at 1: go on, decided again: #0 at 1: pause";
    found.difference_at = 1234;
    CHECK(difference_text(found, "0.1.0 (a)", "0.2.0 (b)", "my study", Style{}) ==
          "record 1,234 differs: recorded #0 at 1: go on, decided again: #0 at 1: pause\n"
          "meaning   This version (0.2.0 (b)) decides otherwise than 0.1.0 (a), which\n"
          "          created the study, or the journal was changed. What was recorded\n"
          "          counts all the same: status, export and the next start follow it and\n"
          "          decide none of it again, so the study is readable and can be resumed\n"
          "next      verify it with the version that wrote these records (logs/*.env.json\n"
          "          name that of each start); when it differs there too, report it with\n"
          "          what this packs:\n"
          "          ranktune support 'my study'\n");
    const std::string same = difference_text(found, "0.2.0 (b)", "0.2.0 (b)", "tiny", Style{});
    CHECK(same.find("This version (0.2.0 (b)) created the study, and decides otherwise now") != std::string::npos);
    CHECK(same.ends_with("next      report it, with what this packs:\n          ranktune support tiny\n"));
}

TEST_CASE("A snapshot of another version is no difference", "[report]") {
    auto study = played(2);
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    study.tuner.snapshot(encoder);
    const std::string state(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    study.records.emplace_back(study::Snapshot{study.tuner.digest(), state, "spec"});
    CHECK(verify(study.records).snapshots == 1);
    std::get<study::Snapshot>(study.records.back()).state.front() = 1;
    const auto result = verify(study.records);
    CHECK((result.difference.empty() && result.snapshots == 0 && result.foreign == 1));
}

TEST_CASE("A suggestion may differ in its last bit", "[report]") {
    std::size_t at = 0;
    auto records = played(2).records;
    auto& configuration = first<study::TrialCreated>(records, at).configuration;
    const double lr = configuration.at("lr").as_double();
    configuration.set("lr", space::Value(std::nextafter(lr, 1.0)));
    const auto result = verify(records);
    CHECK(result.difference.empty());
    CHECK(result.rounded == 1);
    configuration.set("lr", space::Value(std::nextafter(std::nextafter(lr, 1.0), 1.0)));
    CHECK_FALSE(verify(records).difference.empty());
}

TEST_CASE("The logical digest leaves out times, places and attempts, and nothing else", "[report]") {
    auto records = played(2).records;
    const std::uint64_t before = digest(records);
    std::size_t at = 0;
    first<study::Reported>(records, at).at += std::chrono::hours(1);
    first<study::Reported>(records, at).seconds = 99.0;
    first<study::IncarnationBegan>(records, at).workers[0].host = "elsewhere";
    for (auto& record : records)
        if (auto* start = std::get_if<study::TrialStarted>(&record)) start->attempt = base::AttemptId{9};
    CHECK(digest(records) == before);
    // Iterations that are trained again after a loss do not count twice.
    const auto again = first<study::Reported>(records, at);
    records.insert(records.begin() + static_cast<std::ptrdiff_t>(at) + 1, again);
    CHECK(digest(records) == before);
    first<study::Reported>(records, at).metrics[0].value += 1e-12;
    CHECK(digest(records) != before);
}

} // namespace replay_test
