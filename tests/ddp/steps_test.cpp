// SPDX-License-Identifier: Apache-2.0
// Steps of other forms than one reduction of all gradients in the order of the plan.

#include <cmath>
#include <limits>
#include <vector>

#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace steps_test {

using namespace ranktune;
using namespace ranktune::ddp;
using testing::all_well;
using testing::on_ranks;

namespace {

const std::vector<std::size_t> tensors{7, 3, 12, 1};
constexpr std::size_t limit = 12;

void expect(bool right, const char* what) {
    if (!right) throw base::Error(what);
}

template <class T = float>
void set(GradientReducer& reducer, std::size_t tensor, float value) {
    for (T& number : reducer.gradient<T>(tensor)) number = T(value);
}

template <class T = float>
bool all_are(GradientReducer& reducer, std::size_t tensor, float value) {
    for (const T& number : reducer.gradient<T>(tensor))
        if (static_cast<float>(number) != value) return false;
    return true;
}

} // namespace

TEST_CASE("gradients may become ready in any order, another one on every rank", "[ddp]") {
    const auto thrown = on_ranks(3, [](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        for (std::size_t step = 0; step < 8; ++step) {
            run_step(reducer, [&] {
                for (std::size_t i = 0; i < 4; ++i) {
                    const std::size_t tensor = (i + step + static_cast<std::size_t>(group.rank())) % 4;
                    set(reducer, tensor, static_cast<float>(tensor + step));
                    reducer.ready(tensor);
                }
            });
            for (std::size_t t = 0; t < 4; ++t)
                expect(all_are(reducer, t, 3.0F * static_cast<float>(t + step)), "wrong sum");
        }
    });
    CHECK(thrown == all_well(3));
}

TEST_CASE("a gradient that a rank does not compute counts as zero, and ranks need not agree which", "[ddp]") {
    for (const Compression::Kind kind : {Compression::Kind::none, Compression::Kind::bf16}) {
        const auto thrown = on_ranks(3, [kind](Collective& group) {
            GradientReducer reducer(group, tensors, ReducerSettings{.limit = limit, .compression = {.kind = kind}});
            for (int step = 0; step < 3; ++step) {
                run_step(reducer, [&] {
                    for (std::size_t t = 4; t-- > 0;) {
                        set(reducer, t, std::numeric_limits<float>::quiet_NaN()); // must not be read
                        if (t == 2 || static_cast<int>(t) == group.rank()) continue;
                        set(reducer, t, 3.0F); // means of 16 bits: 2 and 3
                        reducer.ready(t);
                    }
                });
                expect(all_are(reducer, 0, 6.0F) && all_are(reducer, 1, 6.0F), "used by two ranks");
                expect(all_are(reducer, 2, 0.0F), "used by none");
                expect(all_are(reducer, 3, 9.0F), "used by all");
            }
        });
        CHECK(thrown == all_well(3));
    }
}

TEST_CASE("a gradient that becomes ready twice is an error of the trainable, on all ranks", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        run_step(reducer, [&] {
            reducer.ready(3);
            if (group.rank() == 1) reducer.ready(3);
        });
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "gradient 3 became ready twice in one step of its reducer"});
}

namespace {

/// The sum of micro-steps in which rank r brings `r + 256` first, then ones.
template <class T>
float accumulated(Group& group, int micro_steps) {
    GradientReducer reducer(group, tensors, limit, base::dtype_of<T>());
    for (int step = 0; step < 2; ++step) { // the second one must not see the first one's sum
        for (int micro = 0; micro <= micro_steps; ++micro) {
            const auto compute = [&] {
                for (std::size_t t = 4; t-- > 0;) {
                    if (t == 1 && micro == 1) continue; // unused
                    set<T>(reducer, t, micro == 0 ? 256.0F + static_cast<float>(group.rank()) : 1.0F);
                    reducer.ready(t);
                }
            };
            micro < micro_steps ? run_micro_step(reducer, compute) : run_step(reducer, compute);
        }
        expect(reducer.traffic().steps == static_cast<std::uint64_t>(step) + 1, "a micro-step was reduced");
    }
    for (const T& number : reducer.gradient<T>(2))
        expect(static_cast<float>(number) == static_cast<float>(reducer.gradient<T>(0)[0]), "differ");
    return static_cast<float>(reducer.gradient<T>(0)[0]) - static_cast<float>(reducer.gradient<T>(1)[0]);
}

} // namespace

TEST_CASE("micro-steps are added on their rank and reduced once", "[ddp]") {
    const auto thrown = on_ranks(3, [](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        const std::uint64_t before = reducer.traffic().bytes;
        const auto compute = [&] {
            for (std::size_t t = 4; t-- > 0;) {
                set(reducer, t, static_cast<float>(group.rank() + 1));
                reducer.ready(t);
                reducer.poll();
            }
        };
        for (int micro = 0; micro < 1 + group.rank(); ++micro) run_micro_step(reducer, compute); // not the same number
        expect(reducer.traffic().bytes == before, "a micro-step was reduced");
        run_step(reducer, compute);
        for (std::size_t t = 0; t < 4; ++t) expect(all_are(reducer, t, 2.0F + 6.0F + 12.0F), "wrong sum");
        expect(accumulated<float>(group, 3) == 3.0F, "float");
        expect(accumulated<double>(group, 3) == 3.0F, "double");
        // 256 + 1 + 1 + 1 in bfloat16 would stay 256; in float, rounded once, it is 260
        GradientReducer half(group, {1}, 4, base::DType::bfloat16);
        for (int micro = 0; micro < 4; ++micro) {
            const auto one = [&] {
                set<base::BFloat16>(half, 0, group.rank() > 0 ? 0.0F : micro == 0 ? 256.0F : 1.0F);
                half.ready(0);
            };
            micro < 3 ? run_micro_step(half, one) : run_step(half, one);
        }
        expect(all_are<base::BFloat16>(half, 0, 260.0F), "rounded more than once");
    });
    CHECK(thrown == all_well(3));
}

TEST_CASE("a rank that throws in a micro-step is told of in the next step of the others", "[ddp]") {
    const auto thrown = on_ranks(3, [](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        try {
            run_micro_step(reducer, [&] {
                if (group.rank() == 1) throw base::Error("broken");
            });
        } catch (const base::Error&) {
            group.fail(); // as the driver does
            throw;
        }
        run_step(reducer, [] {});
    });
    CHECK(thrown == std::vector<std::string>{"PeerFailed", "broken", "PeerFailed"});
}

TEST_CASE("the norm of all gradients is limited as torch.nn.utils.clip_grad_norm_ does", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, tensors, limit);
        const auto step = [&](float value) {
            run_step(reducer, [&] {
                for (std::size_t t = 4; t-- > 0;) {
                    set(reducer, t, value);
                    reducer.ready(t);
                }
            });
        };
        step(1.5F); // 23 numbers that are 3
        reducer.clip_norm(1.0);
        const double norm = 3.0 * std::sqrt(23.0);
        expect(std::abs(reducer.last_norm() - norm) < 1e-12, "wrong norm");
        const auto clipped = static_cast<float>(1.0 / (norm + 1e-6)) * 3.0F;
        for (std::size_t t = 0; t < 4; ++t) expect(all_are(reducer, t, clipped), "not clipped");
        step(1.5F);
        reducer.clip_norm(100.0);
        expect(all_are(reducer, 0, 3.0F), "small gradients were changed");
        step(std::numeric_limits<float>::quiet_NaN());
        reducer.clip_norm(1.0);
        expect(std::isnan(reducer.gradient(0)[0]), "NaN was lost");
    });
    CHECK(thrown == all_well(2));
}

TEST_CASE("after the first step the buckets are planned in the order of rank 0's arrivals, on all ranks", "[ddp]") {
    for (const Compression::Kind kind : {Compression::Kind::none, Compression::Kind::topk}) {
        const auto thrown = on_ranks(3, [kind](Collective& group) {
            GradientReducer reducer(group, tensors,
                                    ReducerSettings{.limit = limit, .compression = {.kind = kind, .density = 1.0}});
            const auto step = [&](const std::vector<std::size_t>& order) {
                run_step(reducer, [&] {
                    for (const std::size_t t : order) {
                        set(reducer, t, static_cast<float>(t + 1));
                        reducer.ready(t);
                    }
                });
            };
            step(group.rank() == 0 ? std::vector<std::size_t>{2, 0, 3} : std::vector<std::size_t>{3, 2, 1, 0});
            expect(reducer.replan(), "not changed");
            expect(reducer.order() == std::vector<std::size_t>{2, 0, 3, 1}, "another order");
            expect(reducer.plan().buckets.size() == 2, "wrong buckets");
            for (int i = 0; i < 3; ++i) {
                step({2, 0, 3, 1});
                for (std::size_t t = 0; t < 4; ++t)
                    expect(all_are(reducer, t, 3.0F * static_cast<float>(t + 1)), "wrong sum");
            }
            expect(!reducer.replan(), "changed again");
            GradientReducer later(group, tensors, limit);
            expect(later.reorder(reducer.order()) && later.order() == reducer.order(), "not restored");
            static_cast<void>(later.reorder({0, 1, 2, 2}));
        });
        CHECK(thrown == std::vector<std::string>(3, "the order of the gradients must name each of the 4 tensors once"));
    }
}

TEST_CASE("error feedback goes on when the plan changes", "[ddp]") {
    const auto thrown = on_ranks(2, [](Collective& group) {
        GradientReducer reducer(group, {4, 4},
                                ReducerSettings{.compression = {.kind = Compression::Kind::topk, .density = 0.25}});
        run_step(reducer, [&] {
            for (std::size_t t = 0; t < 2; ++t) {
                for (std::size_t i = 0; i < 4; ++i) reducer.gradient(t)[i] = static_cast<float>(10 * t + 4 - i);
                reducer.ready(t);
            }
        });
        expect(reducer.replan(), "not changed");
        run_step(reducer, [] {}); // nothing new: the second largest of both follow
        expect(reducer.gradient(0)[1] == 6.0F && reducer.gradient(1)[1] == 26.0F, "lost");
    });
    CHECK(thrown == all_well(2));
}

} // namespace steps_test
