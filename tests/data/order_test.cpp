// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/order.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "ranktune/base/error.hpp"
#include "ranktune/data/mixture.hpp"
#include "support/catch.hpp"

namespace order_test {

using namespace ranktune;
using namespace ranktune::data;
using Numbers = std::vector<std::uint64_t>;

namespace {

template <class Map>
Numbers at(Map&& map, const Numbers& positions) {
    Numbers result;
    for (const std::uint64_t p : positions) result.push_back(map(p));
    return result;
}

template <class Map>
Numbers all(Map&& map, std::uint64_t count) {
    Numbers result(count);
    for (std::uint64_t p = 0; p < count; ++p) result[p] = map(p);
    return result;
}

bool is_bijection(Numbers numbers) {
    std::ranges::sort(numbers);
    for (std::uint64_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != i) return false;
    return true;
}

/// Chi-square of equally likely cells, as a standard normal (Wilson and Hilferty 1931).
double deviation(const std::vector<double>& cells, double expected, double freedom) {
    double sum = 0.0;
    for (const double cell : cells) sum += (cell - expected) * (cell - expected) / expected;
    return (std::cbrt(sum / freedom) - (1.0 - 2.0 / (9.0 * freedom))) / std::sqrt(2.0 / (9.0 * freedom));
}

/// Chi-square of the classes of batches, divided by that of random draws: samples are sorted by class.
double class_ratio(const Numbers& order, std::uint64_t classes, std::uint64_t batch) {
    const std::uint64_t count = order.size();
    const double expected = static_cast<double>(batch) / static_cast<double>(classes);
    double sum = 0.0;
    for (std::uint64_t b = 0; b < count / batch; ++b) {
        std::vector<double> met(classes);
        for (std::uint64_t i = 0; i < batch; ++i) ++met[order[b * batch + i] * classes / count];
        for (const double m : met) sum += (m - expected) * (m - expected) / expected;
    }
    const double finite = static_cast<double>(count - batch) / static_cast<double>(count - 1);
    return sum / static_cast<double>(count / batch) / static_cast<double>(classes - 1) / finite;
}

} // namespace

TEST_CASE("the order of samples never changes between versions", "[data]") {
    const auto first = [](std::uint64_t size, std::uint32_t epoch) {
        return at(Permutation(size, {1, 0, epoch, 0}), {0, 1, 2, 3, 4, 5});
    };
    CHECK(first(10, 0) == Numbers{2, 1, 5, 0, 7, 3});
    CHECK(first(10, 1) == Numbers{9, 7, 2, 4, 8, 3});
    CHECK(first(1'000'003, 0) == Numbers{22609, 451063, 445299, 370119, 10645, 738366});
    CHECK(first(1'000'003, 1) == Numbers{57038, 946502, 7710, 823970, 299594, 754048});
    CHECK(first(10'000'000'000, 0) == Numbers{3769914555, 2680136087, 8606121403, 832508741, 7141924457, 9958304587});
    CHECK(first(10'000'000'000, 1) == Numbers{9021812909, 4648540013, 2230029754, 9947787011, 5845481848, 274129375});
    CHECK(at(Order({1000, 8, 4}, 1, 0, 0), {0, 1, 2, 3, 4, 500, 991, 992, 998, 999}) ==
          Numbers{869, 499, 400, 226, 866, 994, 230, 888, 890, 893});
}

TEST_CASE("an order has every sample once, for all sizes, units and lanes", "[data]") {
    for (const std::uint64_t samples : {1, 2, 7, 239, 1000, 4097, 70001, 100000})
        for (const std::uint64_t unit : {1, 2, 8, 100})
            for (const std::uint64_t lanes : {1, 4, 240}) {
                CAPTURE(samples, unit, lanes);
                CHECK(is_bijection(all(Order({samples, unit, lanes}, 3, 1, 7), samples)));
            }
    CHECK(all(Order({5, 1, 1, false}, 3, 1, 7), 5) == Numbers{0, 1, 2, 3, 4});
}

TEST_CASE("a permutation of more values than a table holds is as random as a shuffle", "[data]") {
    constexpr std::uint64_t count = 100'003;
    constexpr std::uint64_t side = 64;
    Numbers before = all(Permutation(count, {1, 0, 100, 0}), count);
    double fixed = 0.0;
    for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
        const Numbers now = all(Permutation(count, {1, 0, epoch, 0}), count);
        std::vector<double> grid(side * side);
        std::vector<double> both(side * side);
        std::vector<double> steps(256);
        for (std::uint64_t p = 0; p < count; ++p) {
            ++grid[p * side / count * side + now[p] * side / count];
            ++both[before[p] * side / count * side + now[p] * side / count];
            if (p > 0) ++steps[(now[p] + count - now[p - 1]) % count * 256 / count];
            if (now[p] == p) ++fixed;
        }
        constexpr double cell = static_cast<double>(count) / (side * side);
        CHECK(std::abs(deviation(grid, cell, (side - 1) * (side - 1))) < 4.0);
        CHECK(std::abs(deviation(both, cell, (side - 1) * (side - 1))) < 4.0);
        CHECK(std::abs(deviation(steps, (count - 1) / 256.0, 255)) < 4.0);
        before = now;
    }
    CHECK(std::abs(fixed - 20.0) < 4.0 * std::sqrt(20.0)); // one in each permutation on average
}

TEST_CASE("lanes mix sorted classes into a batch as well as a random draw", "[data]") {
    constexpr std::uint64_t samples = 320'000;
    constexpr std::uint64_t classes = 100;
    CHECK(class_ratio(all(Order({samples, 1, 1}, 1, 0, 0), samples), classes, 256) == Approx(1.0).margin(0.02));
    CHECK(class_ratio(all(Order({samples, 32, 960}, 1, 0, 0), samples), classes, 256) == Approx(1.0).margin(0.02));
    CHECK(class_ratio(all(Order({samples, 32, 60}, 1, 0, 0), samples), classes, 256) > 1.5);
}

TEST_CASE("a number of ranks that divides the lanes reads each unit on one rank", "[data]") {
    constexpr OrderShape shape{9600, 8, 240};
    std::vector<int> reader(shape.samples / shape.unit, -1);
    for (int rank = 0; rank < 6; ++rank) {
        Order order(shape, 1, 0, 0);
        const Share mine(0, shape.samples, rank, 6);
        for (std::uint64_t i = 0; i < mine.size(); ++i) {
            int& known = reader[order(mine[i]) / shape.unit];
            CHECK((known == -1 || known == rank));
            known = rank;
        }
    }
}

TEST_CASE("a share of a batch has every so many positions", "[data]") {
    for (const std::uint64_t begin : {0, 1, 5, 96})
        for (const std::uint64_t length : {0, 1, 2, 6, 7, 100})
            for (int size = 1; size <= 7; ++size) {
                Numbers met;
                std::uint64_t smallest = ~std::uint64_t{0};
                std::uint64_t largest = 0;
                for (int rank = 0; rank < size; ++rank) {
                    const Share share(begin, begin + length, rank, size);
                    smallest = std::min(smallest, share.size());
                    largest = std::max(largest, share.size());
                    for (std::uint64_t i = 0; i < share.size(); ++i) {
                        CHECK(share[i] % static_cast<std::uint64_t>(size) == static_cast<std::uint64_t>(rank));
                        met.push_back(share[i] - begin);
                    }
                }
                CHECK(met.size() == length);
                CHECK(is_bijection(met));
                CHECK(largest - smallest <= 1);
            }
}

TEST_CASE("a trial that goes on with other ranks and other batches trains each sample once", "[data]") {
    constexpr OrderShape shape{4000, 16, 60};
    for (const std::uint64_t first_batch : {1, 7, 96, 4000})
        for (const std::uint64_t then_batch : {5, 64, 100})
            for (int ranks = 1; ranks <= 5; ++ranks)
                for (int then = 1; then <= 5; ++then) {
                    Numbers met;
                    std::uint64_t position = 0;
                    const auto train = [&](std::uint64_t end, std::uint64_t batch, int size) {
                        std::vector<Order> orders(static_cast<std::size_t>(size), Order(shape, 5, 2, 0));
                        while (position < end) {
                            const std::uint64_t next = std::min(end, position + batch);
                            for (int rank = 0; rank < size; ++rank) {
                                const Share mine(position, next, rank, size);
                                for (std::uint64_t i = 0; i < mine.size(); ++i)
                                    met.push_back(orders[static_cast<std::size_t>(rank)](mine[i]));
                            }
                            position = next;
                        }
                    };
                    train(shape.samples / 3, first_batch, ranks);
                    train(shape.samples, then_batch, then);
                    CHECK(is_bijection(met));
                }
}

TEST_CASE("the shape of an order is a function of the data and the options", "[data]") {
    constexpr std::uint64_t gigabyte = std::uint64_t{1} << 30U;
    const auto shape = [](Extent extent, Shuffle shuffle = Shuffle::automatic) {
        return order_shape(extent, {shuffle, gigabyte});
    };
    CHECK(shape({10'000'000'000, 4096, 1}) == OrderShape{10'000'000'000, 1, 960}); // rows can be read alone
    CHECK(shape({1000, 3136, 256}) == OrderShape{1000, 1, 960});                   // fits into memory
    CHECK(shape({10'000'000, 3136, 256}) == OrderShape{10'000'000, 256, 960});
    CHECK(shape({10'000'000, 3136, 8}) == OrderShape{10'000'000, 88, 960});    // 256 KiB at least, whole chunks
    CHECK(shape({10'000'000, 3136, 512}) == OrderShape{10'000'000, 512, 480}); // 960 lanes take 1.4 GiB
    CHECK(shape({10'000'000, 3136, 1400}) == OrderShape{10'000'000, 1400, 240});
    CHECK(shape({10'000'000, 3136, 1500}) == OrderShape{10'000'000, 1500, 192}); // 240 lanes take 1.05 GiB
    CHECK(shape({10'000'000, 3136, 5000}) == OrderShape{10'000'000, 5000, 64});
    CHECK(shape({10'000'000, 3136, 400'000}) == OrderShape{10'000'000, 400'000, 1}); // one chunk takes more
    CHECK(shape({1000, 3136, 256}, Shuffle::lanes) == OrderShape{1000, 256, 960});
    CHECK(shape({10'000'000, 3136, 256}, Shuffle::full) == OrderShape{10'000'000, 1, 960});
    CHECK(shape({10'000'000, 3136, 256}, Shuffle::none) == OrderShape{10'000'000, 1, 960, false});
}

TEST_CASE("orders that mix little, or whose chunks several ranks read, are told", "[data]") {
    constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20U;
    const Extent big_chunks{100, mebibyte, 10};
    CHECK(order_advice(big_chunks, {.memory = 50 * mebibyte}, 4) ==
          std::vector<std::string>{"batches mix 5 of 10 chunks, as no more of them fit into shuffle_memory (52,428,800 "
                                   "bytes); 100 MiB, or smaller chunks, mix 10",
                                   "each chunk is read on 4 ranks, as 4 ranks do not divide the 5 chunks that are "
                                   "mixed; 1 or 5 do"});
    const Extent file{10'000'000, 3136, 256}; // 960 lanes
    CHECK(order_advice(file, {}, 6).empty());
    CHECK(order_advice({10, mebibyte, 10}, {Shuffle::lanes, mebibyte}, 1).empty()); // mixes the one chunk that there is
    CHECK(order_advice(file, {}, 9) == std::vector<std::string>{"each chunk is read on 3 ranks, as 9 ranks do not "
                                                                "divide the 960 chunks that are mixed; 8 or 10 do"});
    CHECK(order_advice(file, {.shuffle = Shuffle::none}, 7).empty());
    CHECK(order_advice(file, {.shuffle = Shuffle::full}, 7).empty());
}

TEST_CASE("units that are open at once fit into the memory, so that each is decoded about once", "[data]") {
    // Ten chunks of 100 rows, a MiB each.
    for (const std::uint64_t fit : {1, 2, 3, 7}) {
        const Extent extent{1000, std::uint64_t{1} << 20U, 100};
        const OrderShape shape = order_shape(extent, {Shuffle::automatic, (fit * 100) << 20U});
        CHECK(shape == OrderShape{1000, 100, fit == 7 ? 6 : fit});
        std::vector<std::uint64_t> kept; // the last one was used last
        std::uint64_t decoded = 0;
        for (const std::uint64_t sample : all(Order(shape, 1, 0, 0), 1000)) {
            if (std::erase(kept, sample / 100) == 0) ++decoded;
            kept.push_back(sample / 100);
            if (kept.size() > fit) kept.erase(kept.begin());
        }
        CHECK(decoded >= 10);
        CHECK(decoded <= 10 + shape.lanes); // a lane comes back to its first unit at the end
    }
}

TEST_CASE("a mixture has exact shares in each period, and its sources miss no sample", "[data]") {
    const std::vector<MixtureSource> sources{{{5000}, 0.7}, {{100'000}, 0.2}, {{37}, 0.1, 2500}};
    Mixture mixture(sources, 1, 0);
    std::vector<Numbers> met(3); // source, then epoch * size + sample
    std::vector<std::vector<std::uint64_t>> counts;
    for (std::uint64_t p = 0; p < 20'000; ++p) {
        if (p % Mixture::period == 0) counts.emplace_back(3);
        const Mixture::Place place = mixture(p);
        ++counts.back()[place.source];
        met[place.source].push_back(place.epoch * sources[place.source].shape.samples + place.sample);
    }
    CHECK(counts[0] == Numbers{778, 222, 0}); // 0.7 / 0.9 and 0.2 / 0.9
    CHECK(counts[2] == Numbers{778, 222, 0}); // 2,500 is rounded up to a whole period
    CHECK(counts[3] == Numbers{700, 200, 100});
    CHECK(counts[19] == Numbers{700, 200, 100});
    met[2].resize(met[2].size() / 37 * 37); // whole epochs
    CHECK(is_bijection(met[2]));
    met[0].resize(10'000);
    CHECK(is_bijection(met[0]));
    Numbers again;
    for (const std::uint64_t p : {19'999, 3, 12'345, 0}) again.push_back(Mixture(sources, 1, 0)(p).sample);
    CHECK(again == at([&](std::uint64_t p) { return mixture(p).sample; }, {19'999, 3, 12'345, 0}));
}

TEST_CASE("the places of a mixture never change between versions", "[data]") {
    Mixture mixture({{{5000}, 0.7}, {{100'000}, 0.2}, {{37}, 0.1, 2500}}, 1, 0);
    Numbers all_of;
    for (const std::uint64_t p : {0, 3001, 3006, 19'982, 19'997, 19'999}) {
        const Mixture::Place place = mixture(p);
        all_of.insert(all_of.end(), {place.source, place.epoch, place.sample});
    }
    CHECK(all_of == Numbers{0, 0, 4620, 1, 0, 58339, 2, 0, 31, 2, 45, 7, 1, 0, 12511, 0, 2, 2015});
}

TEST_CASE("a mixture that cannot be is refused", "[data]") {
    const auto refused = [](std::vector<MixtureSource> sources) {
        CHECK_THROWS_AS(Mixture(std::move(sources), 1, 0), base::UsageError);
    };
    refused({});
    refused({{{10}, 1.0, 1}});
    refused({{{0}, 1.0}});
    refused({{{10}, -1.0}});
    refused({{{10}, NAN}});
    refused({{{10}, 1.0}, {{10}, 1e-4}});
}

} // namespace order_test
