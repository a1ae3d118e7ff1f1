// SPDX-License-Identifier: Apache-2.0
// States that are kept in memory for other ranks.
#include <memory>
#include <vector>

#include "support/catch.hpp"
#include "worker/checkpoints/checkpoint_writer.hpp"
#include "worker/checkpoints/state_exchange.hpp"
#include "worker/state_shelf.hpp"

namespace ranktune::worker {
namespace {

std::shared_ptr<study::MemoryState> state_of(std::size_t doubles, double value = 1.0) {
    auto state = std::make_shared<study::MemoryState>();
    const std::vector<double> values(doubles, value);
    state->put<double>("x", std::span<const double>(values));
    return state;
}

} // namespace

TEST_CASE("The newest two states of each trial are kept, the oldest goes when there is no room", "[group]") {
    StateShelf shelf(3000);
    shelf.put(base::TrialId{1}, "0", 0, state_of(10));  // 80 bytes
    shelf.put(base::TrialId{1}, "a", 1, state_of(100)); // 800 bytes each
    CHECK(shelf.offer("0"));
    shelf.put(base::TrialId{2}, "b", 2, state_of(100));
    shelf.put(base::TrialId{3}, "c", 3, state_of(100));
    shelf.put(base::TrialId{1}, "d", 4, state_of(10)); // in place of 0
    CHECK(!shelf.offer("0"));
    for (const char* path : {"a", "b", "c", "d"}) CHECK(shelf.offer(path));
    shelf.put(base::TrialId{4}, "e", 5, state_of(100)); // a is the oldest
    CHECK(!shelf.offer("a"));
    shelf.put(base::TrialId{4}, "g", 5, state_of(100)); // b is the oldest
    CHECK(!shelf.offer("b"));
    for (const char* path : {"c", "d", "e", "g"}) CHECK(shelf.offer(path));
    shelf.put(base::TrialId{5}, "f", 6, state_of(1000)); // larger than all the room: alone
    CHECK(shelf.offer("f"));
    for (const char* path : {"c", "d", "e", "g"}) CHECK(!shelf.offer(path));
}

TEST_CASE("What is offered is the form, the digest and the tensors of a state", "[group]") {
    StateShelf shelf(1000);
    const auto state = state_of(10, 2.5);
    shelf.put(base::TrialId{1}, "a", 0x0102030405060708, state);
    CHECK(!shelf.offer("b"));
    const auto offer = shelf.offer("a");
    REQUIRE(offer);
    REQUIRE(offer->blocks.size() == 2);
    CHECK(offer->blocks[1].data() == state->stored_tensors()[0].bytes.data());
    const auto form = worker::decode_form(offer->blocks[0].first(offer->blocks[0].size() - 8));
    REQUIRE(form.tensors.size() == 1);
    CHECK(form.tensors[0] == state->stored_tensors()[0].info);
    CHECK(study::Decoder(offer->blocks[0].last(8)).u64() == 0x0102030405060708);
}

TEST_CASE("An offer outlives the shelf's own hold, and memory comes back to its pool", "[group]") {
    worker::StatePool pool;
    StateShelf shelf(1 << 20);
    const void* memory = nullptr;
    std::optional<comm::BlockExchange::Offer> offer;
    {
        const auto state = pool.take();
        const std::vector<double> values(1000, 1.0);
        state->put<double>("x", std::span<const double>(values));
        memory = state->stored_tensors()[0].bytes.data();
        shelf.put(base::TrialId{1}, "a", 1, state);
    }
    offer = shelf.offer("a");
    shelf.put(base::TrialId{1}, "b", 2, state_of(1));
    shelf.put(base::TrialId{1}, "c", 3, state_of(1));
    CHECK(!shelf.offer("a"));
    CHECK(offer->blocks[1].data() == memory); // somebody still reads it
    const auto meanwhile = pool.take();
    const std::vector<double> other(1000, 2.0);
    meanwhile->put<double>("x", std::span<const double>(other));
    CHECK(meanwhile->stored_tensors()[0].bytes.data() != memory);
    offer.reset();
    const auto again = pool.take();
    again->put<double>("x", std::span<const double>(other));
    CHECK(again->stored_tensors()[0].bytes.data() == memory);
}

} // namespace ranktune::worker
