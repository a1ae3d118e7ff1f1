// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/launch.hpp"

#include <tuple>

#include "comm/mpi/launcher_words.hpp"
#include "support/catch.hpp"

namespace launch_test {

using namespace ranktune::comm::mpi;
using ranktune::base::Variables;

namespace {

LaunchFacts open_mpi() {
    return {Library::open_mpi, "Open MPI 4.1.4", "/apps/ranktune/0.1.0/bin/ranktune", "ranktune run digits.toml", ""};
}

LaunchFacts mpich() {
    auto facts = open_mpi();
    facts.library = Library::mpich;
    facts.library_version = "MPICH 4.0.2";
    return facts;
}

Variables srun_task(const std::string& task, const std::string& tasks) {
    return {{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", task}, {"SLURM_STEP_NUM_TASKS", tasks}};
}

Variables with(Variables variables, const Variables& more) {
    variables.insert(more.begin(), more.end());
    return variables;
}

const Variables mpirun_of_four{{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"PMIX_RANK", "1"}};
const Variables mpiexec_of_four{{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}, {"PMI_FD", "9"}};

} // namespace

TEST_CASE("tasks of srun without any interface to each other are a broken launch", "[comm]") {
    auto facts = open_mpi();
    facts.offered = "pmix, pmix_v4, pmi2";
    const auto broken = examine_launch(srun_task("0", "9"), facts);
    REQUIRE(broken);
    CHECK(broken->first);
    CHECK(broken->message ==
          "srun started 9 tasks, but each is alone in MPI (world size 1) (exit 2)\n"
          "  this program  Open MPI 4.1.4, PMIx     /apps/ranktune/0.1.0/bin/ranktune\n"
          "  srun used     no process manager interface (--mpi=none or the site's default); offered: pmix, pmix_v4, "
          "pmi2\n"
          "  try           srun --mpi=pmix ranktune run digits.toml");
}

TEST_CASE("only task 0 is told to print", "[comm]") {
    const auto broken = examine_launch(srun_task("3", "9"), open_mpi());
    REQUIRE(broken);
    CHECK_FALSE(broken->first);
}

TEST_CASE("the innermost launcher says how many processes were started", "[comm]") {
    CHECK_FALSE(launched_tasks({}));
    CHECK_FALSE(launched_tasks({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "9"}}));
    CHECK_FALSE(launched_tasks({{"PMIX_RANK", "1"}}));
    CHECK(launched_tasks(mpirun_of_four) == 4);
    CHECK(launched_tasks(mpiexec_of_four) == 4);
    CHECK(launched_tasks(srun_task("0", "9")) == 9);
    CHECK(launched_tasks(with(srun_task("0", "2"), mpirun_of_four)) == 4);
    CHECK_FALSE(launched_tasks({{"PMI_SIZE", "many"}}));
}

TEST_CASE("every launch that may work passes", "[comm]") {
    CHECK_FALSE(examine_launch({}, open_mpi()));
    CHECK_FALSE(examine_launch(srun_task("0", "1"), open_mpi()));
    CHECK_FALSE(examine_launch(with(srun_task("0", "9"), {{"PMIX_RANK", "0"}}), open_mpi()));
    CHECK_FALSE(examine_launch(with(srun_task("0", "9"), {{"PMI_FD", "9"}, {"PMI_RANK", "0"}}), mpich()));
    // Some Open MPIs are built with Slurm's PMI, so only MPI_Init can tell.
    CHECK_FALSE(examine_launch(with(srun_task("0", "9"), {{"PMI_FD", "9"}, {"PMI_RANK", "0"}}), open_mpi()));
    CHECK_FALSE(examine_launch(mpirun_of_four, open_mpi()));
    // mpirun in a job: its daemons are tasks of srun.
    CHECK_FALSE(examine_launch(with(srun_task("1", "2"), mpirun_of_four), open_mpi()));
    CHECK_FALSE(examine_launch(mpiexec_of_four, mpich()));
    // A batch script: the job has tasks, but no step has started any.
    CHECK_FALSE(examine_launch({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "9"}}, open_mpi()));
}

TEST_CASE("an Open MPI without PMI is refused before MPI_Init fails on every rank", "[comm]") {
    auto facts = open_mpi();
    facts.speaks_pmi = false;
    facts.offered = "pmix, pmix_v4, pmi2";
    const Variables pmi2{{"PMI_FD", "9"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "9"}};
    const auto broken = examine_launch(with(srun_task("0", "9"), pmi2), facts);
    REQUIRE(broken);
    CHECK(broken->by_srun);
    CHECK(broken->message.find("  srun used     --mpi=pmi2; offered: pmix, pmix_v4, pmi2\n"
                               "  try           srun --mpi=pmix ranktune run digits.toml") != std::string::npos);
    // PMIx is available too, or mpirun's daemons were started that way.
    CHECK_FALSE(examine_launch(with(with(srun_task("0", "9"), pmi2), {{"PMIX_RANK", "0"}}), facts));
    CHECK_FALSE(examine_launch(with(with(srun_task("0", "9"), pmi2), mpirun_of_four), facts));
    facts.library = Library::mpich;
    CHECK_FALSE(examine_launch(with(srun_task("0", "9"), pmi2), facts));
}

TEST_CASE("what srun offers is read from both forms of its list", "[comm]") {
    CHECK(offered_interfaces("MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
                             "specific pmix plugin versions available: pmix_v4,pmix_v5\n") ==
          "pmix, cray_shasta, pmi2, pmix_v4, pmix_v5");
    CHECK(offered_interfaces("srun: MPI types are...\nsrun: none\nsrun: openmpi\nsrun: pmi2") == "pmi2");
    CHECK(offered_interfaces("").empty());
    CHECK(offered_interfaces("srun: error: no such thing:").empty());
}

TEST_CASE("Open MPI under the launcher of MPICH is a broken launch", "[comm]") {
    const auto broken = examine_launch(mpiexec_of_four, open_mpi());
    REQUIRE(broken);
    CHECK(broken->message.find("mpiexec started 4 processes") == 0);
    CHECK(broken->message.find("the launcher of Open MPI 4.1.4") != std::string::npos);
}

TEST_CASE("a task that is alone after MPI_Init although others were started is a broken launch", "[comm]") {
    const auto pmi2 = examine_world(with(srun_task("0", "9"), {{"PMI_FD", "9"}, {"PMI_RANK", "0"}}), open_mpi(), 1);
    REQUIRE(pmi2);
    CHECK(pmi2->message.find("srun used     --mpi=pmi2\n") != std::string::npos);
    const auto pmix = examine_world(with(srun_task("0", "9"), {{"PMIX_RANK", "0"}}), mpich(), 1);
    REQUIRE(pmix);
    CHECK(pmix->message.find("srun --mpi=pmi2 ranktune run digits.toml") != std::string::npos);
    const auto foreign = examine_world(mpirun_of_four, mpich(), 1);
    REQUIRE(foreign);
    CHECK_FALSE(foreign->first);
    CHECK(foreign->message.find("mpirun        is Open MPI's") != std::string::npos);

    CHECK_FALSE(examine_world(mpirun_of_four, open_mpi(), 4));
    CHECK_FALSE(examine_world(with(srun_task("0", "2"), {{"OMPI_COMM_WORLD_SIZE", "1"}}), open_mpi(), 1));
    CHECK_FALSE(examine_world({}, open_mpi(), 1));
}

TEST_CASE("ranks that share cores yield while they wait, except the head", "[comm]") {
    using Settings = std::vector<std::pair<std::string, std::string>>;
    const Settings yields{{"OMPI_MCA_mpi_yield_when_idle", "1"}};
    const auto task = [](const std::string& rank) {
        return with(srun_task(rank, "8"), {{"SLURM_STEP_TASKS_PER_NODE", "8"}, {"PMIX_RANK", rank}});
    };
    CHECK(settings_before_init(task("3"), Library::open_mpi, 2) == yields);
    CHECK(settings_before_init(task("0"), Library::open_mpi, 2).empty());
    CHECK(settings_before_init(task("3"), Library::open_mpi, 8).empty());
    CHECK(settings_before_init(task("3"), Library::mpich, 2).empty());
    CHECK(settings_before_init(with(task("3"), {{"OMPI_MCA_mpi_yield_when_idle", "0"}}), Library::open_mpi, 2).empty());
    CHECK(settings_before_init(with(mpirun_of_four, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}), Library::open_mpi, 2) ==
          yields);
    CHECK(settings_before_init({}, Library::open_mpi, 2).empty());
    auto uneven = task("3");
    uneven["SLURM_STEP_TASKS_PER_NODE"] = "5(x2),4";
    CHECK(settings_before_init(uneven, Library::open_mpi, 4) == yields);
}

TEST_CASE("shared memory must hold one whole segment and a part of each rank's", "[comm]") {
    CHECK(shared_memory_needed({}, 3) == 4'194'312 + 209'715 + 3 * 262'144);
    CHECK(shared_memory_needed({{"OMPI_MCA_btl_vader_segment_size", "1000000"}}, 10) == 1'050'000 + 10 * 262'144);
    CHECK(shared_memory_needed({{"OMPI_MCA_btl_vader_segment_size", "much"}}, 1) == shared_memory_needed({}, 1));
}

TEST_CASE("mpirun's messages are separated from ranks' output, and kept except those about ranks' ends", "[comm]") {
    LauncherWords words;
    const std::string frame(74, '-');
    CHECK_FALSE(words.take("ranktune: a sentence of a rank"));
    CHECK_FALSE(words.take("--- a row of a trial ---"));
    CHECK(words.text().empty());
    for (const std::string& line :
         {frame, std::string("Primary job  terminated normally, but 1 process returned"), frame})
        CHECK(words.take(line));
    CHECK(words.text().empty());
    for (const std::string& line : {frame, std::string("It appears as if there is not enough space"), frame})
        CHECK(words.take(line));
    CHECK_FALSE(words.take("a rank again"));
    CHECK(words.take("[n1:14064] 2 more processes have sent help message help-opal-shmem-mmap.txt / target full"));
    CHECK(words.take("mpirun: Forwarding signal 10 to job"));
    CHECK_FALSE(words.take("a rank says mpirun: Forwarding signal 10 to job"));
    const std::string complaint =
        "PMIX ERROR: BAD-PARAM in file ../../../src/event/pmix_event_notification.c at line 1033";
    CHECK(words.take("[n1:14064] " + complaint));
    CHECK_FALSE(words.take("a rank says [n1:14064] " + complaint));
    CHECK(words.text() == frame + "\nIt appears as if there is not enough space\n" + frame + "\n");
    CHECK(words.take(frame)); // mpirun is killed in the middle of a message
    CHECK(words.take("There are not enough slots"));
    CHECK(words.text().ends_with("There are not enough slots\n"));
}

TEST_CASE("a job outlives its ranks where mpirun of Open MPI was told so", "[comm]") {
    const auto told = [](const char* variable, const std::string& value) {
        return ranktune::base::Variables{{"OMPI_COMM_WORLD_SIZE", "4"}, {variable, value}};
    };
    for (const auto& [variable, version, other] : {std::tuple{recovery_variable, "Open MPI 4.1.4", "Open MPI 5.0.11"},
                                                   std::tuple{ulfm_variable, "Open MPI 5.0.11", "Open MPI 4.1.4"},
                                                   std::tuple{ulfm_variable, "Open MPI 10.0.0", "MPICH 4.0.2"}}) {
        CHECK(outlives_ranks(told(variable, "1"), version));
        CHECK_FALSE(outlives_ranks(told(variable, "0"), version));
        CHECK_FALSE(outlives_ranks(told(variable, "1"), other));
        CHECK_FALSE(outlives_ranks({{"OMPI_COMM_WORLD_SIZE", "4"}}, version));
        // `ranktune run` tells it, unless the user has said otherwise.
        CHECK_FALSE(survival_options({}, version).empty());
        CHECK(will_outlive_ranks(Starter::here, {}, version));
        CHECK(survival_options(told(variable, "0"), version).empty());
        CHECK_FALSE(will_outlive_ranks(Starter::here, told(variable, "0"), version));
    }
    CHECK(will_outlive_ranks(Starter::mpirun, {}, "Open MPI 4.1.4"));
    CHECK_FALSE(will_outlive_ranks(Starter::mpirun, {}, "Open MPI 5.0.11"));
    CHECK(survival_options({}, "MPICH 4.0.2").empty());
}

TEST_CASE("a job outlives its ranks where mpirun of Intel MPI was told so", "[comm]") {
    const std::string intel = "Intel(R) MPI Library 2021.17 for Linux* OS";
    const Variables rank{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}};
    CHECK_FALSE(outlives_ranks(rank, intel));
    CHECK(outlives_ranks(with(rank, {{fault_variable, "on"}}), intel));
    CHECK_FALSE(outlives_ranks(with(rank, {{fault_variable, "off"}}), intel));
    // Its proxies may be tasks of srun.
    const Variables below_srun =
        with(srun_task("0", "2"), {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}});
    CHECK(outlives_ranks(with(below_srun, {{fault_variable, "on"}}), intel));
    CHECK(launched_tasks(below_srun) == 4);
    CHECK_FALSE(outlives_ranks(with(rank, {{fault_variable, "on"}}), "MPICH 4.0.2"));
    CHECK(survival_options({}, intel) == std::vector<std::string>{"-genv", fault_variable, "on"});
    CHECK(survival_options({{fault_variable, "disable"}}, intel).empty());
    CHECK(survival_settings(Starter::mpirun, {}, intel) == Variables{{fault_variable, "on"}});
    CHECK(survival_settings(Starter::mpirun, {{fault_variable, "0"}}, intel).empty());
    CHECK(survival_settings(Starter::srun, {}, intel).empty());
    CHECK(will_outlive_ranks(Starter::mpirun, {}, intel));
    CHECK_FALSE(will_outlive_ranks(Starter::srun, {}, intel));
}

TEST_CASE("a step of srun outlives its ranks with Open MPI 4 over PMIx, unless the user has it ended", "[comm]") {
    const Variables task = with(srun_task("1", "4"), {{"PMIX_RANK", "1"}});
    CHECK_FALSE(outlives_ranks(task, "Open MPI 4.1.4"));
    CHECK_FALSE(outlives_ranks(with(task, {{recovery_variable, "1"}}), "Open MPI 4.1.4"));
    const Variables told = with(task, survival_settings(Starter::srun, task, "Open MPI 4.1.4"));
    CHECK(outlives_ranks(told, "Open MPI 4.1.4"));
    CHECK_FALSE(outlives_ranks(told, "Open MPI 5.0.11"));
    CHECK_FALSE(outlives_ranks(told, "MPICH 4.0.2"));
    CHECK(survival_settings(Starter::srun, task, "MPICH 4.0.2").empty());
    const Variables refused = with(task, {{"SLURM_KILL_BAD_EXIT", "1"}});
    CHECK(survival_settings(Starter::srun, refused, "Open MPI 4.1.4") == Variables{{"SLURM_NO_KILL", "set"}});
    CHECK_FALSE(
        outlives_ranks(with(refused, survival_settings(Starter::srun, refused, "Open MPI 4.1.4")), "Open MPI 4.1.4"));
}

} // namespace launch_test
