// SPDX-License-Identifier: Apache-2.0
// Data that the nodes of a launch copy together: each rank is a node.
#include <cstring>
#include <thread>

#include "comm/mpi/communicator.hpp"
#include "mpi_world.hpp"
#include "ranktune/base/digest.hpp"
#include "staging_fixture.hpp"
#include "support/catch.hpp"

namespace staging_test {

using namespace ranktune;
using namespace ranktune::testing;
using namespace std::chrono_literals;

namespace {

int rank() { return test::world().rank(); }
int size() { return test::world().size(); }

data::Nodes nodes() {
    data::Nodes nodes;
    for (int r = 0; r < size(); ++r) nodes.ranks.push_back({base::Rank{static_cast<std::uint32_t>(r)}});
    nodes.own = static_cast<std::size_t>(rank());
    return nodes;
}

std::uint64_t sum(std::uint64_t value) {
    std::uint64_t all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/// The folder of rank 0, on all ranks.
std::string common_folder(const std::string& own) {
    std::string path = own;
    path.resize(200);
    MPI_Bcast(path.data(), 200, MPI_CHAR, 0, MPI_COMM_WORLD);
    return path.c_str();
}

/// Answers what other nodes ask until all of them have what they want.
void serve_until_all_are_over(comm::BlockExchange& exchange, const comm::mpi::Communicator& world,
                              const std::function<bool()>& over) {
    MPI_Request done = MPI_REQUEST_NULL;
    bool waits = false;
    for (int flag = 0; flag == 0;) {
        static_cast<void>(exchange.serve());
        if (!waits && over()) {
            MPI_Ibarrier(world.get(), &done);
            waits = true;
        }
        if (waits) MPI_Test(&done, &flag, MPI_STATUS_IGNORE);
        std::this_thread::sleep_for(100us);
    }
}

struct Scene {
    TemporaryDirectory directory;
    std::string original = common_folder(directory.path()) + "/original.npy";
    comm::mpi::Communicator world = comm::mpi::Communicator::world().duplicate();
    comm::BlockExchange exchange;
    study::StudySpec spec = study_of({{.name = "train", .path = original}});

    /// `patience`: with a rank that does not answer.
    explicit Scene(const std::string& text, std::chrono::milliseconds patience = 10min)
        : exchange(test::world(), {.patience = patience}) {
        if (rank() == 0) write_file(original, text);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Scene() { MPI_Barrier(MPI_COMM_WORLD); } // rank 0 removes the original
    [[nodiscard]] std::string place() const { return directory.path() + "/node"; }
};

} // namespace

TEST_CASE("nodes together read a file once, and each has a copy", "[staging][mpi]") {
    const std::string text = data_text(123'456);
    Scene scene(text);
    {
        StagingRank node(scene.place(), scene.spec, 1U << 30U, storage::posix_file_system(), nodes(), &scene.exchange,
                         10min, "machine " + std::to_string(rank())); // each has been started by itself
        serve_until_all_are_over(scene.exchange, scene.world, [&] { return node.is_over(); });
        CHECK(read_file(node.path()) == text);
        CHECK(node.path() != scene.original);
        CHECK(sum(node.stager().figures().read) == text.size());
        CHECK(node.stager().figures().copied == text.size());
    }
    CHECK(names_in(scene.place()).empty());
}

TEST_CASE("pieces of a node that does not answer are read from the file", "[staging][mpi]") {
    const std::string text = data_text(50'000);
    Scene scene(text, 50ms);
    const bool silent = rank() == size() - 1 && size() > 1;
    std::unique_ptr<StagingRank> node;
    if (!silent)
        node = std::make_unique<StagingRank>(scene.place(), scene.spec, 1U << 30U, storage::posix_file_system(),
                                             nodes(), &scene.exchange, 50ms);
    serve_until_all_are_over(scene.exchange, scene.world, [&] { return !node || node->is_over(); });
    if (node) CHECK(read_file(node->path()) == text);
}

TEST_CASE("a node that answers is waited for, however long it reads", "[staging][mpi]") {
    const std::string text = data_text(20'000);
    Scene scene(text);
    const bool slow = rank() == size() - 1 && size() > 1;
    int questions = 0;
    const auto key = data::list_files(scene.spec.data[0]).key;
    if (slow) // has nothing when it is asked for the first times, and then its own pieces at once
        scene.exchange.offer([&](std::string_view name) -> std::optional<comm::BlockExchange::Offer> {
            auto news = std::make_shared<std::vector<std::byte>>(sizeof(std::uint64_t));
            if (name.starts_with(data::name_of_bytes(key) + "0/") && ++questions > 8 * size()) {
                std::vector<data::PresentPiece> pieces;
                for (auto i = static_cast<std::uint64_t>(rank()); i < 20; i += static_cast<std::uint64_t>(size()))
                    pieces.push_back(
                        {i, base::Digest().add(std::as_bytes(std::span(text).subspan(i * 1000, 1000))).value()});
                const std::uint64_t count = pieces.size();
                std::memcpy(news->data(), &count, sizeof count);
                const auto bytes = std::as_bytes(std::span(pieces));
                news->insert(news->end(), bytes.begin(), bytes.end());
            }
            return comm::BlockExchange::Offer{news, {*news, std::as_bytes(std::span(text))}};
        });
    MPI_Barrier(MPI_COMM_WORLD);
    std::unique_ptr<StagingRank> node;
    if (!slow) // without patience for those that have not begun
        node = std::make_unique<StagingRank>(scene.place(), scene.spec, 1U << 30U, storage::posix_file_system(),
                                             nodes(), &scene.exchange, 0ms);
    serve_until_all_are_over(scene.exchange, scene.world, [&] { return !node || node->is_over(); });
    if (node) CHECK(read_file(node->path()) == text);
    if (size() == 2 && node) CHECK(node->stager().figures().read == text.size() / 2);
}

TEST_CASE("pieces of a node that has a copy, or has no room for one, are read once", "[staging][mpi]") {
    const std::string text = data_text(50'000);
    Scene scene(text);
    const bool last = rank() == size() - 1;
    const bool has_copy = GENERATE(true, false);
    const std::string copy = scene.place() + "/" + data::list_files(scene.spec.data[0]).copy_name("machine");
    if (last && has_copy) write_file(copy + "/original.npy", text);
    {
        StagingRank node(scene.place(), scene.spec, last && !has_copy ? 100 : 1U << 30U, storage::posix_file_system(),
                         nodes(), &scene.exchange, 10min, "machine");
        serve_until_all_are_over(scene.exchange, scene.world, [&] { return node.is_over(); });
        CHECK(read_file(node.path()) == text);
        CHECK((node.path() == scene.original) == (last && !has_copy));
        CHECK(sum(node.stager().figures().read) == (size() > 1 ? text.size() : 0));
    }
}

TEST_CASE("pieces of a node that never begins are read by others", "[staging][mpi]") {
    const std::string text = data_text(20'000);
    Scene scene(text);
    const bool refuses = rank() == size() - 1 && size() > 1;
    if (refuses) scene.exchange.offer([](std::string_view) { return std::nullopt; });
    std::unique_ptr<StagingRank> node;
    if (!refuses)
        node = std::make_unique<StagingRank>(scene.place(), scene.spec, 1U << 30U, storage::posix_file_system(),
                                             nodes(), &scene.exchange, 0ms);
    serve_until_all_are_over(scene.exchange, scene.world, [&] { return !node || node->is_over(); });
    if (node) CHECK(read_file(node->path()) == text);
}

TEST_CASE("a piece that comes damaged twice is read from the file", "[staging][mpi]") {
    const std::string text = data_text(20'000);
    Scene scene(text);
    const std::string damaged(text.size(), '?');
    const bool liar = rank() == size() - 1 && size() > 1;
    if (liar) // says that it has everything, and sends other bytes
        scene.exchange.offer([&](std::string_view name) -> std::optional<comm::BlockExchange::Offer> {
            auto news = std::make_shared<std::vector<std::byte>>(sizeof(std::uint64_t));
            const auto key = data::list_files(scene.spec.data[0]).key;
            if (name.starts_with(data::name_of_bytes(key) + "0/")) {
                const std::uint64_t count = 20;
                news->resize(sizeof count + count * sizeof(data::PresentPiece));
                std::memcpy(news->data(), &count, sizeof count);
                for (std::uint64_t i = 0; i < count; ++i) {
                    const auto piece = std::as_bytes(std::span(text).subspan(i * 1000, 1000));
                    const data::PresentPiece present{i, base::Digest().add(piece).value()};
                    std::memcpy(news->data() + sizeof count + i * sizeof present, &present, sizeof present);
                }
            }
            return comm::BlockExchange::Offer{news, {*news, std::as_bytes(std::span(damaged))}};
        });
    MPI_Barrier(MPI_COMM_WORLD);
    std::unique_ptr<StagingRank> node;
    if (!liar)
        node = std::make_unique<StagingRank>(scene.place(), scene.spec, 1U << 30U, storage::posix_file_system(),
                                             nodes(), &scene.exchange, 10min);
    serve_until_all_are_over(scene.exchange, scene.world, [&] { return !node || node->is_over(); });
    if (node) CHECK(read_file(node->path()) == text);
    if (size() == 2 && node)
        CHECK_THAT(node->log(), Catch::Contains("came damaged twice from rank 1 and is read from the file"));
}

} // namespace staging_test
