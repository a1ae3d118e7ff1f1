// SPDX-License-Identifier: Apache-2.0
// What the driver says about GPUs, on a stand-in for NVML. Needs no CUDA.

#include <string>
#include <vector>

#include "device/gpu_meter.hpp"
#include "device/survey.hpp"
#include "support/catch.hpp"

namespace nvml_test {

using namespace ranktune;
using Names = std::vector<std::string>;

TEST_CASE("the survey knows bus addresses and links, and finds the islands", "[device]") {
    const device::Survey survey = device::survey_gpus();
    REQUIRE(survey.why.empty());
    REQUIRE(survey.gpus.size() == 4);
    CHECK(survey.gpus[2].uuid == "GPU-02010203-0405-0607-0809-0a0b0c0d0e0f");
    CHECK(survey.gpus[2].bus == "00000000:03:00.0");
    CHECK(survey.gpus[2].linked == Names{"00000000:04:00.0"});
    CHECK(survey.gpus[2].nvlinks == 2);
    CHECK(survey.gpus[2].fabric.empty());
    CHECK(place_of({"1"}, survey) == device::GpuPlace{survey.gpus[1].uuid, 1, ""});
    CHECK(place_of({"3"}, survey) == device::GpuPlace{survey.gpus[3].uuid, 3, ""});
}

TEST_CASE("a meter reads the peak of the memory, the load, and the energy since the last reading", "[device]") {
    device::GpuMeter meter({"1", "GPU-02"});
    REQUIRE(meter.works());
    for (int i = 0; i < 5; ++i) meter.sample();
    const device::GpuReading first = meter.take();
    CHECK(first.busy == 0.75);
    CHECK(first.joules == 2.0); // one for each GPU
    CHECK(first.peak_bytes >= 500e6);
    CHECK(first.peak_bytes <= 900e6);
    CHECK(meter.take().joules == 2.0);
    CHECK(meter.take().busy == 0.75);
}

TEST_CASE("ranks that share a GPU count it once, and GPUs that the driver does not show are left out", "[device]") {
    device::GpuMeter shared({"1", "1", "GPU-01"});
    CHECK(shared.take().joules == 1.0);
    device::GpuMeter none({"7", "MIG-1"});
    CHECK_FALSE(none.works());
    CHECK(none.take().joules == 0.0);
}

} // namespace nvml_test
