// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/requests.hpp"

#include "tuner/values.hpp"

namespace ranktune::tuner::requests_test {
namespace {

using testing::broken;
using testing::contradiction;

using Texts = std::vector<std::string>;

space::Configuration point(double x) {
    space::Configuration configuration;
    configuration.set("x", x);
    return configuration;
}

study::Bytes bytes_of(const Requests& requests) { return testing::written(requests); }

/// Reads a snapshot with these values, whether or not they fit together.
Requests stored(const std::vector<std::uint64_t>& numbers, std::uint64_t created, const Texts& keys,
                const Texts& before) {
    const auto bytes = testing::written(numbers, std::deque<space::Configuration>{}, created, keys, before);
    Requests requests;
    testing::read_back(bytes, requests);
    return requests;
}

} // namespace

TEST_CASE("A request takes effect once, and its trials are created in order", "[tuner]") {
    Requests requests;
    CHECK_FALSE(requests.knows(7));
    requests.take_effect(7, {point(0.1), point(0.2)});
    requests.take_effect(9, {point(0.3)});
    CHECK(requests.knows(7));
    CHECK(requests.knows(9));
    CHECK_FALSE(requests.knows(8));
    CHECK(requests.points().size() == 3);
    CHECK(requests.points().front() == point(0.1));
    requests.point_created();
    CHECK(requests.points().front() == point(0.2));
    CHECK(requests.created() == 1);
    CHECK(broken(requests).empty());
    CHECK(contradiction([&] { requests.take_effect(7, {}); }) == "a request takes effect twice");
    requests.point_created();
    requests.point_created();
    CHECK(requests.created() == 3);
    CHECK(contradiction([&] { requests.point_created(); }) == "a trial was added by nobody");
    CHECK(broken(requests).empty());
}

TEST_CASE("A changed key keeps its oldest value until the study file says something new", "[tuner]") {
    Requests requests;
    requests.take_effect(1, {});
    CHECK(requests.before("study.num_trials") == nullptr);
    requests.changed("study.num_trials", "4");
    requests.changed("stop.metric", "");
    requests.changed("study.num_trials", "8");
    REQUIRE(requests.before("study.num_trials") != nullptr);
    CHECK(*requests.before("study.num_trials") == "4");
    REQUIRE(requests.before("stop.metric") != nullptr);
    CHECK(requests.before("stop.metric")->empty()); // it was absent
    requests.forget("study.num_trials");
    requests.forget("study.seed"); // which nobody has changed
    CHECK(requests.before("study.num_trials") == nullptr);
    CHECK(requests.before("stop.metric")->empty());
    CHECK(broken(requests).empty());
}

TEST_CASE("Restored requests give the same answers", "[tuner]") {
    Requests requests;
    requests.take_effect(5, {point(0.1), point(0.2)});
    requests.point_created();
    requests.changed("study.num_trials", "4");
    Requests again;
    testing::read_back(bytes_of(requests), again);
    CHECK(bytes_of(again) == bytes_of(requests));
    CHECK(again.knows(5));
    CHECK(again.created() == 1);
    CHECK(again.points().front() == point(0.2));
    CHECK(*again.before("study.num_trials") == "4");
}

TEST_CASE("The invariants of requests notice a snapshot that does not fit together", "[tuner]") {
    CHECK(broken(stored({1, 2}, 3, {"a.b"}, {"4"})).empty());
    CHECK(broken(stored({1, 1}, 0, {}, {})) == "a request took effect twice");
    CHECK(broken(stored({1}, 0, {"a.b", "a.b"}, {"1", "2"})) == "a changed key is listed twice");
    CHECK(broken(stored({1}, 0, {"a.b"}, {})) == "a changed key has no value before");
    CHECK(broken(stored({}, 0, {"a.b"}, {"1"})) == "a key was changed by nobody");
    CHECK(broken(stored({}, 1, {}, {})) == "a trial was added by nobody");
}

} // namespace ranktune::tuner::requests_test
