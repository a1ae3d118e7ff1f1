// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/configuration.hpp"
#include "support/catch.hpp"

namespace ranktune::space {
namespace {

Configuration three() {
    Configuration configuration;
    configuration.set("lr", 0.1);
    configuration.set("momentum", 0.9);
    configuration.set("layers", std::int64_t{2});
    return configuration;
}

} // namespace

TEST_CASE("A configuration that is watched tells what is looked up, in its copies too", "[space]") {
    Configuration configuration = three();
    std::vector<std::size_t> looks;
    configuration.watch([&](std::size_t position) { looks.push_back(position); });
    CHECK(configuration.find("absent") == nullptr);
    CHECK(looks.empty());
    CHECK(configuration.at("momentum").as_double() == 0.9);
    const Configuration copy = configuration;
    CHECK(copy.contains("layers"));
    CHECK((looks == std::vector<std::size_t>{1, 2}));
    CHECK(copy == three());
    CHECK(copy.text() == three().text());
    CHECK((looks == std::vector<std::size_t>{1, 2}));
    CHECK(copy.entries().size() == 3);
    CHECK((looks == std::vector<std::size_t>{1, 2, 0, 1, 2}));
}

} // namespace ranktune::space
