// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/ranking.hpp"

#include <algorithm>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace ranking_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using study::Ranked;

TEST_CASE("a ranking agrees with sorting, however it came about", "[schedulers]") {
    base::RngStream random(3, base::Purpose::fault);
    std::vector<Ranked> sorted;
    Ranking ranking;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        if (sorted.size() > 20 && random.below(3) == 0) {
            const auto at = static_cast<std::ptrdiff_t>(random.below(sorted.size()));
            ranking.erase(sorted[static_cast<std::size_t>(at)]);
            sorted.erase(sorted.begin() + at);
        } else {
            const Ranked entry{static_cast<double>(random.below(500)), base::TrialId(i)};
            ranking.insert(entry);
            sorted.insert(std::ranges::lower_bound(sorted, entry, study::better), entry);
        }
        REQUIRE(ranking.size() == sorted.size());
    }
    CHECK(ranking.valid());
    CHECK(ranking.size() > 1000); // several blocks
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        CHECK(ranking[i] == sorted[i]);
        CHECK(ranking.position(sorted[i]) == i);
    }
    CHECK(ranking.best() == sorted.front());
    CHECK(ranking.position({1e9, base::TrialId(0)}) == 0);
    CHECK(ranking.position({-1e9, base::TrialId(0)}) == sorted.size());
    study::Bytes bytes;
    study::Encoder out(bytes);
    ranking.snapshot(out);
    Ranking restored;
    study::Decoder in(bytes);
    restored.restore(in);
    CHECK(restored.valid());
    CHECK(restored[sorted.size() / 2] == sorted[sorted.size() / 2]);
    std::swap(sorted.front(), sorted.back());
    study::Bytes wrong;
    study::Encoder again(wrong);
    again.varint(2);
    for (const double score : {1.0, 2.0}) {
        again.f64(score);
        again.varint(1);
    }
    study::Decoder damaged(wrong);
    CHECK_THROWS_AS(restored.restore(damaged), base::FormatError);
}

} // namespace ranking_test
