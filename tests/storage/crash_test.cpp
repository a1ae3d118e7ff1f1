// SPDX-License-Identifier: Apache-2.0
// Crashes and power losses at every point of a journal's life, followed by further incarnations.
#include <algorithm>

#include "journal_fixture.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage::crash_test {
using namespace test;
using ranktune::test::CrashFileSystem;

namespace {

const std::string home = "/study";

/// What one incarnation appended, and which records it knew to be synced when.
struct Life {
    std::vector<study::Record> records; ///< of the whole journal: found ones, then appended ones
    struct Known {
        std::size_t operations = 0; ///< from this operation on
        std::size_t records = 0;    ///< this many are synced
    };
    std::vector<Known> written;
    std::vector<Known> synced;

    [[nodiscard]] static std::size_t at(const std::vector<Known>& known, std::size_t operations) {
        std::size_t records = 0;
        for (const Known& k : known) {
            if (k.operations <= operations) records = std::max(records, k.records);
        }
        return records;
    }
};

/// Reads a journal that may not exist, and checks that both kinds of reading end at the same record.
std::vector<study::Record> survivors(CrashFileSystem& files) {
    if (!has_journal(files, home)) return {};
    const JournalTail head = read_journal_tail(files, home, Check::everything);
    const JournalTail view = read_journal_tail(files, home, Check::since_snapshot);
    REQUIRE(view.summary.records == head.summary.records);
    REQUIRE(view.summary.cut_records == head.summary.cut_records);
    REQUIRE(view.snapshot == head.snapshot);
    const std::span<const std::byte> expected = head.records;
    const std::span<const std::byte> seen = view.records;
    REQUIRE(std::equal(seen.begin(), seen.end(), expected.begin(), expected.end()));
    return read_all(files, home);
}

/// Opens a journal on the existing files, appends random batches, syncs now and then.
Life live(CrashFileSystem& files, std::uint32_t incarnation, int batches, base::RngStream& rng) {
    Life life;
    life.records = survivors(files);
    const std::size_t found = life.records.size();
    base::NullLog log;
    JournalOptions o = options(home, incarnation);
    std::uint64_t next = 1000000ULL * incarnation;
    std::vector<study::Record> batch;
    o.snapshot = [&] { return snapshot(rng.below(2000), next); };
    Journal journal(files, o, log);
    life.written.push_back({files.operations(), found});
    life.synced.push_back({files.operations(), found});
    for (int i = 0; i < batches; ++i) {
        batch = reports(next, 1 + rng.below(12));
        if (rng.below(8) == 0) batch.push_back(snapshot(rng.below(5000), next));
        next += batch.size();
        journal.append(batch);
        // A snapshot may have been added to the batch, so read back what was written.
        life.records = survivors(files);
        life.written.push_back({files.operations(), life.records.size()});
        if (rng.below(4) == 0) {
            const std::size_t count = life.records.size();
            journal.sync();
            life.synced.push_back({files.operations(), count});
        }
    }
    if (rng.below(2) == 0) journal.close();
    return life;
}

void check_prefix(const std::vector<study::Record>& got, const Life& life, std::size_t at_least) {
    REQUIRE(got.size() >= at_least);
    REQUIRE(got.size() <= life.records.size());
    REQUIRE(std::equal(got.begin(), got.end(), life.records.begin()));
}

} // namespace

TEST_CASE("after the death of all processes every written record is there", "[storage]") {
    base::RngStream rng(1, base::Purpose::fault);
    CrashFileSystem files;
    const Life life = live(files, 1, 90, rng);
    REQUIRE(list_segments(files, home).size() >= 3);
    for (std::size_t cut = 0; cut <= files.operations(); ++cut) {
        for (const std::size_t torn : {std::size_t{0}, std::size_t{5}, std::size_t{33}}) {
            const auto left = files.after_kill(cut, torn);
            check_prefix(survivors(*left), life, Life::at(life.written, cut));
        }
    }
}

TEST_CASE("after a loss of power every synced record is there, and rolled-back records never come back", "[storage]") {
    std::size_t lost = 0;
    std::size_t cuts = 0;
    for (std::uint32_t round = 0; round < 24; ++round) {
        base::RngStream rng(2, base::Purpose::fault, round);
        CrashFileSystem first;
        first.set_reserves(round % 2 == 0);
        const Life life1 = live(first, 1, 40, rng);
        for (int cut = 0; cut < 25; ++cut) {
            ++cuts;
            const std::size_t at1 = rng.below(first.operations() + 1);
            const auto second = first.after_power_cut(at1, rng);
            const auto left1 = survivors(*second);
            check_prefix(left1, life1, Life::at(life1.synced, at1));
            lost += Life::at(life1.written, at1) > left1.size() ? 1 : 0;

            const Life life2 = live(*second, 2, 12, rng);
            REQUIRE(std::equal(left1.begin(), left1.end(), life2.records.begin()));
            const std::size_t at2 = rng.below(second->operations() + 1);
            const auto third = rng.below(2) == 0 ? second->after_power_cut(at2, rng) : second->after_kill(at2);
            const auto left2 = survivors(*third);
            check_prefix(left2, life2, std::max(left1.size(), Life::at(life2.synced, at2)));

            const Life life3 = live(*third, 3, 4, rng);
            REQUIRE(std::equal(left2.begin(), left2.end(), life3.records.begin()));
            REQUIRE(survivors(*third) == life3.records);
        }
    }
    CHECK(cuts >= 500);
    CHECK(lost > 20); // the model does lose unsynced records
}

TEST_CASE("records that a killed head left unsynced are synced once the next head has taken over", "[storage]") {
    std::size_t unsynced = 0;
    for (std::uint32_t round = 0; round < 40; ++round) {
        base::RngStream rng(3, base::Purpose::fault, round);
        CrashFileSystem files; // one page cache: a killed process loses nothing until the power fails
        const Life life1 = live(files, 1, 12, rng);
        unsynced += life1.records.size() - Life::at(life1.synced, files.operations());
        const std::size_t end1 = files.operations();
        const Life life2 = live(files, 2, 6, rng);
        for (int cut = 0; cut < 25; ++cut) {
            const std::size_t at = end1 + rng.below(files.operations() - end1 + 1);
            const auto left = files.after_power_cut(at, rng);
            check_prefix(survivors(*left), at < end1 ? life1 : life2, Life::at(life2.synced, at));
        }
    }
    CHECK(unsynced > 40);
}

} // namespace ranktune::storage::crash_test
