// SPDX-License-Identifier: Apache-2.0
// Blocks that ranks read from each other, over MPI with all ranks of the launch.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "comm/graveyard.hpp"
#include "comm/mpi/communicator.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using namespace std::chrono_literals;
using Answer = comm::BlockExchange::Answer;

namespace {

using Bytes = std::vector<std::byte>;

std::byte value(int rank, std::size_t block, std::size_t at) {
    return static_cast<std::byte>((static_cast<std::size_t>(rank) * 31 + block * 7 + at * 13 + at / 251) & 0xFF);
}

/// What rank `rank` offers: a description (its rank as text) and two blocks.
struct Offered {
    explicit Offered(int rank) : description("rank " + std::to_string(rank)), blocks{Bytes(100'000), Bytes(7)} {
        for (std::size_t b = 0; b < blocks.size(); ++b)
            for (std::size_t i = 0; i < blocks[b].size(); ++i) blocks[b][i] = value(rank, b, i);
    }
    std::string description;
    std::vector<Bytes> blocks;
};

/// An exchange with its service thread. Ends on all ranks together.
class Serving {
  public:
    explicit Serving(comm::BlockExchange::Settings settings)
        : exchange(test::world(), settings), world_(comm::mpi::Communicator::world().duplicate()) {
        exchange.offer([this](std::string_view key) -> std::optional<comm::BlockExchange::Offer> {
            if (key != "state") return {};
            const auto bytes = std::as_bytes(std::span(offered->description));
            return comm::BlockExchange::Offer{offered, {bytes, offered->blocks[0], offered->blocks[1]}};
        });
        thread_ = std::thread([this] {
            while (!quit_.load())
                if (!exchange.serve()) std::this_thread::sleep_for(50us);
        });
    }
    ~Serving() {
        // Nobody stops answering before all have asked.
        MPI_Request done = MPI_REQUEST_NULL;
        MPI_Ibarrier(world_.get(), &done);
        for (int flag = 0; flag == 0;) {
            MPI_Test(&done, &flag, MPI_STATUS_IGNORE);
            std::this_thread::sleep_for(50us);
        }
        quit_.store(true);
        thread_.join();
    }

    comm::BlockExchange exchange;
    std::shared_ptr<Offered> offered = std::make_shared<Offered>(test::world().rank());

  private:
    comm::mpi::Communicator world_;
    std::atomic<bool> quit_{false};
    std::thread thread_;
};

base::Rank rank_of(int rank) { return base::Rank{static_cast<std::uint32_t>(rank)}; }

struct Fetched {
    Bytes one = Bytes(100'000);
    Bytes two = Bytes(7);
};

} // namespace

TEST_CASE("every rank reads the blocks of every other, in pieces, while it answers itself", "[exchange][mpi]") {
    for (const std::size_t piece : {std::size_t{1000}, std::size_t{64} << 20}) {
        Serving serving({piece, 4, 5s});
        for (int peer = 0; peer < test::world().size(); ++peer) {
            Bytes description;
            CHECK(serving.exchange.ask(rank_of(peer), "state", description) == Answer::done);
            CHECK(std::string(reinterpret_cast<const char*>(description.data()), description.size()) ==
                  "rank " + std::to_string(peer));
            const auto got = std::make_shared<Fetched>();
            const comm::BlockExchange::Part parts[] = {{1, 0, got->one}, {2, 0, got->two}};
            CHECK(serving.exchange.fetch(rank_of(peer), "state", parts, got) == Answer::done);
            const Offered expected(peer);
            CHECK(got->one == expected.blocks[0]);
            CHECK(got->two == expected.blocks[1]);
            // the same in order, read ahead through the exchange's memory
            comm::BlockExchange::Reader reader(serving.exchange, rank_of(peer), "state",
                                               {{2, 0, 7}, {1, 0, 100'000}, {1, 5, 0}, {1, 99'000, 1000}});
            for (const Bytes& range : {expected.blocks[1], expected.blocks[0], Bytes{},
                                       Bytes(expected.blocks[0].end() - 1000, expected.blocks[0].end())}) {
                Bytes read;
                const auto take = [&](std::uint64_t at, std::span<const std::byte> bytes) {
                    CHECK(at == read.size());
                    read.insert(read.end(), bytes.begin(), bytes.end());
                };
                CHECK(reader.next(take) == Answer::done);
                CHECK(read == range);
            }
            // a part of a block
            Bytes some(10);
            const comm::BlockExchange::Part middle[] = {{1, 500, some}};
            CHECK(serving.exchange.fetch(rank_of(peer), "state", middle, nullptr) == Answer::done);
            CHECK(some == Bytes(expected.blocks[0].begin() + 500, expected.blocks[0].begin() + 510));
        }
    }
}

TEST_CASE("what a rank does not have is refused", "[exchange][mpi]") {
    Serving serving({1000, 4, 5s});
    const base::Rank peer = rank_of((test::world().rank() + 1) % test::world().size());
    Bytes description;
    CHECK(serving.exchange.ask(peer, "another", description) == Answer::refused);
    const auto got = std::make_shared<Fetched>();
    const comm::BlockExchange::Part unknown_key[] = {{1, 0, got->one}};
    CHECK(serving.exchange.fetch(peer, "another", unknown_key, got) == Answer::refused);
    const comm::BlockExchange::Part unknown_block[] = {{3, 0, got->two}};
    CHECK(serving.exchange.fetch(peer, "state", unknown_block, got) == Answer::refused);
    comm::BlockExchange::Reader over_the_end(serving.exchange, peer, "state", {{1, 99'999, 2}});
    CHECK(over_the_end.next([](auto, auto) {}) == Answer::refused);
    const comm::BlockExchange::Part beyond_the_end[] = {{2, 1, got->two}};
    CHECK(serving.exchange.fetch(peer, "state", beyond_the_end, got) == Answer::refused);
}

TEST_CASE("the offered bytes stay alive until they have left", "[exchange][mpi]") {
    Serving serving({1000, 2, 5s});
    const base::Rank peer = rank_of((test::world().rank() + 1) % test::world().size());
    const auto got = std::make_shared<Fetched>();
    const comm::BlockExchange::Part parts[] = {{1, 0, got->one}};
    CHECK(serving.exchange.fetch(peer, "state", parts, got) == Answer::done);
    const std::weak_ptr<Offered> watched = serving.offered;
    CHECK(watched.use_count() >= 1);
    CHECK(got->one == Offered(static_cast<int>(peer.value())).blocks[0]);
}

TEST_CASE("a rank that does not answer is given up", "[exchange][mpi]") {
    if (test::world().size() < 2) return;
    comm::BlockExchange silent(test::world(), {1000, 4, 50ms}); // nobody serves
    const std::size_t before = comm::buried();
    Bytes description;
    const base::Rank peer = rank_of((test::world().rank() + 1) % test::world().size());
    CHECK(silent.ask(peer, "state", description) == Answer::silent);
    const auto got = std::make_shared<Fetched>();
    const comm::BlockExchange::Part parts[] = {{1, 0, got->one}};
    CHECK(silent.fetch(peer, "state", parts, got) == Answer::silent);
    CHECK(comm::buried() > before);
    CHECK(got.use_count() == 2); // its memory stays: an answer may still come
}
