// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

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

TEST_CASE("A copy that is set leaves the configuration that it was made from as it was", "[space]") {
    const Configuration before = three();
    Configuration copy = before;
    copy.set("lr", 0.2);
    copy.set("kind", "adam");
    CHECK(before == three());
    CHECK(before.text() == "lr=0.1 momentum=0.9 layers=2");
    CHECK(copy.text() == "lr=0.2 momentum=0.9 layers=2 kind=adam");
    CHECK_FALSE(copy == before);
    Configuration none;
    CHECK(none == Configuration(std::vector<std::pair<std::string, Value>>{}));
    CHECK_FALSE(none == before);
    CHECK(none.entries().size() == 0);
    none.set("lr", 0.1);
    CHECK(none.text() == "lr=0.1");
}

TEST_CASE("A configuration that is watched keeps its names, and its watcher stays with it", "[space]") {
    Configuration watched = three();
    const Configuration before = watched;
    std::size_t looks = 0;
    watched.watch([&](std::size_t) { ++looks; });
    CHECK(before.contains("lr"));
    CHECK(looks == 0);
    watched.share_names(before);
    Configuration plain = three();
    plain.share_names(watched);
    CHECK(plain.contains("lr"));
    CHECK(looks == 0);
    watched.set("kind", "adam");
    CHECK(watched.at("kind").as_string() == "adam");
    CHECK(looks == 1);
    STATIC_REQUIRE(sizeof(Configuration) == sizeof(void*));
}

TEST_CASE("The entries of a configuration are a range, in order", "[space]") {
    const Configuration configuration({{"a", 1}, {"b", "two"}, {"c", Value::List{3, 4}}});
    STATIC_REQUIRE(std::input_iterator<Configuration::Entries::Iterator>);
    std::string text;
    for (const auto& [name, value] : configuration.entries()) text += name + "=" + value.text() + ";";
    CHECK(text == "a=1;b=two;c=[3,4];");
    CHECK(configuration.entries()[1].value.as_string() == "two");
    const auto entries = configuration.entries();
    CHECK(std::ranges::count_if(entries, [](const auto& entry) { return entry.name > "a"; }) == 2);
}

TEST_CASE("Names are shared with a configuration that has the same ones, and with no other", "[space]") {
    const auto name_of = [](const Configuration& configuration) { return &configuration.entries()[0].name; };
    const Configuration first = three();
    Configuration same = three();
    Configuration longer = three();
    longer.set("kind", "adam");
    REQUIRE(name_of(same) != name_of(first));
    same.share_names(first);
    CHECK(name_of(same) == name_of(first));
    CHECK(same == three());
    const Configuration copy = longer;
    longer.share_names(first);
    CHECK(longer == copy);
    CHECK(name_of(longer) != name_of(first));
    Configuration none;
    none.share_names(first);
    CHECK(none.empty());
    same.share_names(none);
    CHECK(same == first);
}

} // namespace ranktune::space
