// SPDX-License-Identifier: Apache-2.0
// A group's public functions, over threads and alone.
#include "ranktune/ddp/group.hpp"

#include "ddp/collective.hpp"
#include "group_contract.hpp"
#include "support/ranks.hpp"
#include "threads.hpp"

namespace group_test {

using namespace ranktune;
using test::Complaints;
using test::on_threads;

static_assert(!std::is_default_constructible_v<ddp::Group> && !std::is_copy_constructible_v<ddp::Group>);

namespace {

constexpr std::uint32_t sizes[] = {1, 2, 3, 4, 5};

/// User code sees Group without the functions of the trial loop.
template <class G>
constexpr bool is_for_users = !requires(G & g) {
    g.fail();
}
&&!requires(G & g) { g.part(); }
&&!requires(G & g) { g.end_step(); }
&&!requires(G & g) { g.min_max(std::uint64_t{1}); };
static_assert(is_for_users<ddp::Group> && !is_for_users<ddp::Collective>);

template <class Contract>
auto made(Contract contract) {
    return [contract](const test::MakeCollective& make) {
        const auto group = make();
        return contract(*group);
    };
}

} // namespace

TEST_CASE("groups of threads reduce every type", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, made(test::reduction_contract)) == Complaints{});
}

TEST_CASE("groups of threads broadcast and gather", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, made(test::copy_contract)) == Complaints{});
}

TEST_CASE("threads send each other messages in any pattern", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, made(test::message_contract)) == Complaints{});
}

TEST_CASE("errors that one thread can detect are refused before anything is sent", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, made(test::refusal_contract)) == Complaints{});
}

TEST_CASE("when threads do not agree on an operation, all of them get an error", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, made(test::disagreement_contract)) == Complaints{});
}

TEST_CASE("a thread that waits for a message learns of a failure", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, test::message_failure_contract) == Complaints{});
}

TEST_CASE("when a thread fails twice in a row, the others learn of both failures", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, test::second_failure_contract) == Complaints{});
}

TEST_CASE("threads sum gradients of every type in many buckets at once", "[ddp]") {
    for (const auto size : {1U, 2U, 3U}) CHECK(on_threads(size, made(test::gradient_contract)) == Complaints{});
}

TEST_CASE("unreceived messages of one trial do not reach the next", "[ddp]") {
    for (const auto size : sizes) CHECK(on_threads(size, test::remains_contract) == Complaints{});
}

TEST_CASE("operations in many pieces give the same results as in one piece", "[ddp]") {
    for (const int size : {2, 3, 5}) {
        const auto collectives = ddp::make_thread_collectives(size, {}, {.bytes = 100'001, .elements = 999});
        std::vector<std::thread> threads;
        std::vector<Complaints> complaints(collectives.size());
        for (std::size_t rank = 0; rank < collectives.size(); ++rank) {
            threads.emplace_back([&, rank] {
                for (const auto contract : {test::reduction_contract, test::copy_contract, test::message_contract})
                    for (auto& complaint : contract(*collectives[rank])) complaints[rank].push_back(complaint);
            });
        }
        for (auto& thread : threads) thread.join();
        for (const auto& list : complaints) CHECK(list == Complaints{});
    }
}

TEST_CASE("the abort flag ends a wait for a message", "[ddp]") {
    std::atomic<bool> abort{false};
    const std::atomic<bool>* const aborts[] = {&abort, &test::never};
    const auto collectives = ddp::make_thread_collectives(2, aborts);
    std::thread service([&] { abort = true; });
    std::vector<float> values(2);
    CHECK(test::thrown_by([&] { collectives[0]->receive(values, 1); }) == "Aborted");
    CHECK(test::thrown_by([&] { collectives[0]->send(values, 1); }) == "Aborted");
    service.join();
}

TEST_CASE("a group of one rank supports all operations", "[ddp]") {
    const auto group = ddp::make_self_collective();
    CHECK(test::reduction_contract(*group) == Complaints{});
    CHECK(test::copy_contract(*group) == Complaints{});
    CHECK(test::message_contract(*group) == Complaints{});
    CHECK(test::refusal_contract(*group) == Complaints{});
    const auto alone = ddp::make_self_group();
    std::vector<float> values(2);
    CHECK_THROWS_WITH(alone->receive(values, 0),
                      "the only rank of the trial receives from itself, but has sent nothing");
}

TEST_CASE("error messages say what to do", "[ddp]") {
    testing::FakeDevice device(3);
    const testing::OnDevice<float> there(device, {1.0F, 2.0F});
    const auto group = ddp::make_self_group();
    CHECK_THROWS_WITH(group->all_reduce(there.buffer()),
                      "all_reduce of 2 float32 on device 3: the group of this trial only takes host memory; copy it "
                      "there first");
    std::vector<std::uint8_t> bytes(4);
    CHECK_THROWS_WITH(group->all_reduce(bytes),
                      "all_reduce of 4 uint8 on the host: bytes cannot be reduced, use int32 or int64");
    CHECK_THROWS_WITH(group->broadcast(bytes, 1), "broadcast: there is no rank 1 in a trial of 1");
    CHECK_THROWS_WITH(group->all_gather(std::span(bytes).first(3), bytes),
                      "all_gather of 3 uint8 on the host into 4 uint8 on the host: needs 1 times as many of the same "
                      "type");
    const auto thrown = testing::on_ranks(2, [](ddp::Group& two) {
        std::vector<float> values(two.rank() == 0 ? 3 : 4);
        if (two.rank() == 0) return two.send(values, 1);
        two.receive(values, 0);
    });
    CHECK(thrown[1] == "rank 0 sent 3 float32 on the host, and this rank receives 4 float32 on the host");
}

} // namespace group_test
