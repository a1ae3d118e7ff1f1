// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoints/checkpoint_store.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <system_error>

#include "journal_fixture.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/bulk_write.hpp"
#include "support/catch.hpp"
#include "support/fake_device.hpp"

namespace ranktune::storage::checkpoint_store_test {
namespace {
using test::TemporaryDirectory;

const CheckpointKey key{base::TrialId(7), 27, base::Incarnation(2), base::AttemptId(3)};

study::MemoryState sample_state() {
    study::MemoryState state;
    std::vector<float> weights(64 * 300);
    std::iota(weights.begin(), weights.end(), -1000.0F);
    const std::vector<double> odd = {1.0, -2.5, 1e300};
    const std::vector<std::int64_t> step = {123456789012};
    const std::vector<std::uint8_t> mask = {1, 0, 255};
    state.put<float>("layers.0.weight", weights, {64, 300});
    state.put<double>("a/b %.", odd);
    state.tensor({"step", study::DType::int64, {}, study::Layout::replicated}, base::ConstBuffer(step));
    state.put("half", std::vector<base::Float16>{base::Float16(0.1F), base::Float16(-65504.0F)});
    state.put("brain", std::vector<base::BFloat16>(6, base::BFloat16(3.25F)), {2, 3});
    state.put<std::uint8_t>("mask", mask, {3, 1});
    state.put<float>("empty", std::span<const float>(), {0, 5});
    state.blob("rng", std::as_bytes(std::span<const double>(odd)));
    state.blob("nothing", {});
    return state;
}

bool equal(const study::MemoryState& a, const study::MemoryState& b) {
    const auto tensors = [](const auto& x, const auto& y) { return x.info == y.info && x.bytes == y.bytes; };
    const auto blobs = [](const auto& x, const auto& y) { return x.name == y.name && x.bytes == y.bytes; };
    return std::equal(a.stored_tensors().begin(), a.stored_tensors().end(), b.stored_tensors().begin(),
                      b.stored_tensors().end(), tensors) &&
           std::equal(a.stored_blobs().begin(), a.stored_blobs().end(), b.stored_blobs().begin(),
                      b.stored_blobs().end(), blobs);
}

std::vector<char> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::vector<char>& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

} // namespace

TEST_CASE("a checkpoint comes back with names, types, shapes, order and bytes", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    const study::MemoryState state = sample_state();
    const study::CheckpointRef reference = store.save(key, state);
    CHECK(reference.path == "checkpoints/7/27-2.3.h5");
    CHECK(reference.iteration == 27);
    CHECK(reference.digest == state.digest());
    CHECK(reference.bytes == std::filesystem::file_size(home.path() + "/" + reference.path));
    CHECK(equal(store.load(reference), state));
    CHECK(posix_file_system().list(home.path() + "/checkpoints/7").size() == 1);
}

TEST_CASE("checkpoint names are recognised", "[storage]") {
    for (const char* name : {"9-1.1.h5", "9-1.1", "9-1.1.h5.tmp", "12345-10.2.3.h5", "0-1.1.0.h5.tmp"}) {
        INFO(name);
        CHECK(is_checkpoint_name(name));
    }
    for (const char* name : {"", "best.pt", "9", "9-1", "9-1.", "9-1.1.h5x", "a9-1.1.h5", "9-1.1.2.3.h5", "-1.1.h5",
                             "9-1.1..h5", "9-1.1 .h5", ".h5", ".tmp", "9.1-1.h5"}) {
        INFO(name);
        CHECK_FALSE(is_checkpoint_name(name));
    }
}

TEST_CASE("an empty state and one of hundreds of tensors come back", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    CHECK(equal(store.load(store.save(key, {})), {}));
    study::MemoryState many;
    for (int i = 0; i < 700; ++i) {
        const std::vector<float> values(static_cast<std::size_t>(i * i % 40 * 97), static_cast<float>(i));
        many.put<float>("group" + std::to_string(i % 9) + ".tensor" + std::to_string(i), values);
        many.blob("blob" + std::to_string(i),
                  std::as_bytes(std::span(values)).first(std::min<std::size_t>(values.size(), 9)));
    }
    CHECK(equal(store.load(store.save(key, many)), many));
}

TEST_CASE("a damaged byte of a checkpoint is found, wherever it lies, or does no harm", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    const study::MemoryState state = sample_state();
    const study::CheckpointRef reference = store.save(key, state);
    const std::string path = home.path() + "/" + reference.path;
    const std::vector<char> good = read_file(path);
    std::size_t found = 0;
    std::size_t tried = 0;
    for (std::size_t at = 0; at < good.size(); at += at < 12000 || at + 400 > good.size() ? 37 : 997) {
        std::vector<char> bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x40);
        write_file(path, bad);
        ++tried;
        try {
            if (!equal(store.load(reference), state)) FAIL("byte " << at << " changed the state unseen");
        } catch (const DamageError&) {
            ++found;
        }
    }
    CHECK(found > tried / 2); // the rest is padding
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{10}, std::size_t{64}, good.size() / 2, good.size() - 1}) {
        write_file(path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
        CHECK_THROWS_AS(store.load(reference), DamageError);
    }
    write_file(path, good);
    CHECK(equal(store.load(reference), state));
}

TEST_CASE("a checkpoint of other parameters under the same name is refused", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    const study::CheckpointRef reference = store.save(key, sample_state());
    study::MemoryState other = sample_state();
    const std::vector<float> more = {1.0F};
    other.put<float>("more", more);
    CHECK(store.save(key, other).digest != reference.digest);
    CHECK_THROWS_AS(store.load(reference), DamageError);
}

TEST_CASE("a checkpoint of a newer version is not damaged", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    const auto reference = store.save(key, sample_state());
    const std::string path = home.path() + "/" + reference.path;
    auto bytes = read_file(path);
    const auto seal = std::span(bytes).last(64);
    seal[7] = '2';
    const std::uint32_t crc = base::crc32c(std::as_bytes(seal.first(60)));
    std::memcpy(seal.data() + 60, &crc, sizeof crc);
    write_file(path, bytes);
    try {
        static_cast<void>(store.load(reference));
        FAIL("it was read");
    } catch (const base::FormatError& error) {
        CHECK(dynamic_cast<const DamageError*>(&error) == nullptr);
        CHECK(std::string(error.what()).find("newer") != std::string::npos);
    }
}

TEST_CASE("a missing checkpoint is an I/O error", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    CHECK_THROWS_AS(store.load({1, checkpoint_path(key), 0, 0}), base::IoError);
}

TEST_CASE("a large state gives the same file with direct writes and with the page cache", "[storage]") {
    const TemporaryDirectory home;
    study::MemoryState state;
    std::vector<float> large(17'000'001); // 65 MiB: two direct blocks or five page-cache blocks, not whole pages
    std::iota(large.begin(), large.end(), 0.0F);
    const std::vector<float> small(100, 1.5F);
    state.put<float>("small", small);
    state.put<float>("large", large);
    state.put<float>("again", std::span<const float>(large).first(70'000));
    std::vector<char> files[2];
    for (const bool direct : {true, false}) {
        CheckpointStore store(posix_file_system(), home.path(), direct);
        const auto reference = store.save(key, state);
        CHECK(reference.digest == state.digest());
        CHECK(equal(store.load(reference), state));
        files[direct ? 1 : 0] = read_file(home.path() + "/" + reference.path);
    }
    CHECK(files[0] == files[1]);
}

TEST_CASE("an error of the writing thread is thrown to the caller", "[storage]") {
    /// Fails with "no space" after some bytes.
    struct Full final : File {
        void write_at(std::uint64_t, std::span<const std::byte> bytes) override {
            written += bytes.size();
            if (written > room)
                throw base::IoError("cannot write", "f", std::make_error_code(std::errc::no_space_on_device));
        }
        std::size_t read_at(std::uint64_t, std::span<std::byte>) override { return 0; }
        void sync() override {}
        [[nodiscard]] std::uint64_t size() const override { return 0; }
        [[nodiscard]] FileIdentity identity() const override { return {}; }
        bool reserve(std::uint64_t) override { return false; }
        void truncate(std::uint64_t) override {}
        std::uint64_t written = 0;
        std::uint64_t room = 20'000'000;
    };
    const std::vector<std::byte> bytes(40'000'000);
    Full full;
    bool ran = false;
    CHECK_THROWS_AS(write_parts(full, {{0, bytes}}, true, [&] { ran = true; }), base::IoError);
    CHECK(ran);
    Full room;
    room.room = 100'000'000;
    CHECK_THROWS_AS(write_parts(room, {{0, bytes}}, true, [] { throw base::Error("checksums"); }), base::Error);
    CHECK(room.written == 40'000'000); // the writing thread has ended
}

TEST_CASE("shards written by any number of ranks are read by any other number", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    constexpr std::uint64_t rows = 7;
    std::vector<double> all(rows * 3);
    std::iota(all.begin(), all.end(), 0.5);
    const std::vector<float> same = {1.0F, 2.0F};
    const auto span_of = [&](std::uint64_t ranks, std::uint64_t rank) {
        const std::uint64_t first = rows * rank / ranks;
        return std::pair(first, rows * (rank + 1) / ranks - first);
    };
    for (const std::uint32_t ranks : {1U, 2U, 3U, 10U}) { // with ten, some ranks have no row
        std::vector<study::CheckpointRef> shards;
        CheckpointKey shard = key;
        shard.shards = ranks;
        for (shard.shard = 0; shard.shard < ranks; ++shard.shard) {
            study::MemoryState part;
            if (shard.shard == 0) part.put<float>("same", same);
            if (shard.shard == 0) part.blob("step", std::as_bytes(std::span(same)));
            const auto [first, count] = span_of(ranks, shard.shard);
            part.put_rows<double>("moments", std::span<const double>(all).subspan(3 * first, 3 * count), {rows, 3},
                                  first, count);
            shards.push_back(store.save(shard, part));
        }
        const auto whole = join_shards(key, shards);
        CHECK(whole.path == checkpoint_path(key));
        CHECK(whole.shards.size() == ranks);
        REQUIRE(paths_of(whole.path, ranks).size() == ranks);
        CHECK(paths_of(whole.path, ranks)[0] == "checkpoints/7/27-2.3.0.h5");

        study::MemoryState joined = store.load(whole).whole();
        std::vector<double> back(all.size());
        joined.get<double>("moments", back, {rows, 3});
        CHECK(back == all);
        for (const std::uint64_t others : {1U, 2U, 3U}) {
            for (std::uint64_t rank = 0; rank < others; ++rank) {
                const auto source = store.open_shards(whole);
                const auto [first, count] = span_of(others, rank);
                std::vector<double> mine(3 * count);
                source->get_rows<double>("moments", mine, {rows, 3}, first, count);
                CHECK(std::ranges::equal(mine, std::span<const double>(all).subspan(3 * first, 3 * count)));
                std::vector<float> here(2);
                source->get<float>("same", here);
                CHECK(here == same);
                CHECK(source->blob("step").size() == 8);
                CHECK_THROWS_AS(source->get<float>("other", here), base::FormatError);
            }
        }
        for (const auto& path : paths_of(whole.path, ranks)) CHECK(std::filesystem::exists(home.path() + "/" + path));
        shard.shard = ranks - 1;
        store.discard(shard);
        CHECK_THROWS_AS(store.load(whole), base::IoError);
        CHECK_THROWS_AS(store.open_shards(whole), base::IoError);
    }
}

TEST_CASE("device memory is stored and read back only through the device's copy functions", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    testing::FakeDevice device;
    const std::vector<base::BFloat16> weights{base::BFloat16(1.0F), base::BFloat16(-2.0F), base::BFloat16(3.0F)};
    const std::vector<float> rows{0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F};
    CheckpointKey shard = key;
    shard.shards = 1;
    study::MemoryState state;
    state.put("weights", testing::OnDevice<base::BFloat16>(device, weights).buffer());
    state.put_rows("table", testing::OnDevice<float>(device, rows).buffer(), {3, 2}, 0, 3);
    const auto whole = join_shards(key, {store.save(shard, state)});
    CHECK(device.to_host == state.bytes());

    const auto source = store.open_shards(whole);
    const testing::OnDevice<base::BFloat16> back(device, std::vector<base::BFloat16>(3));
    const testing::OnDevice<float> two_rows(device, std::vector<float>(4));
    device.from_host = 0;
    source->get("weights", back.buffer());
    source->get_rows("table", two_rows.buffer(), {3, 2}, 1, 2);
    CHECK(device.from_host == 6 + 16);
    CHECK(static_cast<float>(back.values()[2]) == 3.0F);
    CHECK(two_rows.values() == std::vector<float>{2.0F, 3.0F, 4.0F, 5.0F});
    CHECK_THROWS_AS(source->tensor(source->tensors()[0], two_rows.buffer()), base::UsageError);
}

TEST_CASE("a damaged or foreign shard is found when it is read", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    const std::vector<double> rows = {1.0, 2.0, 3.0, 4.0};
    std::vector<study::CheckpointRef> shards;
    CheckpointKey shard = key;
    shard.shards = 2;
    for (shard.shard = 0; shard.shard < 2; ++shard.shard) {
        study::MemoryState part;
        part.put_rows<double>("m", std::span<const double>(rows).subspan(2 * shard.shard, 2), {4}, 2 * shard.shard, 2);
        shards.push_back(store.save(shard, part));
    }
    const auto whole = join_shards(key, shards);
    const std::string path = home.path() + "/" + paths_of(whole.path, 2)[1];
    auto bytes = read_file(path);
    bytes[bytes.size() - 64 - 4] ^= 0x10; // in the rows, before the seal
    write_file(path, bytes);
    const auto source = store.open_shards(whole);
    std::vector<double> two(2);
    source->get_rows<double>("m", two, {4}, 0, 2);
    CHECK(two == std::vector<double>{1.0, 2.0});
    CHECK_THROWS_AS(source->get_rows<double>("m", two, {4}, 1, 2), DamageError);
    CHECK_THROWS_AS(store.load(whole), DamageError);
    auto foreign = whole;
    foreign.shards[0] ^= 1;
    CHECK_THROWS_AS(store.open_shards(foreign), DamageError);
}

} // namespace ranktune::storage::checkpoint_store_test
