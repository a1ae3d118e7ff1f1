// SPDX-License-Identifier: Apache-2.0
// The arithmetic of compressed gradients, against sums in double precision.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "ddp/compression/low_rank.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace compression_test {

using namespace ranktune;
using namespace ranktune::ddp;
using testing::all_well;
using testing::on_ranks;
using Kind = Compression::Kind;

namespace {

/// A matrix with padding, a vector, a matrix.
const std::vector<std::size_t> tensors{304, 20, 600};
const std::vector<Matrix> matrices{{30, 10}, {}, {20, 30}};

/// The gradient of a rank in a step, not round in any type.
float gradient_of(int rank, int step, std::size_t tensor, std::size_t i) {
    if (tensor == 0 && i >= 300) return 0.0F; // padding
    base::RngStream random(static_cast<std::uint64_t>(rank * 1000 + step), base::Purpose::fault,
                           static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(i));
    return static_cast<float>(random.normal());
}

using Tensors = std::vector<std::vector<double>>;

Tensors zeros() {
    Tensors all;
    for (const std::size_t size : tensors) all.emplace_back(size, 0.0);
    return all;
}

void one_step(GradientReducer& reducer, int rank, int step) {
    run_step(reducer, [&] {
        for (std::size_t t = tensors.size(); t-- > 0;) {
            const auto gradient = reducer.gradient(t);
            for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = gradient_of(rank, step, t, i);
            reducer.ready(t);
        }
    });
}

void add_sums(GradientReducer& reducer, Tensors& to) {
    for (std::size_t t = 0; t < tensors.size(); ++t)
        for (std::size_t i = 0; i < tensors[t]; ++i) to[t][i] += static_cast<double>(reducer.gradient(t)[i]);
}

void add_true_sums(int ranks, int step, Tensors& to) {
    for (int rank = 0; rank < ranks; ++rank)
        for (std::size_t t = 0; t < tensors.size(); ++t)
            for (std::size_t i = 0; i < tensors[t]; ++i) to[t][i] += static_cast<double>(gradient_of(rank, step, t, i));
}

double largest_difference(const Tensors& a, const Tensors& b) {
    double largest = 0.0;
    for (std::size_t t = 0; t < a.size(); ++t)
        for (std::size_t i = 0; i < a[t].size(); ++i) largest = std::max(largest, std::abs(a[t][i] - b[t][i]));
    return largest;
}

/// Adds what settled ranks have not sent yet.
void add_errors(const GradientReducer& reducer, int ranks, Tensors& to) {
    study::MemoryState state;
    reducer.save(state);
    for (const auto& tensor : state.stored_tensors()) {
        if (!tensor.info.name.starts_with("gradients.error.")) continue;
        const std::size_t t = std::stoul(tensor.info.name.substr(16));
        const auto values = tensor.values().as<float>();
        for (std::size_t i = 0; i < values.size(); ++i) to[t][i] += ranks * static_cast<double>(values[i]);
    }
}

ReducerSettings settings(Compression compression, std::size_t limit = 700) {
    return {limit, base::DType::float32, {}, compression, matrices};
}

void expect(bool right, const char* what) {
    if (!right) throw base::Error(what);
}

std::vector<float> all_of(GradientReducer& reducer) {
    const auto all = reducer.gradients();
    return {all.begin(), all.end()};
}

const std::vector<Compression> all_kinds{{.kind = Kind::fp16},
                                         {.kind = Kind::bf16},
                                         {.kind = Kind::powersgd, .rank = 2},
                                         {.kind = Kind::topk, .density = 0.05}};

template <class Half>
float halved(float value) {
    return static_cast<float>(Half(value));
}

} // namespace

TEST_CASE("in 16 bits every rank's gradient and their mean are rounded once each", "[ddp]") {
    for (const int size : {2, 3, 5}) {
        for (const Kind kind : {Kind::fp16, Kind::bf16}) {
            const auto round = kind == Kind::fp16 ? halved<base::Float16> : halved<base::BFloat16>;
            const auto thrown = on_ranks(size, [&](Collective& group) {
                GradientReducer reducer(group, tensors, settings({.kind = kind}));
                one_step(reducer, group.rank(), 7);
                for (std::size_t t = 0; t < tensors.size(); ++t)
                    for (std::size_t i = 0; i < tensors[t]; ++i) {
                        float sum = 0.0F;
                        for (int rank = 0; rank < size; ++rank) sum += round(gradient_of(rank, 7, t, i));
                        const float ranks = static_cast<float>(size);
                        expect(reducer.gradient(t)[i] == round(sum / ranks) * ranks, "wrong sum");
                    }
                Tensors exact = zeros();
                Tensors sums = zeros();
                add_true_sums(size, 7, exact);
                add_sums(reducer, sums);
                const double unit = kind == Kind::fp16 ? 0x1p-11 : 0x1p-8; // half a unit in the last place of 1
                expect(largest_difference(sums, exact) < 2 * 4 * size * unit, "not near the sums in double");
                expect(!reducer.in_step(), "open");
            });
            CHECK(thrown == all_well(size));
        }
    }
}

TEST_CASE("a mean in fp16 is finite where the sum would not be", "[ddp]") {
    const auto thrown = on_ranks(3, [](Collective& group) {
        GradientReducer reducer(group, {1}, ReducerSettings{.compression = {.kind = Kind::fp16}});
        run_step(reducer, [&] {
            reducer.gradient(0)[0] = 60000.0F;
            reducer.ready(0);
        });
        expect(reducer.gradient(0)[0] == 180'000.0F, "wrong sum");
    });
    CHECK(thrown == all_well(3));
}

TEST_CASE("what topk sends are each tensor's largest numbers, with the errors of the steps before", "[ddp]") {
    const auto thrown = on_ranks(3, [](Collective& group) {
        GradientReducer reducer(group, tensors, settings({.kind = Kind::topk, .density = 0.03}));
        std::vector<Tensors> kept(3, zeros()); // in double: of every rank
        for (int step = 0; step < 4; ++step) {
            one_step(reducer, group.rank(), step);
            Tensors right = zeros();
            for (int rank = 0; rank < 3; ++rank)
                for (std::size_t t = 0; t < tensors.size(); ++t) {
                    auto& mine = kept[static_cast<std::size_t>(rank)][t];
                    for (std::size_t i = 0; i < mine.size(); ++i)
                        mine[i] += static_cast<double>(gradient_of(rank, step, t, i));
                    std::vector<std::size_t> places(mine.size());
                    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
                    std::ranges::stable_sort(places,
                                             [&](auto a, auto b) { return std::abs(mine[a]) > std::abs(mine[b]); });
                    places.resize(static_cast<std::size_t>(std::ceil(0.03 * static_cast<double>(mine.size()))));
                    for (const std::size_t i : places) right[t][i] += std::exchange(mine[i], 0.0);
                }
            Tensors sums = zeros();
            add_sums(reducer, sums);
            expect(largest_difference(sums, right) < 1e-5, "not the largest ones");
        }
    });
    CHECK(thrown == all_well(3));
}

TEST_CASE("topk takes the first of equal numbers, and passes NaN on", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, {8}, ReducerSettings{.compression = {.kind = Kind::topk, .density = 0.25}});
        const auto step = [&](std::vector<float> mine) {
            run_step(reducer, [&] {
                std::ranges::copy(mine, reducer.gradient(0).begin());
                reducer.ready(0);
            });
            return all_of(reducer);
        };
        expect(step({1, -1, 1, 1, 0, 0, 0, 0}) == std::vector<float>{2, -2, 0, 0, 0, 0, 0, 0}, "not the first two");
        expect(step(std::vector<float>(8)) == std::vector<float>{0, 0, 2, 2, 0, 0, 0, 0}, "not those that were left");
        const auto sums = step({0, 0, 0, 0, 0, 0, std::nanf(""), 0});
        expect(std::isnan(sums[6]), "NaN was lost");
    });
    CHECK(thrown == all_well(2));
}

TEST_CASE("nothing that error feedback holds back is lost", "[ddp]") {
    for (const Compression& compression : {all_kinds[2], all_kinds[3]})
        for (const int size : {2, 4}) {
            const auto thrown = on_ranks(size, [&](Collective& group) {
                GradientReducer reducer(group, tensors, settings(compression));
                Tensors exact = zeros();
                Tensors sums = zeros();
                for (int step = 0; step < 10; ++step) {
                    one_step(reducer, group.rank(), step);
                    add_sums(reducer, sums);
                    add_true_sums(size, step, exact);
                }
                expect(largest_difference(sums, exact) > 0.1, "nothing was held back");
                reducer.settle();
                add_errors(reducer, size, sums);
                expect(largest_difference(sums, exact) < 1e-3, "something was lost");
            });
            CHECK(thrown == all_well(size));
        }
}

TEST_CASE("powersgd projects the gradient on as many dimensions as its rank, and sends small tensors whole", "[ddp]") {
    constexpr int size = 3;
    const auto thrown = on_ranks(size, [&](Collective& group) {
        GradientReducer reducer(group, tensors, settings({.kind = Kind::powersgd, .rank = 3}));
        one_step(reducer, group.rank(), 0);
        Tensors exact = zeros();
        Tensors sums = zeros();
        Tensors errors = zeros();
        add_true_sums(size, 0, exact);
        add_sums(reducer, sums);
        reducer.settle();
        add_errors(reducer, size, errors);
        for (std::size_t i = 0; i < tensors[1]; ++i) // a vector
            expect(std::abs(sums[1][i] - exact[1][i]) < 1e-5, "a vector was changed");
        for (const std::size_t t : {std::size_t{0}, std::size_t{2}}) {
            const auto [rows, columns] = matrices[t];
            double energy = 0.0;
            for (std::size_t j = 0; j < columns; ++j)
                for (std::size_t k = 0; k < columns; ++k) { // sums^T errors = 0: an orthogonal projection
                    double product = 0.0;
                    for (std::size_t i = 0; i < rows; ++i)
                        product += sums[t][i * columns + j] * errors[t][i * columns + k];
                    expect(std::abs(product) < 1e-2, "not a projection");
                }
            for (std::size_t i = 0; i < rows * columns; ++i) {
                expect(std::abs(sums[t][i] + errors[t][i] - exact[t][i]) < 1e-4, "not the rest");
                energy += sums[t][i] * sums[t][i];
            }
            expect(energy > 0.1 * static_cast<double>(rows * columns), "nothing was sent");
        }
    });
    CHECK(thrown == all_well(size));
}

TEST_CASE("powersgd sends a matrix of its rank exactly, in every step", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        ReducerSettings two{.compression = {.kind = Kind::powersgd, .rank = 2}, .matrices = {{40, 25}}};
        GradientReducer reducer(group, {1000}, two);
        for (int step = 0; step < 5; ++step) {
            std::vector<double> exact(1000);
            for (int rank = 0; rank < 2; ++rank)
                for (std::size_t i = 0; i < 1000; ++i) {
                    const double row = static_cast<double>(i / 25);
                    const double column = static_cast<double>(i % 25);
                    const double value = (rank + step) * std::sin(row) * std::cos(column) + std::cos(2 * row) * column;
                    exact[i] += value;
                    if (rank == group.rank()) reducer.gradient(0)[i] = static_cast<float>(value);
                }
            run_step(reducer, [&] { reducer.ready(0); });
            for (std::size_t i = 0; i < 1000; ++i)
                expect(std::abs(static_cast<double>(reducer.gradient(0)[i]) - exact[i]) < 1e-3, "not exact");
        }
    });
    CHECK(thrown == all_well(2));
}

TEST_CASE("gradients that vanish for a while do not end powersgd", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, tensors, settings({.kind = Kind::powersgd, .rank = 2}));
        for (int step = 0; step < 3; ++step)
            run_step(reducer, [&] {
                std::ranges::fill(reducer.gradients(), 0.0F);
                for (std::size_t t = tensors.size(); t-- > 0;) reducer.ready(t);
            });
        expect(std::ranges::count(reducer.gradients(), 0.0F) == 924, "not zero");
        one_step(reducer, group.rank(), 0);
        expect(std::ranges::count(reducer.gradients(), 0.0F) == 4, "still zero"); // the padding
    });
    CHECK(thrown == all_well(2));
}

TEST_CASE("columns become orthonormal to the precision of float, and dependent ones zero", "[ddp]") {
    std::vector<float> x(50 * 4);
    for (std::size_t i = 0; i < 50; ++i) {
        x[i * 4] = gradient_of(0, 0, 2, i);
        x[i * 4 + 1] = gradient_of(0, 1, 2, i) * 1e-12F;
        x[i * 4 + 2] = 3.0F * x[i * 4];
        x[i * 4 + 3] = gradient_of(0, 2, 2, i) * 1e12F;
    }
    CHECK(orthonormalise(x, 4));
    for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = 0; b <= a; ++b) {
            double product = 0.0;
            for (std::size_t i = 0; i < 50; ++i)
                product += static_cast<double>(x[i * 4 + a]) * static_cast<double>(x[i * 4 + b]);
            CHECK(std::abs(product - (a == b && a != 2 ? 1.0 : 0.0)) < 1e-5);
        }
    refill_zero_columns(x, 4, 5, 1);
    CHECK_FALSE(orthonormalise(x, 4));
}

TEST_CASE("all ranks get the same bits, and the same ones again", "[ddp]") {
    for (const Compression& compression : all_kinds) {
        std::map<int, std::vector<float>> first;
        for (int repeat = 0; repeat < 2; ++repeat) {
            std::vector<std::vector<float>> results(3);
            const auto thrown = on_ranks(3, [&](Collective& group) {
                GradientReducer reducer(group, tensors, settings(compression, 350)); // several buckets
                for (int step = 0; step < 5; ++step) one_step(reducer, group.rank(), step);
                results[static_cast<std::size_t>(group.rank())] = all_of(reducer);
            });
            CHECK(thrown == all_well(3));
            CHECK(results[0] == results[1]);
            CHECK(results[0] == results[2]);
            if (repeat == 0) first[0] = results[0];
            CHECK(results[0] == first[0]);
        }
    }
}

TEST_CASE("a training that goes on from a saved state has the bits of one that never stopped", "[ddp]") {
    for (const Compression& compression : all_kinds) {
        std::vector<float> whole;
        std::vector<float> resumed;
        study::MemoryState state;
        const auto thrown = on_ranks(3, [&](Collective& group) {
            const auto steps = [&](GradientReducer& reducer, int begin) {
                for (int step = begin; step < begin + 4; ++step) one_step(reducer, group.rank(), step);
                reducer.settle();
            };
            GradientReducer reducer(group, tensors, settings(compression));
            steps(reducer, 0);
            if (group.rank() == 0) reducer.save(state);
            group.barrier();
            steps(reducer, 4);
            GradientReducer second(group, tensors, settings(compression));
            study::MemoryState mine = state;
            second.load(mine);
            steps(second, 4);
            expect(all_of(reducer) == all_of(second), "other bits");
        });
        CHECK(thrown == all_well(3));
    }
}

TEST_CASE("a state of other ranks keeps the sum of the errors", "[ddp]") {
    study::MemoryState state;
    Tensors before = zeros();
    const auto thrown = on_ranks(3, [&](Collective& group) {
        GradientReducer reducer(group, tensors, settings(all_kinds[3]));
        one_step(reducer, group.rank(), 0);
        reducer.settle();
        if (group.rank() != 0) return;
        reducer.save(state);
        add_errors(reducer, 3, before);
    });
    CHECK(thrown == all_well(3));
    Tensors after = zeros();
    const auto later = on_ranks(2, [&](Collective& group) {
        GradientReducer reducer(group, tensors, settings(all_kinds[3]));
        study::MemoryState mine = state;
        reducer.load(mine);
        if (group.rank() == 0) add_errors(reducer, 2, after);
    });
    CHECK(later == all_well(2));
    CHECK(largest_difference(before, after) < 1e-6);
}

TEST_CASE("a rank that throws in a compressed step takes the others along, and the group goes on", "[ddp]") {
    for (const Compression& compression : all_kinds)
        for (int place = 2; place >= -1; --place) {
            const auto thrown = on_ranks(3, [&](Collective& group) {
                GradientReducer reducer(group, tensors, settings(compression, 350));
                one_step(reducer, group.rank(), 0);
                try {
                    if (place == -1 && group.rank() == 1) { // outside of the step
                        group.fail();
                    } else {
                        run_step(reducer, [&] {
                            for (int t = 2; t >= 0; --t) {
                                if (t == place && group.rank() == 1) throw base::Error("broken");
                                reducer.ready(static_cast<std::size_t>(t));
                            }
                        });
                        return;
                    }
                } catch (const PeerFailed&) {
                    expect(group.rank() != 1, "the wrong rank");
                } catch (const base::Error& error) {
                    expect(std::string(error.what()) == "broken", error.what());
                }
                one_step(reducer, group.rank(), 1);
                group.barrier();
            });
            CHECK(thrown == all_well(3));
        }
}

TEST_CASE("a state that differs between ranks cannot be saved", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, tensors, settings(all_kinds[2]));
        study::MemoryState state;
        reducer.save(state); // of no step
        one_step(reducer, group.rank(), 0);
        reducer.save(state);
    });
    for (const auto& text : thrown) CHECK(text.find("call GradientReducer::settle") != std::string::npos);
}

TEST_CASE("what a step sends is counted, compressed and plain", "[ddp]") {
    const std::map<Kind, std::uint64_t> bytes{
        {Kind::none, 2 * 924 * 4 / 2 * 1},
        {Kind::fp16, 924 * 2},                                      // half of it out, half of it back
        {Kind::powersgd, 4 * (2 * (30 + 10) + 2 * (20 + 30) + 20)}, // P and Q, and the vector
        {Kind::topk, 8 * (16 + 1 + 30)},                            // 5 %, with places
    };
    const auto thrown = on_ranks(2, [&](Collective& group) {
        for (const auto& [kind, expected] : bytes) {
            GradientReducer reducer(group, tensors, settings({.kind = kind, .rank = 2, .density = 0.05}));
            for (int step = 0; step < 3; ++step) one_step(reducer, group.rank(), step);
            const auto traffic = reducer.traffic();
            expect(traffic.steps == 3 && traffic.plain_bytes == 3 * 924 * 4, "wrong plain bytes");
            expect(traffic.bytes == 3 * expected, "wrong bytes");
        }
    });
    CHECK(thrown == all_well(2));
}

TEST_CASE("compression that is impossible is refused by name", "[ddp]") {
    const auto group = make_self_group();
    const auto with = [&](ReducerSettings wrong) { return GradientReducer(*group, {12}, std::move(wrong)).in_step(); };
    CHECK_THROWS_WITH(with({.type = base::DType::float64, .compression = {.kind = Kind::bf16}}),
                      "gradients of float64 cannot be compressed: only those of float32");
    CHECK_THROWS_WITH(with({.compression = {.kind = Kind::topk, .density = 0.0}}),
                      "the density of topk must be above 0, and at most 1");
    CHECK_THROWS_WITH(with({.compression = {.kind = Kind::powersgd, .rank = 0}}),
                      "the rank of powersgd must be 1 or more");
    CHECK_THROWS_WITH(with({.compression = {.kind = Kind::powersgd}, .matrices = {{4, 4}}}),
                      "gradient 0 has 12 numbers, too few for a matrix of 4 x 4");
    CHECK_THROWS_WITH(with({.compression = {.kind = Kind::powersgd}, .matrices = {{1, 1}, {1, 1}}}),
                      "a reducer of 1 gradients has 2 matrices: give one per gradient, or none");
    const auto thrown = on_ranks(2, [](Collective& ranks) {
        GradientReducer(ranks, tensors, settings(all_kinds[static_cast<std::size_t>(ranks.rank())]));
    });
    for (const auto& text : thrown) CHECK(text.find("compression or type of the gradients") != std::string::npos);
}

TEST_CASE("gradients of a single rank are not compressed", "[ddp]") {
    const auto group = make_self_group();
    for (const Compression& compression : all_kinds) {
        GradientReducer reducer(*group, tensors, settings(compression));
        one_step(reducer, 0, 0);
        for (std::size_t i = 0; i < 600; ++i) CHECK(reducer.gradient(2)[i] == gradient_of(0, 0, 2, i));
        CHECK(reducer.traffic().bytes == 0);
    }
}

} // namespace compression_test
