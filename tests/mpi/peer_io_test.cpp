// SPDX-License-Identifier: Apache-2.0
// States that groups of one size take from the memory of groups of another, over MPI with all ranks of the launch.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi/communicator.hpp"
#include "mpi_world.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/peer_io.hpp"

namespace peer_io_test {

using namespace ranktune;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t rows = 7;
constexpr std::uint64_t columns = 1000;

base::Rank rank_of(int rank) { return base::Rank{static_cast<std::uint32_t>(rank)}; }

double value(std::uint64_t row, std::uint64_t column) { return static_cast<double>(1000 * row + column); }

/// Rows `first` to `first + count` of the tensor that all tests move.
std::vector<double> rows_of(std::uint64_t first, std::uint64_t count) {
    std::vector<double> values;
    for (std::uint64_t row = first; row < first + count; ++row)
        for (std::uint64_t column = 0; column < columns; ++column) values.push_back(value(row, column));
    return values;
}

/// The rows of rank `k` of `n`, of so many: the first one, and their number.
std::pair<std::uint64_t, std::uint64_t> share(int k, int n, std::uint64_t all = rows) {
    const auto begin = all * static_cast<std::uint64_t>(k) / static_cast<std::uint64_t>(n);
    return {begin, all * static_cast<std::uint64_t>(k + 1) / static_cast<std::uint64_t>(n) - begin};
}

/// A rank with its checkpoints on disk and in memory, and its service thread. Ends on all ranks together.
class Node {
  public:
    explicit Node(const std::string& name, std::uint64_t keep_bytes = 1 << 20)
        : directory("peer_io_" + std::to_string(test::world().size()) + "_" + name),
          world_(comm::mpi::Communicator::world().duplicate()),
          exchange_(test::world(), {4096, 4, 5s}),
          disk_(storage::posix_file_system(), std::filesystem::absolute(directory).string()),
          io(disk_, exchange_, keep_bytes, [this](std::string_view line) { lines.emplace_back(line); }),
          thread_([this] {
              while (!quit_.load())
                  if (exchange_.serve() == comm::BlockExchange::Served::nothing) std::this_thread::sleep_for(50us);
          }) {
        if (test::world().rank() == 0) std::filesystem::create_directories(directory);
        barrier();
    }
    ~Node() {
        barrier();
        quit_.store(true);
        thread_.join();
        if (test::world().rank() == 0) std::filesystem::remove_all(directory);
    }
    void barrier() {
        MPI_Request done = MPI_REQUEST_NULL;
        MPI_Ibarrier(world_.get(), &done);
        for (int flag = 0; flag == 0; std::this_thread::sleep_for(50us)) MPI_Test(&done, &flag, MPI_STATUS_IGNORE);
    }
    [[nodiscard]] bool says(const std::string& text) const {
        return std::ranges::any_of(lines, [&](const auto& line) { return line.find(text) != std::string::npos; });
    }

    std::string directory;

  private:
    comm::mpi::Communicator world_;
    comm::BlockExchange exchange_;
    worker::StoreIo disk_;

  public:
    worker::PeerIo io;
    std::vector<std::string> lines;

  private:
    std::atomic<bool> quit_{false};
    std::thread thread_;
};

storage::CheckpointKey key_at(base::Iteration iteration) {
    return {base::TrialId{3}, iteration, base::Incarnation{1}, base::AttemptId{1}};
}

/// Rank 0 saves a state that rank 0 alone writes. All ranks get the reference.
study::CheckpointRef saved_by_first(Node& node, base::Iteration iteration, double bias) {
    const auto state = std::make_shared<study::MemoryState>();
    const auto weights = rows_of(0, rows);
    state->put<double>("weights", std::span<const double>(weights), {rows, columns});
    state->put<double>("bias", std::span<const double>(&bias, 1));
    const char text[] = {'a', 'b', 'c'};
    state->blob("text", std::as_bytes(std::span(text)));
    if (test::world().rank() == 0) static_cast<void>(node.io.save(key_at(iteration), state));
    node.barrier();
    return {iteration, storage::checkpoint_path(key_at(iteration)), state->bytes(), state->digest()};
}

/// The first `n` ranks save a shard each. All ranks get the reference.
study::CheckpointRef saved_in_shards(Node& node, int n) {
    std::vector<study::CheckpointRef> shards;
    for (int k = 0; k < n; ++k) {
        const auto [first, count] = share(k, n);
        const auto state = std::make_shared<study::MemoryState>();
        const auto mine = rows_of(first, count);
        state->put_rows<double>("weights", std::span<const double>(mine), {rows, columns}, first, count);
        const double bias = 0.5;
        if (k == 0) state->put<double>("bias", std::span<const double>(&bias, 1));
        auto key = key_at(5);
        key.shard = static_cast<std::uint32_t>(k);
        key.shards = static_cast<std::uint32_t>(n);
        if (test::world().rank() == k) static_cast<void>(node.io.save(key, state));
        shards.push_back({5, {}, state->bytes(), state->digest()});
    }
    node.barrier();
    return storage::join_shards(key_at(5), shards);
}

std::vector<base::Rank> first_ranks(int n) {
    std::vector<base::Rank> ranks;
    for (int k = 0; k < n; ++k) ranks.push_back(rank_of(k));
    return ranks;
}

} // namespace

TEST_CASE("a state comes from the memory of the rank that saved it, without its file", "[peer-io][mpi]") {
    Node node("memory");
    const auto checkpoint = saved_by_first(node, 5, 0.25);
    if (test::world().rank() == 0) std::filesystem::remove(node.directory + "/" + checkpoint.path);
    node.barrier();
    study::MemoryState state = node.io.load(checkpoint, {rank_of(0)});
    CHECK(state.digest() == checkpoint.digest);
    std::vector<double> weights(rows * columns);
    state.get<double>("weights", std::span(weights), {rows, columns});
    CHECK(weights == rows_of(0, rows));
    CHECK(state.blob("text").size() == 3);
    CHECK(node.says("comes from the memory of rank 0"));
}

TEST_CASE("a state that its holder has given up comes from disk", "[peer-io][mpi]") {
    Node node("given_up");
    const auto older = saved_by_first(node, 5, 0.25);
    const auto newer = saved_by_first(node, 6, 0.75);
    static_cast<void>(saved_by_first(node, 7, 0.5)); // only two of a trial are kept
    for (const auto& checkpoint : {older, newer}) {
        study::MemoryState state = node.io.load(checkpoint, {rank_of(0)});
        double bias = 0.0;
        state.get<double>("bias", std::span(&bias, 1));
        CHECK(bias == (checkpoint.iteration == 5 ? 0.25 : 0.75));
        CHECK(state.digest() == checkpoint.digest);
    }
    if (test::world().rank() != 0) CHECK(node.says("is read from disk: rank 0 does not have it any more"));
    // Another state under the same name is none of it.
    auto foreign = newer;
    foreign.digest += 1;
    if (test::world().rank() != 0) {
        CHECK_THROWS_AS(node.io.load(foreign, {rank_of(0)}), storage::DamageError);
        CHECK(node.says("rank 0 has another state of this name"));
    }
}

TEST_CASE("shards of any number of ranks reach any other number of ranks from memory", "[peer-io][mpi]") {
    const int size = test::world().size();
    for (int donors = 1; donors <= size; ++donors) {
        for (const bool on_disk : {false, true}) {
            Node node("shards" + std::to_string(donors) + (on_disk ? "d" : "m"));
            const auto checkpoint = saved_in_shards(node, donors);
            if (!on_disk && test::world().rank() == 0) std::filesystem::remove_all(node.directory + "/checkpoints");
            node.barrier();
            // All ranks of the launch are the ranks of the group that takes it.
            const auto [first, count] = share(test::world().rank(), size);
            const auto source = node.io.open(checkpoint, on_disk ? std::vector<base::Rank>{} : first_ranks(donors));
            std::vector<double> mine(count * columns);
            source->get_rows<double>("weights", std::span(mine), {rows, columns}, first, count);
            CHECK(mine == rows_of(first, count));
            double bias = 0.0;
            source->get<double>("bias", std::span(&bias, 1));
            CHECK(bias == 0.5);
            CHECK(source->tensors().size() == static_cast<std::size_t>(donors) + 1);
            CHECK_THROWS_AS(source->blob("none"), base::Error);
            CHECK(node.says("comes from the memory of") == !on_disk);
        }
    }
}

TEST_CASE("shards that are gone from memory in the middle are read from disk", "[peer-io][mpi]") {
    Node node("gone");
    const int size = test::world().size();
    const auto checkpoint = saved_in_shards(node, size);
    const auto source = node.io.open(checkpoint, first_ranks(size));
    node.barrier();
    for (const base::Iteration later : {9, 10}) static_cast<void>(saved_by_first(node, later, 0.0)); // rank 0 drops it
    std::vector<double> all(rows * columns);
    source->get_rows<double>("weights", std::span(all), {rows, columns}, 0, rows);
    CHECK(all == rows_of(0, rows));
}

namespace {

// 128 MiB.
constexpr std::uint64_t large_rows = 32;
constexpr std::uint64_t large_columns = std::uint64_t{1} << 20;

std::vector<float> large_rows_of(std::uint64_t first, std::uint64_t count) {
    std::vector<float> values(count * large_columns);
    for (std::uint64_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(((first * large_columns + i) * 2654435761U) % 1000003U);
    return values;
}

/// The rows of member k of n, as a shard.
std::shared_ptr<study::MemoryState> large_shard(const std::vector<float>& values, int k, int n) {
    auto state = std::make_shared<study::MemoryState>();
    const auto [first, count] = share(k, n, large_rows);
    state->put_rows<float>("weights", std::span<const float>(values), {large_rows, large_columns}, first, count);
    return state;
}

} // namespace

TEST_CASE("128 MiB of 1, 3 and 2 ranks reach 3, 1 and 2 others from memory, unchanged", "[peer-io][mpi]") {
    const int rank = test::world().rank();
    for (const auto& [donors, takers] : {std::pair{1, 3}, std::pair{3, 1}, std::pair{2, 2}}) {
        if (donors + takers > test::world().size()) continue;
        CAPTURE(donors, takers);
        Node node("large" + std::to_string(donors), std::uint64_t{256} << 20);
        if (rank < donors) {
            const auto [first, count] = share(rank, donors, large_rows);
            auto key = key_at(5);
            key.shard = static_cast<std::uint32_t>(rank);
            key.shards = static_cast<std::uint32_t>(donors);
            static_cast<void>(node.io.save(key, large_shard(large_rows_of(first, count), rank, donors)));
        }
        // What every donor's shard is, as all ranks know it.
        std::vector<study::CheckpointRef> shards;
        for (int k = 0; k < donors; ++k) {
            const auto [first, count] = share(k, donors, large_rows);
            const auto state = large_shard(large_rows_of(first, count), k, donors);
            shards.push_back({5, {}, state->bytes(), state->digest()});
        }
        node.barrier();
        if (rank == 0) std::filesystem::remove_all(node.directory + "/checkpoints");
        node.barrier();
        if (rank >= donors) {
            const int k = rank - donors;
            const auto [first, count] = share(k, takers, large_rows);
            const auto source = node.io.open(storage::join_shards(key_at(5), shards), first_ranks(donors));
            std::vector<float> mine(count * large_columns);
            source->get_rows<float>("weights", std::span(mine), {large_rows, large_columns}, first, count);
            CHECK(large_shard(mine, k, takers)->digest() ==
                  large_shard(large_rows_of(first, count), k, takers)->digest());
            CHECK(node.says("comes from the memory of"));
        }
    }
}

} // namespace peer_io_test
