// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/buffer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <numeric>

#include "ranktune/base/error.hpp"
#include "ranktune/base/huge_pages.hpp"
#include "support/catch.hpp"
#include "support/fake_device.hpp"

namespace buffer_test {

using namespace ranktune;
using namespace ranktune::base;
using testing::FakeDevice;
using testing::OnDevice;

static_assert(dtype_of<int>() == DType::int32);
static_assert(dtype_of<long long>() == DType::int64);
static_assert(dtype_of<unsigned long>() == DType::uint64);
static_assert(dtype_of<std::byte>() == DType::uint8);
static_assert(!Element<bool> && !Element<char> && !Element<wchar_t> && !Element<unsigned> && !Element<short>);
static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);
// Constant ranges and temporaries do not convert to Buffer.
static_assert(!std::is_convertible_v<const std::vector<float>&, Buffer>);
static_assert(!std::is_convertible_v<std::span<const float>, Buffer>);
static_assert(!std::is_convertible_v<std::vector<float>, Buffer>);
static_assert(std::is_convertible_v<std::span<float>, Buffer>);
static_assert(std::is_convertible_v<const std::vector<float>&, ConstBuffer>);
static_assert(!std::is_convertible_v<std::vector<bool>&, ConstBuffer>);

TEST_CASE("a buffer takes type and count from what it views", "[base]") {
    std::vector<float> floats(3);
    const std::array<std::int64_t, 2> integers{};
    double numbers[4] = {};
    const Buffer a(floats);
    CHECK((a.type() == DType::float32 && a.count() == 3 && a.bytes() == 12 && a.place().is_host()));
    CHECK(a.address() == floats.data());
    const ConstBuffer b(integers);
    CHECK((b.type() == DType::int64 && b.count() == 2 && b.address() == integers.data()));
    const Buffer c(numbers);
    CHECK((c.type() == DType::float64 && c.count() == 4));
    CHECK(ConstBuffer(std::vector<BFloat16>(5)).text() == "5 bfloat16 on the host");
    CHECK(Buffer(std::span(floats).first(0)).empty());
}

TEST_CASE("a buffer gives its numbers back as their own type only", "[base]") {
    std::vector<float> floats{1.0F, 2.0F, 3.0F};
    const Buffer buffer(floats);
    buffer.as<float>()[1] = 7.0F;
    CHECK(floats[1] == 7.0F);
    CHECK(buffer.part(1, 2).as<float>().data() == floats.data() + 1);
    CHECK(buffer.host_bytes().size() == 12);
    CHECK_THROWS_WITH(buffer.as<double>(), "a buffer of 3 float32 on the host was used as float64 on the host");
    CHECK_THROWS_AS(buffer.as<std::int32_t>(), UsageError);
    const auto bytes = buffer.host_bytes();
    CHECK(Buffer::of_bytes(bytes, DType::float32).as<float>()[1] == 7.0F);
    CHECK_THROWS_WITH(ConstBuffer::of_bytes(bytes, DType::int64), "12 bytes are not a whole number of int64");
}

TEST_CASE("types have sizes and names", "[base]") {
    CHECK(size_of(DType::float32) == 4);
    CHECK(size_of(DType::uint64) == 8);
    CHECK(size_of(DType::uint8) == 1);
    CHECK(size_of(DType::bfloat16) == 2);
    CHECK(name(DType::float64) == "float64");
    CHECK(name(DType::float16) == "float16");
    CHECK_THROWS_AS(size_of(static_cast<DType>(77)), FormatError);
    for (std::size_t i = 0; i < std::size(dtypes); ++i) CHECK(static_cast<std::size_t>(dtypes[i]) == i);
}

TEST_CASE("copies need the same type and count", "[base]") {
    const std::vector<float> from{1.0F, 2.0F, 3.0F};
    std::vector<float> to(3);
    copy(from, to);
    CHECK(to == from);
    copy(Buffer(to).part(0, 2), Buffer(to).part(1, 2)); // overlapping
    CHECK(to == std::vector<float>{1.0F, 1.0F, 2.0F});
    std::vector<double> wide(3);
    CHECK_THROWS_WITH(copy(from, wide), "cannot copy 3 float32 on the host to 3 float64 on the host");
    CHECK_THROWS_AS(copy(from, Buffer(to).part(0, 2)), UsageError);
    CHECK_NOTHROW(copy(std::span<const float>(), std::span<float>()));
}

TEST_CASE("device memory is copied by the functions of the device", "[base]") {
    FakeDevice device(3);
    {
        const std::vector<float> values{1.0F, 2.0F, 3.0F};
        const OnDevice<float> there(device, values);
        CHECK(device.from_host == 12);
        CHECK(there.values() == values);
        CHECK(device.to_host == 12);
        std::array<float, 2> part{};
        copy(there.buffer().part(1, 2), part);
        CHECK((part == std::array{2.0F, 3.0F}));
        CHECK(there.buffer().text() == "3 float32 on device 3");
        CHECK_THROWS_WITH(there.buffer().as<float>(),
                          "a buffer of 3 float32 on device 3 was used as float32 on the host");
        CHECK_THROWS_AS(there.buffer().host_bytes(), UsageError);
        CHECK_THROWS_AS(copy(there.buffer(), there.buffer()), UsageError);
        FakeDevice other(3);
        CHECK(Place(device) == there.buffer().place());
        CHECK(Place(other) != there.buffer().place());
        CHECK(Place() != there.buffer().place());
    }
    CHECK(device.live() == 0);
}

TEST_CASE("bytes come at once from the host, and in pieces from a device", "[base]") {
    std::vector<std::uint8_t> values((std::size_t{5} << 19U) + 1); // two pieces and a half
    std::iota(values.begin(), values.end(), std::uint8_t{0});
    FakeDevice device;
    const OnDevice<std::uint8_t> there(device, values);
    for (const ConstBuffer& buffer : {ConstBuffer(values), ConstBuffer(there.buffer())}) {
        std::vector<std::byte> seen;
        int pieces = 0;
        for_each_piece(buffer, [&](std::span<const std::byte> piece) {
            seen.insert(seen.end(), piece.begin(), piece.end());
            ++pieces;
        });
        CHECK(std::ranges::equal(seen, std::as_bytes(std::span(values))));
        CHECK(pieces == (buffer.place().is_host() ? 1 : 3));
    }
}

TEST_CASE("large host memory lies in huge pages, device memory on the device", "[base]") {
    const auto host = allocate({}, 2 * huge_page_bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(host.get()) % huge_page_bytes == 0);
    FakeDevice device;
    {
        const auto there = allocate(Place(device), 100);
        CHECK(device.live() == 1);
    }
    CHECK(device.live() == 0);
}

TEST_CASE("a direct access to memory of the test device ends the process", "[base]") {
    FakeDevice device;
    const OnDevice<int> there(device, {42});
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        const volatile int* const address = static_cast<const int*>(there.buffer().address());
        _exit(*address == 42 ? 0 : 0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

} // namespace buffer_test
