// SPDX-License-Identifier: Apache-2.0
// The environments below are those of tasks under Slurm 22.05, named after the options that made them.
#include "slurm/gpus.hpp"
#include "support/catch.hpp"

namespace gpus_test {

using namespace ranktune::slurm;
using ranktune::base::Variables;
using Names = std::vector<std::string>;

namespace {

Variables task(Variables variables) {
    variables.emplace("SLURM_JOB_ID", "7");
    return variables;
}

/// A task to which srun granted `devices`.
Variables shown(const std::string& devices) {
    return task({{"CUDA_VISIBLE_DEVICES", devices},
                 {"GPU_DEVICE_ORDINAL", devices},
                 {"ROCR_VISIBLE_DEVICES", devices},
                 {"SLURM_STEP_GPUS", devices},
                 {"SLURM_GPUS_ON_NODE", "4"}});
}

RankOnNode on(const std::string& node, const Variables& variables) { return {node, visible_gpus(variables)}; }

/// Ranks on one node that all have the same environment.
std::vector<RankOnNode> same(std::size_t ranks, const Variables& variables) {
    return std::vector<RankOnNode>(ranks, on("n1", variables));
}

} // namespace

TEST_CASE("What a rank sees, by the variable that says it", "[slurm]") {
    struct Row {
        const char* form;
        Variables variables;
        Names devices;
        const char* by;
    };
    const Row rows[] = {
        {"no GPUs asked for", task({}), {}, ""},
        {"--gpus-per-node=4", shown("0,1,2,3"), {"0", "1", "2", "3"}, "CUDA_VISIBLE_DEVICES=0,1,2,3"},
        {"one bound to the task", shown("2"), {"2"}, "CUDA_VISIBLE_DEVICES=2"},
        {"range", task({{"CUDA_VISIBLE_DEVICES", "0-2"}}), {"0", "1", "2"}, "CUDA_VISIBLE_DEVICES=0-2"},
        {"by name",
         task({{"CUDA_VISIBLE_DEVICES", "GPU-1a-2b,MIG-7"}}),
         {"GPU-1a-2b", "MIG-7"},
         "CUDA_VISIBLE_DEVICES=GPU-1a-2b,MIG-7"},
        {"set and empty",
         task({{"CUDA_VISIBLE_DEVICES", ""}, {"SLURM_GPUS_ON_NODE", "4"}}),
         {},
         "CUDA_VISIBLE_DEVICES="},
        {"no device files", task({{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}), {}, "CUDA_VISIBLE_DEVICES=NoDevFiles"},
        {"-1 ends the list", task({{"CUDA_VISIBLE_DEVICES", "0,-1,1"}}), {"0"}, "CUDA_VISIBLE_DEVICES=0,-1,1"},
        {"AMD by HIP",
         task({{"HIP_VISIBLE_DEVICES", "1,2"}, {"ROCR_VISIBLE_DEVICES", "4,5,6"}}),
         {"5", "6"},
         "HIP_VISIBLE_DEVICES=1,2"},
        {"AMD by ROCR", task({{"ROCR_VISIBLE_DEVICES", "4,5"}}), {"4", "5"}, "ROCR_VISIBLE_DEVICES=4,5"},
        {"OpenCL only", task({{"GPU_DEVICE_ORDINAL", "0,1"}}), {"0", "1"}, "GPU_DEVICE_ORDINAL=0,1"},
        {"step only", task({{"SLURM_STEP_GPUS", "3"}, {"SLURM_JOB_GPUS", "2,3"}}), {"3"}, "SLURM_STEP_GPUS=3"},
        {"job only", task({{"SLURM_JOB_GPUS", "2,3"}}), {"2", "3"}, "SLURM_JOB_GPUS=2,3"},
        {"--gpu-bind=none", task({{"SLURM_GPUS_ON_NODE", "3"}}), {"0", "1", "2"}, "SLURM_GPUS_ON_NODE=3"},
        {"--gpu-bind=none with a type",
         task({{"SLURM_GPUS_ON_NODE", "a100:2"}}),
         {"0", "1"},
         "SLURM_GPUS_ON_NODE=a100:2"},
        {"nonsense", task({{"SLURM_GPUS_ON_NODE", "some"}}), {}, "SLURM_GPUS_ON_NODE=some"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.form);
        const VisibleGpus gpus = visible_gpus(row.variables);
        CHECK(gpus.devices == row.devices);
        CHECK(gpus.by == row.by);
        CHECK(gpus.identities.size() == gpus.devices.size());
    }
}

TEST_CASE("The machine's own GPUs count outside a job only", "[slurm]") {
    CHECK(visible_gpus({}, 2).devices == Names{"0", "1"});
    CHECK(visible_gpus({}, 2).by == "GPUs of the machine=2");
    CHECK(visible_gpus({{"CUDA_VISIBLE_DEVICES", "1"}}, 2).devices == Names{"1"});
    CHECK(visible_gpus({{"CUDA_VISIBLE_DEVICES", ""}}, 2).devices.empty());
    CHECK(visible_gpus(task({}), 2).devices.empty()); // another job's
    CHECK(visible_gpus({}).devices.empty());
}

TEST_CASE("Slurm's own numbers distinguish devices that a cgroup has renumbered", "[slurm]") {
    const auto first = visible_gpus(task({{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_STEP_GPUS", "2"}}));
    CHECK(first.devices == Names{"0"});
    CHECK(first.identities == Names{"2"});
    const auto batch = visible_gpus(task({{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_JOB_GPUS", "2,3"}}));
    CHECK(batch.identities == Names{"2", "3"});
    // Another count of devices: Slurm's numbers are not used.
    CHECK(visible_gpus(task({{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_STEP_GPUS", "2,3"}})).identities == Names{"0"});
}

TEST_CASE("Where all tasks of a node see its GPUs, worker i takes GPU i and the head none", "[slurm]") {
    const auto shares = share_gpus(same(5, shown("0,1,2,3"))); // --gpus-per-node=4, --gres=gpu:4, --gpus=4, mpirun
    CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"1"}, {"2"}, {"3"}});
    CHECK(shares.problem.empty());
    CHECK_FALSE(shares.none_granted);
}

TEST_CASE("GPUs of ranks have names that are unique on the node", "[slurm]") {
    // A cgroup calls the device of every task "0"; Slurm's numbers tell them apart.
    const auto task_with = [](const char* number) {
        return task({{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_STEP_GPUS", number}});
    };
    const auto shares = share_gpus({on("n1", task_with("2")), on("n1", task_with("2")), on("n1", task_with("3"))});
    CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"0"}});
    CHECK(shares.identities == Names{"", "2", "3"});
    const Variables both{{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_GPUS_PER_TASK", "2"}};
    CHECK(share_gpus({on("n1", {}), on("n1", task(both))}).identities == Names{"", "0,1"});
}

TEST_CASE("Each node counts its own workers, and ranks may lie on the nodes in any order", "[slurm]") {
    const Variables four = shown("0,1,2,3");
    const std::vector<RankOnNode> ranks{on("n1", four), on("n2", four), on("n1", four),        on("n3", shown("6,7")),
                                        on("n2", four), on("n1", four), on("n3", shown("6,7"))};
    const auto shares = share_gpus(ranks);
    CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"0"}, {"6"}, {"1"}, {"1"}, {"7"}});
    CHECK(shares.problem.empty());
}

TEST_CASE("A GPU that is bound to a task stays with it", "[slurm]") {
    SECTION("--gpus-per-task=1, --gpu-bind=map_gpu:0,1,2: the head's goes unused") {
        const auto shares = share_gpus({on("n1", shown("0")), on("n1", shown("1")), on("n1", shown("2"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"1"}, {"2"}});
        CHECK(shares.problem.empty());
    }
    SECTION("--gpu-bind=single:1 with the head on top: the last worker gets the head's") {
        const auto shares = share_gpus({on("n1", shown("0")), on("n1", shown("1")), on("n1", shown("2")),
                                        on("n1", shown("3")), on("n1", shown("0"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"1"}, {"2"}, {"3"}, {"0"}});
    }
    SECTION("--gpu-bind=single:1 shows all of them to a task that is alone on its node: it takes one") {
        const auto shares = share_gpus({on("n1", shown("0")), on("n1", shown("1")), on("n2", shown("0,1,2,3"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"1"}, {"0"}});
    }
    SECTION("a cgroup per task: every task calls its own GPU 0") {
        const auto bound = [](const char* real) {
            return task({{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_STEP_GPUS", real}, {"SLURM_GPUS_PER_TASK", "1"}});
        };
        const auto shares = share_gpus({on("n1", bound("0")), on("n1", bound("1")), on("n1", bound("2"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"0"}});
        CHECK(shares.problem.empty());
    }
    SECTION("--gpus-per-task=2: a rank keeps both") {
        auto pair = [](const char* devices) {
            auto variables = shown(devices);
            variables["SLURM_GPUS_PER_TASK"] = "2";
            return variables;
        };
        const auto shares = share_gpus({on("n1", pair("0,1")), on("n1", pair("2,3")), on("n2", pair("0,1"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"2", "3"}, {"0", "1"}});
    }
    SECTION("--gpus-per-task=1 --gpu-bind=none names no device: one each, in order") {
        const Variables unbound = task({{"SLURM_GPUS_ON_NODE", "3"}, {"SLURM_GPUS_PER_TASK", "1"}});
        CHECK(share_gpus(same(3, unbound)).by_rank == std::vector<Names>{{}, {"0"}, {"1"}});
    }
    SECTION("--gpu-bind=closest: two tasks for each half of the node") {
        const auto shares = share_gpus({on("n1", shown("0,1")), on("n1", shown("0,1")), on("n1", shown("0,1")),
                                        on("n1", shown("2,3")), on("n1", shown("2,3"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"1"}, {"2"}, {"3"}});
    }
    SECTION("masks that overlap: as many as possible get one") {
        const auto shares =
            share_gpus({on("n1", {}), on("n1", shown("0,1")), on("n1", shown("0")), on("n1", shown("1,2"))});
        CHECK(shares.by_rank == std::vector<Names>{{}, {"1"}, {"0"}, {"2"}});
        CHECK(shares.problem.empty());
    }
}

TEST_CASE("Several workers share a GPU where they may, and every GPU is used before one is shared", "[slurm]") {
    const auto shares = share_gpus(same(7, shown("0,1,2")), 2);
    CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"1"}, {"2"}, {"0"}, {"1"}, {"2"}});
    CHECK(shares.identities == Names{"", "0", "1", "2", "0", "1", "2"});
    CHECK(shares.problem.empty());
    CHECK(share_gpus(same(4, shown("0,1,2")), 4).by_rank == std::vector<Names>{{}, {"0"}, {"1"}, {"2"}});
    const auto tight = share_gpus({on("n1", shown("0")), on("n1", shown("0")), on("n1", shown("0,1"))}, 2);
    CHECK(tight.by_rank == std::vector<Names>{{}, {"0"}, {"1"}});
    const std::string named = "#SBATCH --ntasks-per-node=8 in slurm/gpu.sbatch, which adds the head";
    CHECK(
        share_gpus(same(10, shown("0,1")), 4).problem ==
        "n1: 9 workers for 2 GPUs (CUDA_VISIBLE_DEVICES=0,1), so that 5 would use one; start 4 workers for each GPU: " +
            named);
    CHECK(share_gpus(same(10, task({})), 4).problem ==
          "n1: no GPU was granted; ask for one per 4 workers: #SBATCH --gpus-per-node=3, or --gres=gpu:3");
}

TEST_CASE("Unused GPUs are not an error", "[slurm]") {
    const auto shares = share_gpus(same(3, shown("0,1,2,3")));
    CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"1"}});
    CHECK(shares.problem.empty());
}

TEST_CASE("Two workers on one GPU are an error, reported with the remedy", "[slurm]") {
    SECTION("more workers than GPUs") {
        const auto shares = share_gpus(same(6, shown("0,1,2,3")));
        CHECK(shares.by_rank == std::vector<Names>{{}, {"0"}, {"1"}, {"2"}, {"3"}, {}});
        CHECK(
            shares.problem ==
            "n1: 5 workers for 4 GPUs (CUDA_VISIBLE_DEVICES=0,1,2,3), so that two would use one; start one worker for "
            "each GPU: #SBATCH --ntasks-per-node=4 in slurm/gpu.sbatch, which adds the head");
    }
    SECTION("--gpus-per-task=1 under mpirun, which is one task on each node") {
        auto one = shown("0");
        one["SLURM_GPUS_PER_TASK"] = "1";
        CHECK(share_gpus(same(5, one)).problem ==
              "n1: 4 workers for 1 GPU (CUDA_VISIBLE_DEVICES=0), so that two would use one; ask for GPUs by node, not "
              "by task (--gpus-per-task): #SBATCH --gpus-per-node=4");
    }
    SECTION("on a machine without Slurm") {
        const std::vector<RankOnNode> two(3, {"box", visible_gpus({{"CUDA_VISIBLE_DEVICES", "0"}})});
        CHECK(share_gpus(two).problem ==
              "box: 2 workers for 1 GPU (CUDA_VISIBLE_DEVICES=0), so that two would use one; start one worker for each "
              "GPU: --local 1");
        const std::vector<RankOnNode> none(3, {"box", visible_gpus({})});
        CHECK(share_gpus(none).problem ==
              "box: this machine has no GPU that ranktune can see; where it has some, name them: "
              "CUDA_VISIBLE_DEVICES=0,1");
    }
    SECTION("--ntasks-per-gpu=2") {
        const auto shares =
            share_gpus({on("n1", shown("0")), on("n1", shown("0")), on("n1", shown("1")), on("n1", shown("1"))});
        CHECK(shares.by_rank[2] == Names{"1"});
        CHECK(shares.by_rank[3].empty());
        CHECK(
            shares.problem.starts_with("n1: 3 workers for 2 GPUs (CUDA_VISIBLE_DEVICES=0), so that two would use one"));
    }
    SECTION("the same variable exported to all") {
        CHECK(share_gpus(same(3, task({{"CUDA_VISIBLE_DEVICES", "0"}})))
                  .problem.starts_with("n1: 2 workers for 1 GPU ("));
    }
    SECTION("a node without any") {
        const auto shares = share_gpus({on("n1", shown("0")), on("n1", shown("0")), on("n2", task({}))});
        CHECK(shares.problem ==
              "n2: no GPU was granted; ask for one per worker: #SBATCH --gpus-per-node=1, or --gres=gpu:1");
        CHECK_FALSE(shares.none_granted);
    }
    SECTION("no GPUs in the job at all") {
        const auto shares = share_gpus(same(3, task({})));
        CHECK(shares.none_granted);
        CHECK(shares.problem ==
              "n1: no GPU was granted; ask for one per worker: #SBATCH --gpus-per-node=2, or --gres=gpu:2");
    }
    SECTION("many nodes: three are named") {
        std::vector<RankOnNode> ranks{on("n0", {})};
        for (const char* node : {"n1", "n2", "n3", "n4", "n5"}) ranks.push_back(on(node, task({})));
        const auto shares = share_gpus(ranks);
        CHECK(shares.problem.find("n3: no GPU") != std::string::npos);
        CHECK(shares.problem.find("n4") == std::string::npos);
        CHECK(shares.problem.ends_with("\n  and 2 other nodes"));
    }
}

TEST_CASE("cores per GPU are those of the poorest node of the partition that has enough GPUs", "[slurm]") {
    const std::string answer =
        "cpu*|128|(null)\n"
        "gpu|64|gpu:a100:4(S:0-1),shard:a100:16\n"
        "gpu|48|gpu:a100:2(IDX:0,1),gpu:v100:2\n"
        "gpu|96|gpu:8\n"
        "small*|16|gpu:tesla:4\n";
    CHECK(cores_per_gpu(answer, "gpu", 1) == 12U);
    CHECK(cores_per_gpu(answer, "gpu", 8) == 12U);
    CHECK(cores_per_gpu("gpu|64|gpu:4\n", "gpu", 4) == 16U);
    CHECK(cores_per_gpu(answer, "", 4) == 4U);
    CHECK(cores_per_gpu(answer, "small", 4) == 4U);
    CHECK(cores_per_gpu(answer, "gpu", 9) == std::nullopt);
    CHECK(cores_per_gpu(answer, "cpu", 1) == std::nullopt);
    CHECK(cores_per_gpu("", "gpu", 1) == std::nullopt);
    CHECK(cores_per_gpu("slurm_load_node: error|x|gpu:y", "", 1) == std::nullopt);
}

} // namespace gpus_test
