// SPDX-License-Identifier: Apache-2.0
// The order between LibTorch's stream and the compute stream, at every entry and exit of DataParallel. LibTorch has no
// CUDA here: its streams are clocks, and its tensors lie on the host.

#include "clocked_streams.hpp"

namespace libtorch_streams_test {

using namespace ranktune;
using namespace ranktune::libtorch_test;
using testing::StreamClock;

TEST_CASE("every function of DataParallel takes its turn between what LibTorch did before and does later",
          "[libtorch]") {
    testing::ClockedAccelerator accelerator;
    ClockedStreams streams;
    StreamClock& compute = accelerator.compute_clock;
    const auto check_turn = [&](const char* name, const auto& call) {
        INFO(name);
        streams.work();
        call();
        CHECK(streams.now == &streams.before);
        CHECK(follows(compute, streams.before)); // the work before was seen
        CHECK(follows(streams.before, compute)); // the work later sees it
    };
    const auto group = make_self_group();
    const auto all = samples(4);
    auto module = net(false);
    torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    std::unique_ptr<DataParallel> parallel;
    check_turn("constructor", [&] {
        parallel = std::make_unique<DataParallel>(*group, module.ptr(),
                                                  libtorch::Where{torch::kCPU, base::Place(accelerator)});
    });
    for (int repetition = 0; repetition < 2; ++repetition)
        check_turn("step", [&] {
            static_cast<void>(parallel->step(
                [&] {
                    CHECK(streams.now == &compute);
                    streams.work();
                    return torch::mse_loss(module->forward(all.inputs), all.targets);
                },
                1.0));
        });
    CHECK_THROWS(check_turn("a step that throws", [&] {
        static_cast<void>(parallel->step([]() -> torch::Tensor { throw base::Error("no data"); }, 1.0));
    }));
    CHECK(streams.now == &streams.before);
    CHECK(follows(streams.before, compute));
    study::MemoryState state;
    check_turn("save", [&] { parallel->save(state, optimizer); });
    check_turn("load", [&] { parallel->load(state, optimizer); });
    check_turn("destructor", [&] { parallel.reset(); });
}

TEST_CASE("gradients that autograd computes on another stream are seen", "[libtorch]") {
    testing::ClockedAccelerator accelerator;
    ClockedStreams streams;
    StreamClock elsewhere; // of autograd's thread
    const auto group = make_self_group();
    const auto all = samples(4);
    auto module = net(false);
    DataParallel parallel(*group, module.ptr(), libtorch::Where{torch::kCPU, base::Place(accelerator)});
    int seen = 0;
    module->parameters().front().register_hook([&](const torch::Tensor& gradient) {
        streams.now = &elsewhere;
        streams.work();
        ++seen;
        return gradient;
    });
    static_cast<void>(parallel.step([&] { return torch::mse_loss(module->forward(all.inputs), all.targets); }, 1.0));
    CHECK(seen == 1);
    CHECK(follows(accelerator.compute_clock, elsewhere));
}

#ifndef RANKTUNE_LIBTORCH_HAS_CUDA
TEST_CASE("without CUDA LibTorch has no streams, and says so", "[libtorch]") {
    if (torch::cuda::is_available()) return;
    CHECK_THROWS_AS(libtorch::current_streams(), UsageError);
}
#endif

} // namespace libtorch_streams_test
