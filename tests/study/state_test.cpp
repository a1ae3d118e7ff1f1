// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/state.hpp"

#include <array>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/fake_device.hpp"

namespace state_test {

using namespace ranktune;
using namespace ranktune::study;

namespace {
const std::array<float, 6> weights{1, 2, 3, 4, 5, 6};
const std::array<std::byte, 3> raw{std::byte{1}, std::byte{0}, std::byte{255}};

MemoryState example() {
    MemoryState state;
    state.put<float>("weight", weights, {2, 3});
    state.put<double>("scale", std::array{0.5}, {1});
    state.blob("counters", raw);
    return state;
}
TEST_CASE("a sharded tensor is saved in parts and gives any rows back", "[study]") {
    // Rows 0-1, 2 and 3-4 of a 5 x 2 tensor, from three ranks.
    const std::vector<std::int32_t> all = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
    const auto rows = [&](std::size_t first, std::size_t count) {
        return std::span(all).subspan(2 * first, 2 * count);
    };
    MemoryState state;
    state.put_rows<std::int32_t>("m", rows(3, 2), {5, 2}, 3, 2);
    state.put_rows<std::int32_t>("m", rows(0, 2), {5, 2}, 0, 2);
    state.put_rows<std::int32_t>("m", rows(2, 1), {5, 2}, 2, 1);
    for (std::uint64_t first = 0; first <= 5; ++first) {
        for (std::uint64_t count = 0; first + count <= 5; ++count) {
            std::vector<std::int32_t> back(2 * count, -1);
            state.get_rows<std::int32_t>("m", back, {5, 2}, first, count);
            CHECK(std::ranges::equal(back, rows(first, count)));
        }
    }
    std::vector<std::int32_t> back(2);
    CHECK_THROWS_AS(state.get_rows<std::int32_t>("m", back, {5, 2}, 5, 1), base::UsageError);
    CHECK_THROWS_AS(state.get_rows<std::int32_t>("m", back, {6, 2}, 0, 1), base::FormatError);
    CHECK_THROWS_AS(state.get<std::int32_t>("m", back, {1, 2}), base::FormatError);
    CHECK_THROWS_AS(state.put_rows<std::int32_t>("m", rows(2, 1), {5, 2}, 2, 1), base::UsageError); // twice

    MemoryState whole = state.whole();
    REQUIRE(whole.stored_tensors().size() == 1);
    std::vector<std::int32_t> joined(10);
    whole.get<std::int32_t>("m", joined, {5, 2});
    CHECK(joined == all);

    MemoryState gap;
    gap.put_rows<std::int32_t>("m", rows(0, 2), {5, 2}, 0, 2);
    CHECK_THROWS_AS(gap.whole(), base::FormatError);
    CHECK_THROWS_AS(gap.get_rows<std::int32_t>("m", back, {5, 2}, 2, 1), base::FormatError);
}

TEST_CASE("the digest of a state is the same for bytes that come in pieces", "[study]") {
    StateDigest whole;
    StateDigest pieces;
    const auto bytes = std::as_bytes(std::span(weights));
    const TensorInfo info{"weight", DType::float32, {2, 3}};
    whole.tensor(info, weights);
    pieces.begin(info);
    for (std::size_t at = 0; at < bytes.size(); at += 5)
        pieces.add(bytes.subspan(at, std::min<std::size_t>(5, bytes.size() - at)));
    CHECK(pieces.value() == whole.value());
}

} // namespace

TEST_CASE("a state gives back what was saved", "[study]") {
    MemoryState state = example();
    std::array<float, 6> back{};
    state.get<float>("weight", back, {2, 3});
    CHECK(back == weights);
    CHECK((state.blob("counters") == std::vector<std::byte>(raw.begin(), raw.end())));
    CHECK(state.bytes() == 6 * 4 + 8 + 3);
    REQUIRE(state.tensors().size() == 2);
    CHECK((state.tensors()[0] == TensorInfo{"weight", DType::float32, {2, 3}, Layout::replicated}));
}

TEST_CASE("loading a missing tensor, or one of another type or shape, is refused", "[study]") {
    MemoryState state = example();
    std::array<float, 6> back{};
    std::array<double, 6> wide{};
    CHECK_THROWS_AS(state.get<float>("bias", back), base::FormatError);
    CHECK_THROWS_AS(state.get<float>("weight", back, {3, 2}), base::FormatError);
    CHECK_THROWS_AS(state.get<double>("weight", wide, {2, 3}), base::FormatError);
    CHECK_THROWS_AS(state.get<float>("weight", std::span(back).first(5), {2, 3}), base::UsageError);
    CHECK_THROWS_AS(state.blob("weight"), base::FormatError);
}

TEST_CASE("saving a name twice, or bytes that do not fit the shape, is refused", "[study]") {
    MemoryState state = example();
    CHECK_THROWS_AS(state.put<float>("weight", weights), base::UsageError);
    CHECK_THROWS_AS(state.blob("counters", raw), base::UsageError);
    CHECK_THROWS_AS(state.put<float>("other", weights, {2, 2}), base::UsageError);
    CHECK_THROWS_AS(state.put<float>("other", weights, {1ULL << 62U, 1ULL << 62U}), base::UsageError);
}

TEST_CASE("numbers of another type than the description says are refused", "[study]") {
    MemoryState state;
    const TensorInfo info{"weight", DType::int32, {2, 3}};
    CHECK_THROWS_WITH(state.tensor(info, weights), "tensor 'weight': 6 float32 on the host are not int32[2, 3]");
    CHECK_THROWS_AS(StateDigest().tensor(info, weights), base::UsageError);
    MemoryState saved = example();
    std::array<std::int32_t, 6> back{};
    CHECK_THROWS_AS(saved.tensor(saved.tensors()[0], base::Buffer(back)), base::UsageError);
}

TEST_CASE("a tensor without elements and a scalar can be saved", "[study]") {
    MemoryState state;
    state.tensor(TensorInfo{"empty", DType::int64, {0, 7}, Layout::replicated}, std::span<const std::int64_t>());
    const double value = 2.0;
    const TensorInfo scalar{"scalar", DType::float64, {}, Layout::replicated};
    state.tensor(scalar, base::ConstBuffer(std::span(&value, 1)));
    double back = 0.0;
    state.tensor(scalar, base::Buffer(std::span(&back, 1)));
    CHECK(back == 2.0);
}

TEST_CASE("a tensor needs no C++ type in its name", "[study]") {
    const std::vector<base::BFloat16> half{base::BFloat16(1.5F), base::BFloat16(-2.0F)};
    MemoryState state;
    state.put("half", half);
    state.put("weight", weights, {2, 3});
    CHECK((state.tensors()[0] == TensorInfo{"half", DType::bfloat16, {2}}));
    CHECK((state.tensors()[1] == TensorInfo{"weight", DType::float32, {2, 3}}));
    std::vector<base::BFloat16> back(2);
    state.get("half", back);
    CHECK(back[1].bits() == half[1].bits());
}

TEST_CASE("device tensors are copied once, by the device, and otherwise behave like others", "[study]") {
    ranktune::testing::FakeDevice device;
    const ranktune::testing::OnDevice<float> there(device, {weights.begin(), weights.end()});
    device.from_host = device.to_host = 0;

    MemoryState state;
    state.put("weight", there.buffer(), {2, 3});
    CHECK(device.to_host == 24);
    state.put("scale", std::array{0.5});
    state.blob("counters", raw);
    CHECK(state.digest() == example().digest());
    StateDigest digest;
    digest.put("weight", there.buffer(), {2, 3});
    digest.put("scale", std::array{0.5});
    CHECK(digest.value() == state.digest());

    const ranktune::testing::OnDevice<float> other(device, std::vector<float>(6));
    device.from_host = 0;
    state.get("weight", other.buffer(), {2, 3});
    CHECK(device.from_host == 24);
    CHECK(std::ranges::equal(other.values(), weights));
    CHECK_THROWS_AS(state.get("weight", other.buffer(), {3, 2}), base::FormatError);
}

TEST_CASE("rows on a device are copied to and from any parts", "[study]") {
    ranktune::testing::FakeDevice device;
    MemoryState state;
    state.put_rows("m", ranktune::testing::OnDevice<std::int32_t>(device, {30, 31, 40, 41}).buffer(), {5, 2}, 3, 2);
    state.put_rows("m", std::array<std::int32_t, 6>{0, 1, 10, 11, 20, 21}, {5, 2}, 0, 3);
    const ranktune::testing::OnDevice<std::int32_t> back(device, std::vector<std::int32_t>(6));
    state.get_rows("m", back.buffer(), {5, 2}, 2, 3);
    CHECK((back.values() == std::vector<std::int32_t>{20, 21, 30, 31, 40, 41}));
}

TEST_CASE("the digest sees names, types, shapes and bytes, not blobs", "[study]") {
    const std::uint64_t digest = example().digest();
    MemoryState same = example();
    same.blob("rank", raw); // differs from rank to rank
    CHECK(same.digest() == digest);

    const auto with = [](const std::string& name, std::array<float, 6> values, std::vector<std::uint64_t> shape) {
        MemoryState state;
        state.put<float>(name, values, std::move(shape));
        return state.digest();
    };
    const std::uint64_t base = with("weight", weights, {2, 3});
    CHECK(with("weight", weights, {2, 3}) == base);
    CHECK(with("weighs", weights, {2, 3}) != base);
    CHECK(with("weight", weights, {3, 2}) != base);
    CHECK(with("weight", {1, 2, 3, 4, 5, 7}, {2, 3}) != base);
    MemoryState other;
    other.put<std::int32_t>("weight", std::array{1, 2, 3, 4, 5, 6}, {2, 3});
    CHECK(other.digest() != base);
}

TEST_CASE("a state that is reset saves the next one into the same memory", "[study]") {
    MemoryState state = example();
    const std::byte* first = state.stored_tensors()[0].bytes.data();
    const std::byte* counters = state.stored_blobs()[0].bytes.data();
    const std::uint64_t digest = state.digest();
    state.reset();
    CHECK(state.bytes() == 0);
    CHECK(state.digest() == MemoryState().digest());
    CHECK_THROWS_AS(state.blob("counters"), base::FormatError);
    state.put<float>("weight", weights, {2, 3});
    state.put<double>("scale", std::array{0.5}, {1});
    state.blob("counters", raw);
    CHECK(state.digest() == digest);
    CHECK(state.stored_tensors()[0].bytes.data() == first);
    CHECK(state.stored_blobs()[0].bytes.data() == counters);
    CHECK((state.blob("counters") == std::vector<std::byte>(raw.begin(), raw.end())));
}

TEST_CASE("a large tensor is copied to its last byte, from any place in memory", "[study]") {
    std::vector<std::uint8_t> source(600'000);
    std::uint32_t state = 1;
    for (auto& byte : source) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::uint8_t>(state >> 24U);
    }
    for (const std::size_t size : {262'143U, 262'144U, 262'145U, 278'528U, 500'001U}) {
        for (const std::size_t from : {0U, 1U, 63U}) {
            const auto values = std::span<const std::uint8_t>(source).subspan(from, size);
            MemoryState saved;
            saved.put<std::uint8_t>("large", values);
            CHECK(std::ranges::equal(saved.stored_tensors().front().bytes, std::as_bytes(values)));
        }
    }
}

TEST_CASE("the digest of a state needs no copy of it", "[study]") {
    StateDigest sink;
    sink.put<float>("weight", weights, {2, 3});
    sink.put<double>("scale", std::array{0.5}, {1});
    sink.blob("counters", std::span(raw).first(1));
    CHECK(sink.value() == example().digest());
    CHECK_THROWS_AS(sink.put<float>("other", weights, {2, 2}), base::UsageError);
}

} // namespace state_test
