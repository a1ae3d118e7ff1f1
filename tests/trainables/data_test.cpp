// SPDX-License-Identifier: Apache-2.0
// Entries of [data], opened for a trial.
#include "ranktune/trainables/data.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "ranktune/base/error.hpp"
#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace data_entries_test {

using namespace ranktune;
using Numbers = std::vector<std::int64_t>;

namespace {

/// [data] with the files `web` (0 to 99, in the order of the file) and `code` (1000 to 1999), and their mixture `all`.
class Entries {
  public:
    Entries() {
        write("web", 0, 100);
        write("code", 1000, 1000);
        entries.front().shuffle = "none";
        entries.push_back({.name = "all", .parts = {{.source = "web", .weight = 3.0}, {.source = "code"}}});
    }
    std::vector<study::DataFile> entries;

    /// The values of the first `batches` batches, over all ranks in the order of positions.
    [[nodiscard]] Numbers read(const std::string& name, std::uint64_t batch, int batches, int ranks) const {
        std::vector<Numbers> shares(static_cast<std::size_t>(ranks));
        trainables::Registration reads;
        reads.function = [&](trainables::FunctionContext& context) {
            auto [source, loading] = trainables::open_data(context, name);
            loading.batch = batch;
            data::Loader loader(source, {}, loading);
            for (int i = 0; i < batches; ++i) {
                const auto share = loader.next();
                if (!share) break;
                const auto values = share->columns.front().as<std::int64_t>();
                auto& mine = shares[static_cast<std::size_t>(context.rank())];
                mine.insert(mine.end(), values.begin(), values.end());
            }
        };
        const testing::TrialRun run = testing::run_trial(reads, {.data = entries, .ranks = ranks});
        CHECK(run.failure.empty());
        Numbers all;
        for (std::size_t i = 0; i < shares.front().size(); ++i)
            for (const Numbers& share : shares)
                if (i < share.size()) all.push_back(share[i]);
        return all;
    }

  private:
    void write(const std::string& name, std::int64_t first, std::size_t count) {
        Numbers values(count);
        std::iota(values.begin(), values.end(), first);
        const std::string path = folder_.path() + "/" + name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(values.data()),
                   static_cast<std::streamsize>(count * sizeof(values[0])));
        entries.push_back({.name = name, .path = path, .dtype = "int64", .shape = {1}});
    }
    testing::TemporaryDirectory folder_;
};

} // namespace

TEST_CASE("a file of [data] is read in the order that its entry asks for", "[trainables]") {
    Entries data;
    CHECK(data.read("web", 5, 2, 2) == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(data.read("web", 64, 3, 1).size() == 100);
    data.entries.front().drop_last = true;
    CHECK(data.read("web", 64, 3, 1).size() == 64);
    const Numbers shuffled = data.read("code", 100, 1, 1);
    data.entries[1].shuffle = "full";
    CHECK(data.read("code", 100, 1, 2) == shuffled);
    CHECK_FALSE(std::ranges::is_sorted(shuffled));
    data.entries[1].shuffle = "lanes";
    data.entries[1].shuffle_memory = 4096;
    CHECK(data.read("code", 100, 1, 1) == data.read("code", 100, 1, 3));
}

TEST_CASE("a mixture has the shares and orders of its sources, in C++ as in Python", "[trainables]") {
    const Entries data;
    const Numbers period = data.read("all", 1000, 1, 1);
    CHECK(std::ranges::count_if(period, [](std::int64_t value) { return value < 1000; }) == 750);
    // ranktune.dataset("all"), seed 1, trial 0: tests/python/data_test.py
    CHECK(Numbers(period.begin() + 30, period.begin() + 40) ==
          Numbers{1630, 25, 26, 27, 1464, 28, 29, 1739, 1466, 1545});
    CHECK(data.read("all", 250, 4, 3) == period);
    CHECK_THROWS_WITH(data::Source::open(data.entries.back()), Catch::Contains("data.all is a mixture of files"));
}

TEST_CASE("rank 0 logs which orders make ranks read the same chunks", "[trainables]") {
    Entries data;
    data.entries[1].shuffle = "lanes";
    data.entries[1].shuffle_memory = 4096;
    trainables::Registration logs;
    std::string name;
    logs.function = [&](trainables::FunctionContext& context) {
        const auto [source, loading] = trainables::open_data(context, name);
        trainables::log_order(context, *source, loading);
    };
    const auto lines = [&](const std::string& opened) {
        name = opened;
        return testing::run_trial(logs, {.data = data.entries, .ranks = 3}).log;
    };
    const std::vector<std::string> told{"data file '" + data.entries[1].path +
                                        "': each chunk is read on 3 ranks, as 3 ranks do not divide the 1 chunks "
                                        "that are mixed; 1 do"};
    CHECK(lines("web").empty());
    CHECK(lines("code") == told);
    CHECK(lines("all") == told);
}

TEST_CASE("what ranks waited for data are metrics, on average", "[trainables]") {
    trainables::Registration waits;
    waits.function = [](trainables::FunctionContext& context) {
        const double rank = context.rank();
        const data::LoadTime waited{.disk = rank, .decode = 2.0 * rank, .map = 3.0 * rank, .other = 4.0};
        data::LoaderOptions loading;
        static_cast<void>(context.report(trainables::wait_metrics(context.group(), waited, loading)));
        loading.map = [](const data::Sample&, base::RngStream&) {};
        static_cast<void>(context.report(trainables::wait_metrics(context.group(), waited, loading)));
    };
    const testing::TrialRun run = testing::run_trial(waits, {.ranks = 3, .max_iterations = 2});
    REQUIRE(run.failure.empty());
    trainables::Metrics metrics{{"data_wait", 10.0}, {"data_wait/disk", 1.0}, {"data_wait/decode", 2.0}};
    CHECK(run.reports.front().metrics == metrics);
    metrics.emplace_back("data_wait/map", 3.0);
    CHECK(run.reports.back().metrics == metrics);
}

} // namespace data_entries_test
