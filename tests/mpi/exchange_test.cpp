// SPDX-License-Identifier: Apache-2.0
// Blocks that ranks read from each other, over MPI with all ranks of the launch.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "comm/kept.hpp"
#include "comm/mpi/communicator.hpp"
#include "mpi_world.hpp"
#include "support/catch.hpp"

namespace exchange_test {

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
                if (exchange.serve() == comm::BlockExchange::Served::nothing) std::this_thread::sleep_for(50us);
        });
    }
    ~Serving() {
        all_are_here(); // nobody stops answering before all have asked
        quit_.store(true);
        thread_.join();
    }
    void all_are_here() {
        MPI_Request done = MPI_REQUEST_NULL;
        MPI_Ibarrier(world_.get(), &done);
        for (int flag = 0; flag == 0; std::this_thread::sleep_for(50us)) MPI_Test(&done, &flag, MPI_STATUS_IGNORE);
    }

    comm::BlockExchange exchange;
    std::shared_ptr<Offered> offered = std::make_shared<Offered>(test::world().rank());

  private:
    comm::mpi::Communicator world_;
    std::atomic<bool> quit_{false};
    std::thread thread_;
};

base::Rank rank_of(int rank) { return base::Rank{static_cast<std::uint32_t>(rank)}; }

using Ranges = std::vector<comm::BlockExchange::Reader::Range>;

struct Read {
    Answer answer = Answer::done; ///< the first that is not `done`
    std::vector<Bytes> ranges;
};

/// Everything that `ranges` name, in order.
Read read(comm::BlockExchange& exchange, base::Rank from, const char* key, const Ranges& ranges) {
    comm::BlockExchange::Reader reader(exchange, from, key, ranges);
    Read all;
    for (std::size_t i = 0; i < ranges.size() && all.answer == Answer::done; ++i) {
        Bytes& range = all.ranges.emplace_back();
        all.answer = reader.next([&](std::uint64_t at, std::span<const std::byte> bytes) {
            CHECK(at == range.size());
            range.insert(range.end(), bytes.begin(), bytes.end());
        });
    }
    return all;
}

base::Rank next_rank() { return rank_of((test::world().rank() + 1) % test::world().size()); }

} // namespace

TEST_CASE("every rank reads the blocks of every other, in pieces, while it answers itself", "[exchange][mpi]") {
    for (const std::size_t piece : {std::size_t{1000}, std::size_t{64} << 20}) {
        Serving serving({piece, 4, 5s});
        for (int peer = 0; peer < test::world().size(); ++peer) {
            Bytes description;
            CHECK(serving.exchange.ask(rank_of(peer), "state", description) == Answer::done);
            CHECK(std::string(reinterpret_cast<const char*>(description.data()), description.size()) ==
                  "rank " + std::to_string(peer));
            const Offered expected(peer);
            const Bytes& one = expected.blocks[0];
            const Bytes& two = expected.blocks[1];
            const Read got = read(serving.exchange, rank_of(peer), "state",
                                  {{1, 0, 100'000}, {2, 0, 7}, {1, 5, 0}, {1, 99'000, 1000}, {1, 500, 10}});
            CHECK(got.answer == Answer::done);
            CHECK(got.ranges ==
                  std::vector<Bytes>{
                      one, two, {}, Bytes(one.end() - 1000, one.end()), Bytes(one.begin() + 500, one.begin() + 510)});
        }
    }
}

TEST_CASE("what a rank does not have is refused", "[exchange][mpi]") {
    Serving serving({1000, 4, 5s});
    Bytes description;
    CHECK(serving.exchange.ask(next_rank(), "another", description) == Answer::refused);
    const auto answer = [&](const char* key, const Ranges& ranges) {
        return read(serving.exchange, next_rank(), key, ranges).answer;
    };
    CHECK(answer("another", {{1, 0, 100'000}}) == Answer::refused);
    CHECK(answer("state", {{3, 0, 7}}) == Answer::refused); // no such block
    CHECK(answer("state", {{1, 99'999, 2}}) == Answer::refused);
    CHECK(answer("state", {{2, 1, 7}}) == Answer::refused); // beyond the end
}

TEST_CASE("the offered bytes stay alive until they have left, and no longer", "[exchange][mpi]") {
    Serving serving({1000, 2, 5s});
    const Read got = read(serving.exchange, next_rank(), "state", {{1, 0, 100'000}});
    CHECK(got.answer == Answer::done);
    CHECK(got.ranges[0] == Offered(static_cast<int>(next_rank().value())).blocks[0]);
    serving.all_are_here();
    for (int i = 0; i < 1000 && serving.offered.use_count() > 1; ++i) std::this_thread::sleep_for(5ms);
    CHECK(serving.offered.use_count() == 1);
}

TEST_CASE("a rank that does not answer is given up", "[exchange][mpi]") {
    if (test::world().size() < 2) return;
    comm::BlockExchange silent(test::world(), {1000, 4, 50ms}); // nobody serves
    std::size_t before = comm::kept_to_exit();
    Bytes description;
    CHECK(silent.ask(next_rank(), "state", description) == Answer::silent);
    CHECK(comm::kept_to_exit() > before);
    before = comm::kept_to_exit();
    CHECK(read(silent, next_rank(), "state", {{1, 0, 100'000}}).answer == Answer::silent);
    CHECK(comm::kept_to_exit() > before); // its memory stays: an answer may still come
}

} // namespace exchange_test
