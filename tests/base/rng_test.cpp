// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/rng.hpp"

#include <regex>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"

namespace rng_test {

using namespace ranktune::base;

TEST_CASE("philox4x32 gives the known answers of its authors", "[base]") {
    using Words = std::array<std::uint32_t, 4>;
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
    CHECK(philox4x32({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}, {0xffffffffU, 0xffffffffU}) ==
          Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
    CHECK(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}) ==
          Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});
}

TEST_CASE("streams of different keys share no numbers, and a copy repeats what follows", "[base]") {
    RngStream a(1, Purpose::sample, 3, 0);
    RngStream b(1, Purpose::sample, 3, 1);
    RngStream c(1, Purpose::bracket, 3, 0);
    const auto first = a();
    CHECK(first != b());
    CHECK(first != c());
    RngStream copy = a;
    CHECK(copy() == a());
}

TEST_CASE("user purposes differ from ours and from each other", "[base]") {
    // Our purposes are read from the header, so that later ones are tested, too.
    const std::string header = ranktune::testing::read_file(RANKTUNE_SOURCE_ROOT "/include/ranktune/base/rng.hpp");
    const auto begin = header.find("enum class Purpose");
    REQUIRE(begin != std::string::npos);
    const std::string list = header.substr(begin, header.find("};", begin) - begin);
    const std::regex value(R"((\w+) = (\d+),)");
    std::set<std::uint32_t> ours;
    for (std::sregex_iterator at(list.begin(), list.end(), value), end; at != end; ++at) {
        INFO((*at)[1]);
        const auto number = static_cast<std::uint32_t>(std::stoul((*at)[2]));
        CHECK(number < first_user_purpose);
        CHECK(ours.insert(number).second);
        CHECK(user_purpose(number) != static_cast<Purpose>(number));
    }
    CHECK(ours.contains(static_cast<std::uint32_t>(Purpose::curve)));

    CHECK(static_cast<std::uint32_t>(user_purpose(0)) == first_user_purpose);
    CHECK(user_purpose(7) != user_purpose(8));
    // Numbers that are too large still give a user purpose.
    CHECK(static_cast<std::uint32_t>(user_purpose(0xFFFFFFFFU)) >= first_user_purpose);
    CHECK(static_cast<std::uint32_t>(user_purpose(first_user_purpose + 3)) >= first_user_purpose);
    CHECK(RngStream(1, user_purpose(1))() != RngStream(1, Purpose::sample)());
    CHECK(RngStream(1, user_purpose(1))() != RngStream(1, user_purpose(2))());
}

TEST_CASE("uniform, below and normal have the right moments", "[base]") {
    RngStream rng(7, Purpose::curve);
    double sum = 0.0;
    double sum_normal = 0.0;
    double square_normal = 0.0;
    std::array<int, 3> hits{};
    constexpr int n = 30000;
    for (int i = 0; i < n; ++i) {
        const double u = rng.uniform();
        CHECK((u >= 0.0 && u < 1.0));
        sum += u;
        const double z = rng.normal();
        sum_normal += z;
        square_normal += z * z;
        ++hits[rng.below(3)];
    }
    CHECK(sum / n == Approx(0.5).margin(0.01));
    CHECK(sum_normal / n == Approx(0.0).margin(0.03));
    CHECK(square_normal / n == Approx(1.0).margin(0.04));
    for (const int hit : hits) CHECK(hit == Approx(n / 3.0).margin(400.0));
}

TEST_CASE("inverse_normal agrees with tables", "[base]") {
    CHECK(inverse_normal(0.5) == 0.0);
    CHECK(inverse_normal(0.975) == Approx(1.9599639845400545).epsilon(1e-14));
    CHECK(inverse_normal(0.001) == Approx(-3.090232306167813).epsilon(1e-14));
    CHECK(inverse_normal(1e-20) == Approx(-9.262340089798408).epsilon(1e-13));
}

} // namespace rng_test
