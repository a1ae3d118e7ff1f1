// SPDX-License-Identifier: Apache-2.0
#include "drivers/layout.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using drivers::Layout;

namespace {

/// A head and two workers on n1, one worker on n2.
Layout four_ranks() {
    Layout layout;
    layout.nodes = {"n1", "n1", "n1", "n2"};
    layout.gpus = {{}, {"0"}, {"1"}, {"0", "1"}};
    layout.job_has_gpus = true;
    return layout;
}

study::StudySpec asks_for(study::GpuUse gpus) {
    study::StudySpec spec;
    spec.resources.gpus = gpus;
    return spec;
}

} // namespace

TEST_CASE("A layout knows the GPUs of its ranks and nobody else's", "[drivers]") {
    const Layout layout = four_ranks();
    CHECK(layout.gpus_of(base::Rank(0)).empty());
    CHECK(layout.gpus_of(base::Rank(3)) == std::vector<std::string>{"0", "1"});
    CHECK(layout.gpus_of(base::Rank(4)).empty());
    CHECK(Layout{}.gpus_of(base::Rank(1)).empty());
    CHECK(layout.node_count() == 2);
}

TEST_CASE("The start screen names one node, or counts nodes and GPUs", "[drivers]") {
    Layout layout = four_ranks();
    CHECK(drivers::layout_words(layout, " - ") == "2 nodes - 4 GPUs");
    layout.nodes = {"n1", "n1"};
    layout.gpus = {{}, {"0"}};
    CHECK(drivers::layout_words(layout, " - ") == "n1 - 1 GPU");
    layout.gpus = {{}, {}};
    CHECK(drivers::layout_words(layout, " - ") == "n1");
}

TEST_CASE("The layout is written down by node, in the order of ranks", "[drivers]") {
    CHECK(drivers::layout_json(four_ranks()) ==
          "[{\"node\": \"n1\", \"ranks\": [0, 1, 2], \"gpus\": [\"\", \"0\", \"1\"]},\n"
          "    {\"node\": \"n2\", \"ranks\": [3], \"gpus\": [\"0,1\"]}]");
    CHECK(drivers::layout_json(Layout{}) == "[]");
}

TEST_CASE("A study that asks for GPUs does not start where two ranks would share one", "[drivers]") {
    Layout layout = four_ranks();
    CHECK(drivers::gpu_refusal(asks_for(study::GpuUse::one_per_rank), layout).empty());
    layout.gpu_problem = "n1: 3 workers for 2 GPUs";
    CHECK(drivers::gpu_refusal(asks_for(study::GpuUse::one_per_rank), layout) ==
          "resources.gpus: not every worker has a GPU of its own\n  n1: 3 workers for 2 GPUs");
    CHECK(drivers::gpu_refusal(asks_for(study::GpuUse::none), layout).empty());
    CHECK(drivers::gpu_refusal(asks_for(study::GpuUse::granted), layout).empty());
}

TEST_CASE("Programs take the GPUs that they see, so they do not start where two would see the same one", "[drivers]") {
    Layout layout = four_ranks();
    auto spec = asks_for(study::GpuUse::granted);
    spec.trainable.program.emplace();
    CHECK(drivers::gpu_refusal(spec, layout).empty());
    layout.gpu_problem = "n1: 3 workers for 2 GPUs";
    CHECK(drivers::gpu_refusal(spec, layout) ==
          "two trials would use the same GPU\n  n1: 3 workers for 2 GPUs\n  or, for "
          "programs that use none: resources.gpus = 0");
    layout.job_has_gpus = false;
    CHECK(drivers::gpu_refusal(spec, layout).empty());
}
