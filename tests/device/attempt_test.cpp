// SPDX-License-Identifier: Apache-2.0
// What an attempt leaves in the memory of its device.

#include <utility>

#include "device_case.hpp"
#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"

namespace attempt_test {

using namespace ranktune;

TEST_CASE("an attempt frees caches at its end, and one that idle connections left no room is lost", "[device]") {
    testing::runtime_or_skip();
    auto& on = device::open_granted("0");
    testing::TrialOptions options;
    options.devices = {"0"};
    const auto failure = [&] {
        return testing::run_trial(testing::function([](trainables::FunctionContext&) {
                                      throw device::DeviceMemoryError("the memory of the GPU is full");
                                  }),
                                  options)
            .failure;
    };
    const std::string too_large = "the trial needs more memory than the device has: the memory of the GPU is full";
    using Freeing = device::Accelerator::Freeing;
    int cached = 1;
    const auto cache = std::make_shared<const Freeing>([&] { return std::exchange(cached, 0) == 1; });
    on.add_cache(cache);
    CHECK(failure().starts_with("rank 0: " + too_large));
    CHECK(cached == 0);
    int connections = 1;
    const auto idle = std::make_shared<const Freeing>([&] { return std::exchange(connections, 0) == 1; });
    on.add_idle(idle);
    CHECK(
        failure().starts_with("rank 0: the memory of the GPU was full while it held connections of earlier trials; "
                              "they are closed now: " +
                              too_large));
    CHECK(connections == 0);
    CHECK(failure().starts_with("rank 0: " + too_large));
}

} // namespace attempt_test
