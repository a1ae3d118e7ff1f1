// SPDX-License-Identifier: Apache-2.0
// What rows of trials are made of.
#include "support/catch.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tuner/values/chunked_vector.hpp"
#include "tuner/values/rank_list.hpp"
#include "tuner/values/rare_list.hpp"

namespace ranktune::tuner::tables_test {

using study::Rank;

TEST_CASE("The rows of a chunked vector stay where they are while it grows", "[tuner]") {
    ChunkedVector<std::string, 4> rows;
    std::vector<const std::string*> places;
    for (int i = 0; i < 9; ++i) {
        rows.push_back(std::to_string(i));
        places.push_back(&rows.back());
    }
    CHECK(rows.size() == 9);
    std::vector<std::string> seen;
    for (const std::string& row : rows) seen.push_back(row);
    CHECK(seen == std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8"});
    for (std::size_t i = 0; i < places.size(); ++i) CHECK(&std::as_const(rows)[i] == places[i]);
    const auto copy = rows;
    rows[5] = "another";
    CHECK(copy[5] == "5");
    rows.clear();
    CHECK(rows.empty());
    CHECK(copy.end() - copy.begin() == 9);
}

TEST_CASE("A list of ranks is the same in place and in memory of its own", "[tuner]") {
    for (const std::uint32_t size : {0U, 1U, 2U, 3U, 300U}) {
        std::vector<Rank> ranks;
        for (std::uint32_t i = 0; i < size; ++i) ranks.emplace_back(2 * i + 1);
        const RankList list(ranks);
        CHECK(list.size() == size);
        CHECK(list.empty() == ranks.empty());
        CHECK(std::vector<Rank>(list) == ranks);
        if (size > 0) CHECK(list.front() == Rank{1});
        RankList other(std::vector{Rank{4}, Rank{5}, Rank{6}});
        CHECK_FALSE(other == list);
        other = list;
        CHECK(other == list);
        const RankList moved = std::move(other);
        CHECK(moved == ranks);
    }
    STATIC_REQUIRE(sizeof(RankList) == 16);
}

TEST_CASE("A rare list takes no memory while it is empty", "[tuner]") {
    RareList<double> list;
    STATIC_REQUIRE(sizeof(list) == 8);
    CHECK(list.empty());
    CHECK(list.begin() == list.end());
    list.push_back(1.0);
    list.push_back(2.0);
    const RareList<double> copy = list;
    list.pop_front();
    CHECK(list == std::vector{2.0});
    list.pop_back();
    CHECK(list.empty());
    CHECK(list == RareList<double>{});
    CHECK(copy.all() == std::vector{1.0, 2.0});
    list = {3.0, 4.0};
    list.resize(3);
    CHECK(list == std::vector{3.0, 4.0, 0.0});
    list.resize(0);
    CHECK(list.begin() == nullptr);
}

} // namespace ranktune::tuner::tables_test
