// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/digest.hpp"

#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace digest_test {

using namespace ranktune::base;

namespace {
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
} // namespace

TEST_CASE("crc32c gives the values of RFC 3720", "[base]") {
    CHECK(crc32c(bytes("123456789")) == 0xE3069283U);
    const std::vector<std::byte> zeros(32, std::byte{0});
    CHECK(crc32c(zeros) == 0x8A9136AAU);
    const std::vector<std::byte> ones(32, std::byte{0xFF});
    CHECK(crc32c(ones) == 0x62A8AB43U);
    CHECK(crc32c({}) == 0U);
}

TEST_CASE("crc32c of pieces is the crc32c of the whole", "[base]") {
    CHECK(crc32c(bytes("56789"), crc32c(bytes("1234"))) == crc32c(bytes("123456789")));
}

TEST_CASE("crc32c is what its polynomial says, for every length and alignment", "[base]") {
    const auto bit_by_bit = [](std::span<const std::byte> of, std::uint32_t seed) {
        std::uint32_t crc = ~seed;
        for (const std::byte byte : of) {
            crc ^= std::to_integer<std::uint32_t>(byte);
            for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
        }
        return ~crc;
    };
    std::vector<std::byte> all(9000);
    std::uint32_t state = 1;
    for (std::byte& byte : all) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::byte>(state >> 24U);
    }
    for (std::size_t size = 0; size < 8900; size += size < 900 ? 1 : 97) {
        const auto part = std::span(all).subspan(size % 13, size);
        REQUIRE(crc32c(part, state) == bit_by_bit(part, state));
    }
}

TEST_CASE("Digest gives the published XXH64 values", "[base]") {
    CHECK(Digest().value() == 0xEF46DB3751D8E999ULL);
    CHECK(Digest().add(bytes("a")).value() == 0xD24EC4F1A98C6E5BULL);
    CHECK(Digest().add(bytes("abc")).value() == 0x44BC2CF5AD770999ULL);
}

TEST_CASE("Digest does not depend on how the bytes are cut", "[base]") {
    const std::string text(1000, 'x');
    for (std::size_t cut : {0U, 1U, 31U, 32U, 33U, 500U, 999U}) {
        Digest pieces;
        pieces.add(bytes(std::string_view(text).substr(0, cut))).add(bytes(std::string_view(text).substr(cut)));
        CHECK(pieces.value() == Digest().add(bytes(text)).value());
    }
}

} // namespace digest_test
