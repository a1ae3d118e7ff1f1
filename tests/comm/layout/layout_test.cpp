// SPDX-License-Identifier: Apache-2.0
#include "comm/layout/layout.hpp"
#include "comm/layout/binding.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace layout_test {

using namespace ranktune;
using namespace ranktune::comm;
using comm::Layout;

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

TEST_CASE("A layout knows the GPUs of its ranks and nobody else's", "[layout]") {
    const Layout layout = four_ranks();
    CHECK(layout.gpus_of(base::Rank(0)).empty());
    CHECK(layout.gpus_of(base::Rank(3)) == std::vector<std::string>{"0", "1"});
    CHECK(layout.gpus_of(base::Rank(4)).empty());
    CHECK(Layout{}.gpus_of(base::Rank(1)).empty());
    CHECK(layout.node_count() == 2);
}

TEST_CASE("The GPUs of a machine are counted also where numbers are missing", "[layout]") {
    const testing::TemporaryDirectory devices;
    for (const char* name : {"nvidia0", "nvidia2", "nvidia13", "nvidiactl", "nvidia-uvm", "nvidia", "null"})
        std::ofstream(devices.path() + "/" + name).put('x');
    CHECK(gpus_of_machine(devices.path()) == 3);
    CHECK(gpus_of_machine(devices.path() + "/none") == 0);
}

TEST_CASE("The start screen names one node, or counts nodes and GPUs", "[layout]") {
    Layout layout = four_ranks();
    CHECK(comm::layout_words(layout, " - ") == "2 nodes - 4 GPUs");
    layout.gpus = {{}, {"0"}, {"0"}, {"0"}};
    layout.gpu_names = {"", "4", "4", "4"}; // two ranks of n1 share one; that of n2 is another
    CHECK(comm::layout_words(layout, " - ") == "2 nodes - 2 GPUs");
    CHECK(comm::layout_words(layout, " - ", false) == "2 nodes");
    layout.gpu_names.clear();
    layout.nodes = {"n1", "n1"};
    layout.gpus = {{}, {"0"}};
    CHECK(comm::layout_words(layout, " - ") == "n1 - 1 GPU");
    layout.gpus = {{}, {}};
    CHECK(comm::layout_words(layout, " - ") == "n1");
}

TEST_CASE("The layout is written by node, in the order of ranks", "[layout]") {
    CHECK(comm::layout_json(four_ranks(), {}) ==
          "[{\"node\": \"n1\", \"ranks\": [0, 1, 2], \"gpus\": [\"\", \"0\", \"1\"]},\n"
          "    {\"node\": \"n2\", \"ranks\": [3], \"gpus\": [\"0,1\"]}]");
    CHECK(comm::layout_json(Layout{}, {}) == "[]");
}

TEST_CASE("A study that asks for GPUs does not start where two ranks would share one", "[layout]") {
    Layout layout = four_ranks();
    CHECK(comm::gpu_refusal(asks_for(study::GpuUse::one_per_rank), layout).empty());
    layout.gpu_problem = "n1: 3 workers for 2 GPUs";
    CHECK(comm::gpu_refusal(asks_for(study::GpuUse::one_per_rank), layout) ==
          "resources.gpus: not every worker has a GPU of its own\n  n1: 3 workers for 2 GPUs");
    CHECK(comm::gpu_refusal(asks_for(study::GpuUse::none), layout).empty());
    CHECK(comm::gpu_refusal(asks_for(study::GpuUse::granted), layout).empty());
}

TEST_CASE("Workers share GPUs as the study says", "[layout]") {
    Layout layout;
    layout.nodes = {"n1", "n1", "n1", "n1", "n1"};
    slurm::RankOnNode rank{"n1", {}};
    rank.gpus.devices = rank.gpus.identities = {"0", "1"};
    layout.seen.assign(5, rank);
    study::StudySpec spec = asks_for(study::GpuUse::one_per_rank);
    spec.resources.gpu_share = 0.5;
    layout.share_gpus(spec.resources.ranks_per_gpu());
    CHECK(comm::gpu_refusal(spec, layout).empty());
    CHECK(layout.gpus_of(base::Rank(1)) == std::vector<std::string>{"0"});
    CHECK(layout.gpus_of(base::Rank(3)) == std::vector<std::string>{"0"});
    CHECK(layout.gpu_count() == 2);
    layout.seen.push_back(rank);
    layout.nodes.emplace_back("n1");
    layout.share_gpus(2);
    CHECK(comm::gpu_refusal(spec, layout).starts_with("resources.gpus: not every worker has its share of a GPU\n"));
}

TEST_CASE("Where one trial wants more GPUs than there are, fewer workers are not enough", "[layout]") {
    Layout layout;
    layout.nodes = {"n1", "n1", "n1", "n1", "n1"};
    slurm::RankOnNode rank{"n1", {}};
    rank.gpus.devices = rank.gpus.identities = {"0"};
    layout.seen.assign(5, rank);
    layout.share_gpus(1);
    study::StudySpec spec = asks_for(study::GpuUse::one_per_rank);
    CHECK(comm::gpu_refusal(spec, layout).ends_with("start one worker for each GPU: --local 1"));
    spec.resources.ranks = 2;
    CHECK(comm::gpu_refusal(spec, layout)
              .ends_with("--local 1\n  and a trial may ask for 2 GPUs, of which there is 1: let it ask for fewer, "
                         "resources.gpus=1"));
    layout.seen.assign(5, slurm::RankOnNode{"n1", {}});
    layout.share_gpus(1);
    CHECK(comm::gpu_refusal(spec, layout).ends_with("or, for trials on cores: resources.gpus=0 resources.ranks=N"));
}

TEST_CASE("A study with GPU and CPU trials needs workers of both kinds", "[layout]") {
    study::StudySpec spec = asks_for(study::GpuUse::some);
    spec.space = space::SearchSpace({{"gpus", space::Choice{{0, 1, 2}, true}, {}}});
    spec.resources.ranks_parameter = "gpus";
    Layout layout;
    layout.nodes = {"n1", "n1", "n1", "n1", "n1"};
    slurm::RankOnNode rank{"n1", {}};
    rank.gpus.devices = rank.gpus.identities = {"0", "1"};
    layout.seen.assign(5, rank);
    layout.share_gpus(1);
    spec.resources.ranks = 2;
    CHECK(comm::gpu_refusal(spec, layout).empty()); // two workers have one each, and two have none
    spec.resources.ranks = 3;
    CHECK(comm::gpu_refusal(spec, layout) ==
          "resources.gpus: a trial may ask for none, and then for 3 workers without a GPU, of which this job has 2\n"
          "  as many workers as there are GPUs have one each: start 3 more workers than there are GPUs");
    rank.gpus.devices = rank.gpus.identities = {"0"};
    layout.seen.assign(5, rank);
    layout.share_gpus(1);
    CHECK(comm::gpu_refusal(spec, layout)
              .starts_with("resources.gpus: a trial may ask for 2 GPUs, and this job has 1 worker with one\n"));
}

TEST_CASE("Programs take the GPUs that they see, so they do not start where two would see the same one", "[layout]") {
    Layout layout = four_ranks();
    auto spec = asks_for(study::GpuUse::granted);
    spec.trainable.program.emplace();
    CHECK(comm::gpu_refusal(spec, layout).empty());
    layout.gpu_problem = "n1: 3 workers for 2 GPUs";
    CHECK(comm::gpu_refusal(spec, layout) ==
          "two trials would use the same GPU\n  n1: 3 workers for 2 GPUs\n  or, for "
          "programs that use none: resources.gpus = 0");
    layout.job_has_gpus = false;
    CHECK(comm::gpu_refusal(spec, layout).empty());
}

namespace {

/// Two nodes of eight cores in two NUMA domains; the head and two workers on the first, two workers on the second.
Layout two_nodes(const std::string& granted) {
    Layout layout;
    layout.nodes = {"n1", "n1", "n1", "n2", "n2"};
    layout.granted.assign(5, comm::cpus_of(granted));
    layout.own_cpus = true;
    layout.switches = {"s1", "s1", "s1", "s2", "s2"};
    layout.gpu_names = {"", "0", "1", "0", "1"};
    for (const char* node : {"n1", "n2"})
        for (std::uint32_t cpu = 0; cpu < 8; ++cpu) layout.machines[node].cores.push_back({{cpu}, cpu / 4});
    return layout;
}

} // namespace

TEST_CASE("Ranks are bound node by node, with one line in the log", "[layout]") {
    study::ResourceSpec resources;
    const Layout layout = two_nodes("0-7");
    const auto binding = comm::plan_binding(layout, resources);
    CHECK(binding.bound() == 5);
    CHECK(comm::cpu_text(binding.of(base::Rank(0))) == "0");
    CHECK(comm::cpu_text(binding.of(base::Rank(1))) == "1-3");
    CHECK(comm::cpu_text(binding.of(base::Rank(4))) == "4-7");
    CHECK(binding.words == "n1: 8 cores split: 1 for the head, 7 for 2 workers; n2: 8 cores split among 2 workers");
    CHECK(binding.warning.empty());
    const auto places = comm::places_of(layout, binding);
    REQUIRE(places.size() == 5);
    CHECK(places[4] == study::RankInfo{base::Rank(4), "n2", 0, 1, "s2", "1"});
    CHECK(places[1].domain == 0);
    CHECK(comm::layout_json(layout, binding)
              .find(R"("ranks": [3, 4], "gpus": ["", ""], "cpus": ["0-3", "4-7"], )"
                    R"("switches": "s2")") != std::string::npos);
    CHECK(comm::plan_binding(Layout{}, resources).words.empty());
}

TEST_CASE("A study can leave its ranks as the launcher left them", "[layout]") {
    study::ResourceSpec resources;
    resources.bind = study::Bind::none;
    const Layout layout = two_nodes("0-7");
    const auto binding = comm::plan_binding(layout, resources);
    CHECK(binding.bound() == 0);
    CHECK(binding.words == "off: resources.bind = \"none\"");
    CHECK(comm::cpu_text(comm::cpus_in_use(layout, binding, base::Rank(1))) == "0-7");
}

TEST_CASE("Cores that other programs may use are only split on request", "[layout]") {
    study::ResourceSpec resources;
    Layout layout = two_nodes("0-7");
    layout.own_cpus = false;
    const auto left = comm::plan_binding(layout, resources);
    CHECK(left.bound() == 0);
    CHECK(left.words == "not bound: other programs may use the same cores; resources.bind = \"cores\" binds anyway");
    resources.bind = study::Bind::cores;
    CHECK(comm::plan_binding(layout, resources).bound() == 5);
}

TEST_CASE("Workers that a launcher bound to too few processors are named, with the remedy", "[layout]") {
    Layout layout;
    layout.nodes = {"n1", "n1", "n1"};
    layout.granted = {{0}, {1}, {2}}; // mpirun with at most two ranks, or srun that counts one core per task
    study::ResourceSpec resources;
    resources.cpus_per_rank = 4;
    CHECK(comm::plan_binding(layout, resources).warning ==
          "rank 1 on n1 (and 1 more) may use 1 cpu (1), but resources.cpus_per_rank is 4: start with `mpirun --bind-to "
          "none`, or with `srun --cpus-per-task=4` or `--cpu-bind=none`, and ask for as many cores");
    resources.cpus_per_rank = 1;
    CHECK(comm::plan_binding(layout, resources).warning.empty());
    resources.cpus_per_rank = 9;
    CHECK(comm::plan_binding(two_nodes("0-7"), resources).warning ==
          "rank 1 on n1 (and 3 more) may use 8 cpus (0-7), but resources.cpus_per_rank is 9: that is the whole node: "
          "make it smaller");
}

} // namespace layout_test
