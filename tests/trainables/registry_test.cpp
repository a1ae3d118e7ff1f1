// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ranktune/base/error.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "trainables/builtin.hpp"
#include "trainables/options.hpp"

namespace registry_test {

using namespace ranktune;
using namespace ranktune::trainables;
using Kind = study::OptionInfo::Kind;

namespace {

std::string message_of(const std::function<void()>& body) {
    return ranktune::testing::error_of<base::UsageError>(body);
}

const study::TrainableInfo info{.name = "thing",
                                .description = "",
                                .options = {{"rate", Kind::number, false, "", {}, 0.0, 1.0},
                                            {"count", Kind::integer, false, "", {}, 1.0, 8.0},
                                            {"kind", Kind::string, false, "", {"relu", "tanh"}},
                                            {"fast", Kind::boolean, false, ""},
                                            {"sizes", Kind::integer_list, false, "", {}, 1.0, 100.0}},
                                .metrics = {}};

} // namespace

TEST_CASE("the built-in trainables are known without being registered", "[trainables]") {
    CHECK(find_trainable("mlp").info.can_checkpoint);
    CHECK(find_trainable("curve").factory);
    CHECK_FALSE(find_trainable("curve").function);
}

TEST_CASE("the error for an unknown trainable suggests the nearest one", "[trainables]") {
    const std::string message = message_of([] { static_cast<void>(find_trainable("curv")); });
    CHECK(message.find("no trainable named 'curv'") == 0);
    CHECK(message.find("did you mean 'curve'?") != std::string::npos);
}

TEST_CASE("a registered class and function are found, listed by name, and cannot be registered twice", "[trainables]") {
    register_function({.name = "test-function", .description = "", .options = {}, .metrics = {}},
                      [](FunctionContext&) {});
    register_trainable({.name = "test-class", .description = "", .options = {}, .metrics = {}},
                       [] { return std::unique_ptr<Trainable>(); });
    CHECK(find_trainable("test-function").function);
    CHECK(find_trainable("test-class").factory);
    std::vector<std::string> names;
    for (const study::TrainableInfo& known : known_trainables()) names.push_back(known.name);
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::count(names.begin(), names.end(), "test-class") == 1);
    CHECK(message_of([] {
              register_function({.name = "mlp", .description = "", .options = {}, .metrics = {}},
                                [](FunctionContext&) {});
          }).find("registered already") != std::string::npos);
    CHECK_THROWS_AS(register_function({.name = "empty", .description = "", .options = {}, .metrics = {}}, {}),
                    base::UsageError);
}

TEST_CASE("options have defaults, bounds and kinds, and every refusal names the key", "[trainables]") {
    space::Configuration configuration;
    const Options options(configuration, info);
    CHECK(options.number("rate", 0.25) == 0.25);
    CHECK(options.integers("sizes", {3}) == std::vector<std::int64_t>{3});

    configuration.set("rate", 1);
    CHECK(options.number("rate", 0.0) == 1.0);
    configuration.set("rate", 1.5);
    CHECK(message_of([&] { static_cast<void>(options.number("rate", 0.0)); }).find("thing.rate: 1.5") == 0);
    configuration.set("rate", std::nan(""));
    CHECK_THROWS_AS(options.number("rate", 0.0), base::UsageError);
    configuration.set("count", 2.0);
    CHECK(message_of([&] { static_cast<void>(options.integer("count", 1)); }).find("thing.count: an integer") == 0);
    configuration.set("count", 9);
    CHECK_THROWS_AS(options.integer("count", 1), base::UsageError);
    configuration.set("kind", "rely");
    CHECK(message_of([&] { static_cast<void>(options.text("kind", "relu")); }).find("relu, tanh") != std::string::npos);
    configuration.set("fast", "yes");
    CHECK_THROWS_AS(options.flag("fast", false), base::UsageError);
    configuration.set("sizes", 7);
    CHECK(options.integers("sizes", {}) == std::vector<std::int64_t>{7});
    configuration.set("sizes", space::Value::List{4, 5});
    CHECK(options.integers("sizes", {}) == std::vector<std::int64_t>{4, 5});
    configuration.set("sizes", space::Value::List{4, 0});
    CHECK_THROWS_AS(options.integers("sizes", {}), base::UsageError);
    configuration.set("sizes", space::Value::List{});
    CHECK(options.integers("sizes", {1}).empty());
}

TEST_CASE("the trainable torch says in a build without LibTorch how to get it, before anything starts",
          "[trainables]") {
    const auto& options = find_trainable("torch").info.options;
    const auto library = std::ranges::find(options, std::string("library"), &study::OptionInfo::name);
    REQUIRE(library != options.end());
    const std::string why = library->check("/model.so");
    CHECK(why == why_no_torch());
    CHECK(why.empty() == !torch_built_with().empty());
    if (!why.empty()) CHECK(why.find("libtorch-dev") != std::string::npos);
}

} // namespace registry_test
