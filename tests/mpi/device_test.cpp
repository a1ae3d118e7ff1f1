// SPDX-License-Identifier: Apache-2.0
// Gradients on devices over ranks that are processes, each with the device of its number. Ranks may share a GPU when
// NCCL_HOSTID has another value on each (tools/device-suite).

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "comm/groups/group_factory.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "device/module.hpp"
#include "mpi_world.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "ranktune/study/state.hpp"
#include "support/catch.hpp"
#include "trainables/mlp/trainer.hpp"

namespace device_test {

using namespace ranktune;

namespace {

const std::atomic<bool> never{false};

/// The ranks of the world as the group of one trial after the other.
struct Devices {
    comm::GroupFactory factory{test::world()};
    ddp::DeviceGroups groups{{.host = std::getenv("NCCL_HOSTID") != nullptr ? std::getenv("NCCL_HOSTID") : "here"}};
    test::Roster roster;
    std::uint64_t ticket = 0;
    device::Accelerator* on = nullptr;

    Devices() {
        for (int rank = 0; rank < test::world().size(); ++rank)
            roster.push_back(base::Rank{static_cast<std::uint32_t>(rank)});
        const device::Opened& opened = device::open_module();
        if (!opened.why.empty()) return;
        const int count = static_cast<int>(opened.runtime->devices().size());
        on = &opened.runtime->open(test::world().rank() % count);
    }
    std::unique_ptr<ddp::Collective> group() {
        return ddp::form_mpi_collective(factory, roster, ++ticket, never, &groups, "test");
    }
};

void wait_for(device::Stream& stream) {
    while (!stream.idle()) sched_yield();
}

/// Sums of one step in which rank r contributes r + 1 + step, read by work of the compute stream. The number of wrong
/// ones.
int wrong_sums(Devices& devices, ddp::Group& group, ddp::GradientReducer& reducer, int step, std::size_t count) {
    const auto source = devices.on->allocate_pinned(count * sizeof(float));
    const auto target = devices.on->allocate_pinned(count * sizeof(float));
    auto* const numbers = static_cast<float*>(source.get());
    auto* const found = static_cast<float*>(target.get());
    auto& stream = devices.on->compute_stream();
    std::fill_n(numbers, count, static_cast<float>(group.rank() + 1 + step));
    ddp::run_step(reducer, [&] {
        for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
            const auto gradient = reducer.gradient_buffer(i);
            stream.upload(gradient.address(), numbers, gradient.bytes());
            reducer.ready(i);
        }
    });
    const auto sums = reducer.gradients_buffer();
    stream.download(found, sums.address(), sums.bytes());
    wait_for(stream);
    const int n = group.size();
    const auto expected = static_cast<float>(n * (n + 1) / 2 + n * step);
    return static_cast<int>(sums.count() - static_cast<std::size_t>(std::count(found, found + sums.count(), expected)));
}

/// Ten clouds of points.
std::shared_ptr<data::Dataset> clouds() {
    auto data = std::make_shared<data::Dataset>();
    data->features = 40;
    data->outputs = 10;
    data->classification = true;
    data->x_scale.shift.assign(data->features, 0.0F);
    data->x_scale.factor.assign(data->features, 1.0F);
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (auto* split : {&data->train, &data->val}) {
        split->count = split == &data->train ? 1000 : 100;
        for (std::size_t i = 0; i < split->count; ++i) {
            split->classes.push_back(static_cast<std::int32_t>(i % data->outputs));
            for (std::size_t c = 0; c < data->features; ++c)
                split->x.push_back(normal(generator) + (c % data->outputs == i % data->outputs ? 1.0F : 0.0F));
        }
    }
    return data;
}

/// The parameters after some epochs, one after the other.
std::vector<float> trained(ddp::Group& group, device::Accelerator& on) {
    trainables::mlp::TrainerOptions options;
    options.hidden = {128, 64};
    options.batch = 100;
    options.lr = 0.05;
    options.optimizer.momentum = 0.9;
    options.bucket_floats = 4000;
    options.device = &on;
    trainables::mlp::Trainer trainer(clouds(), options, group);
    for (int epoch = 0; epoch < 5; ++epoch) static_cast<void>(trainer.train_epoch());
    study::MemoryState state;
    trainer.save(state);
    std::vector<float> parameters;
    for (const auto& tensor : trainer.tensors()) {
        std::vector<float> values(tensor.size);
        state.get<float>(tensor.name, values, tensor.shape);
        parameters.insert(parameters.end(), values.begin(), values.end());
    }
    return parameters;
}

} // namespace

TEST_CASE("processes train to the parameters of one, whatever their number", "[mpi][device]") {
    Devices devices;
    if (devices.on == nullptr) return;
    const auto group = devices.group();
    const auto alone = ddp::make_self_group();
    const std::vector<float> expected = trained(*alone, *devices.on);
    const std::vector<float> found = trained(*group, *devices.on);
    REQUIRE(found.size() == expected.size());
    double difference = 0.0;
    double length = 0.0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        difference += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
        length += std::pow(static_cast<double>(expected[i]), 2);
    }
    if (group->rank() == 0)
        std::printf("%d ranks, 50 steps: parameters differ from those of one rank by %.1e\n", group->size(),
                    std::sqrt(difference / length));
    CHECK(std::sqrt(difference / length) <= 1e-4);
}

TEST_CASE("processes sum gradients on their devices, trial after trial", "[mpi][device]") {
    Devices devices;
    if (devices.on == nullptr) {
        std::printf("skipped: %s\n", device::open_module().why.c_str());
        return;
    }
    int wrong = 0;
    for (int trial = 0; trial < 3; ++trial) {
        const auto group = devices.group();
        ddp::GradientReducer reducer(*group, {1000, 70'000}, 50'000, base::DType::float32, base::Place(*devices.on));
        for (int step = 0; step < 20; ++step) wrong += wrong_sums(devices, *group, reducer, step, 71'000);
    }
    CHECK(wrong == 0);
    const auto counts = devices.groups.counts();
    CHECK(counts.made == (test::world().size() > 1 ? 1 : 0));
    CHECK(counts.reused == (test::world().size() > 1 ? 2 : 0));
}

TEST_CASE("a process that throws in a step takes the others along", "[mpi][device]") {
    Devices devices;
    if (devices.on == nullptr) return;
    const auto group = devices.group();
    const int last = group->size() - 1;
    ddp::GradientReducer reducer(*group, {1000, 70'000}, 50'000, base::DType::float32, base::Place(*devices.on));
    bool left = false;
    try {
        ddp::run_step(reducer, [&] {
            reducer.ready(1);
            if (group->rank() == last) throw base::Error("here");
            reducer.ready(0);
        });
    } catch (const base::Error&) { // PeerFailed among them
        left = true;
    }
    CHECK(left);
    CHECK(wrong_sums(devices, *group, reducer, 1, 71'000) == 0);
}

/// Bus bandwidth as nccl-tests define it: 2 (n - 1) / n of the bytes, per time. For people: no test of a time.
TEST_CASE("bandwidth of sums on devices", "[.bandwidth]") {
    Devices devices;
    if (devices.on == nullptr) return;
    const auto group = devices.group();
    for (const std::size_t count : {std::size_t{1} << 10U, std::size_t{1} << 18U, std::size_t{1} << 24U}) {
        ddp::GradientReducer reducer(*group, {count}, count, base::DType::float32, base::Place(*devices.on));
        const auto steps = [&](int number) {
            for (int i = 0; i < number; ++i) ddp::run_step(reducer, [&] { reducer.ready(0); });
            wait_for(devices.on->compute_stream());
        };
        steps(5);
        const auto begin = std::chrono::steady_clock::now();
        steps(50);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 50;
        const double n = group->size();
        if (group->rank() == 0)
            std::printf("%10zu bytes  %9.1f us  %7.2f GB/s bus bandwidth  %s\n", count * sizeof(float), seconds * 1e6,
                        2 * (n - 1) / n * static_cast<double>(count * sizeof(float)) / seconds / 1e9,
                        devices.on->facts().name.c_str());
    }
}

} // namespace device_test
