// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoint_store.hpp"

#include <fstream>
#include <numeric>

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace ranktune::storage {
namespace {
using test::TemporaryDirectory;

const CheckpointKey key{base::TrialId(7), 27, base::Incarnation(2), base::Attempt(3)};

study::MemoryState sample_state() {
    study::MemoryState state;
    std::vector<float> weights(64 * 300);
    std::iota(weights.begin(), weights.end(), -1000.0F);
    const std::vector<double> odd = {1.0, -2.5, 1e300};
    const std::vector<std::int64_t> step = {123456789012};
    const std::vector<std::uint8_t> mask = {1, 0, 255};
    state.put<float>("layers.0.weight", weights, {64, 300});
    state.put<double>("a/b %.", odd);
    state.tensor({"step", study::DType::int64, {}, study::Layout::replicated},
                 std::as_bytes(std::span<const std::int64_t>(step)));
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
        } catch (const base::FormatError&) {
            ++found;
        }
    }
    CHECK(found > tried / 2); // the rest is padding
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{10}, std::size_t{64}, good.size() / 2, good.size() - 1}) {
        write_file(path, {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
        CHECK_THROWS_AS(store.load(reference), base::FormatError);
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
    CHECK_THROWS_AS(store.load(reference), base::FormatError);
}

TEST_CASE("a missing checkpoint is an I/O error", "[storage]") {
    const TemporaryDirectory home;
    CheckpointStore store(posix_file_system(), home.path());
    CHECK_THROWS_AS(store.load({1, checkpoint_path(key), 0, 0}), base::IoError);
}

} // namespace ranktune::storage
