// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_line.hpp"

#include <sstream>

#include "support/catch.hpp"

namespace launch_line_test {

using namespace ranktune::launch;

namespace {

std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> found;
    for (std::string word; in >> word;) found.push_back(word);
    return found;
}

std::string text(const std::vector<std::string>& all) {
    std::string line;
    for (const auto& word : all) line += (line.empty() ? "" : " ") + word;
    return line;
}

std::string reduced(const std::string& line, StepNodes nodes) {
    const auto result = without_nodes(launch_line(words(line)), nodes, "/tmp/left");
    REQUIRE(result);
    return text(result->words);
}

const StepNodes three_without_n2{{"n1", "n2", "n3"}, {4, 4, 2}, {"n2"}, {}, std::nullopt};

} // namespace

TEST_CASE("A supervised line shows its launcher and its study", "[launch]") {
    const auto by_srun = launch_line(words("/usr/bin/srun --mpi=pmix -n 4 ranktune run s.toml -o d"));
    CHECK(by_srun.launcher == Launcher::srun);
    CHECK(by_srun.program == 4);
    CHECK(text(by_srun.run_arguments()) == "s.toml -o d");
    CHECK(launch_line(words("mpiexec.openmpi -n 4 ./mine run s.toml")).launcher == Launcher::mpirun);
    const auto plain = launch_line(words("ranktune run s.toml"));
    CHECK(plain.launcher == Launcher::none);
    CHECK(plain.program == 0);
    const auto script = launch_line(words("bash job.sh"));
    CHECK(script.launcher == Launcher::other);
    CHECK_FALSE(script.program);
    CHECK(script.run_arguments().empty());
}

TEST_CASE("srun is started again on the remaining nodes, with their share of tasks", "[launch]") {
    CHECK(reduced("srun --mpi=pmix -n 9 ranktune run s.toml", three_without_n2) ==
          "srun --mpi=pmix -n 9 --exclude=n2 --nodes=2 --ntasks=6 ranktune run s.toml");
    CHECK(reduced("srun --ntasks-per-node=3 -w n1,n2,n3 ranktune run s.toml", three_without_n2) ==
          "srun --ntasks-per-node=3 --exclude=n2 --nodes=2 --ntasks=6 ranktune run s.toml");
    auto nodes = three_without_n2;
    nodes.job_tasks = 12;
    CHECK(reduced("srun ranktune run s.toml", nodes) == "srun --exclude=n2 --nodes=2 --ntasks=8 ranktune run s.toml");
}

TEST_CASE("A hosts file loses the lines of lost nodes", "[launch]") {
    StepNodes nodes{{"n1", "n2"}, {2, 2}, {"n2"}, words("n1 n1 n1 n2 n2"), std::nullopt};
    const auto line = launch_line(words("srun --distribution=arbitrary --ntasks=5 ranktune run s.toml"));
    CHECK(hosts_file(line, "/tmp/hosts") == "/tmp/hosts");
    const auto left = without_nodes(line, nodes, "/tmp/left");
    REQUIRE(left);
    CHECK(text(left->words) == "srun --distribution=arbitrary --ntasks=5 --nodes=1 --ntasks=3 ranktune run s.toml");
    CHECK(text(left->hosts) == "n1 n1 n1");

    const auto mpi = launch_line(words("mpirun --hostfile /tmp/hosts --map-by seq -np 5 ranktune run s.toml"));
    CHECK(hosts_file(mpi, "") == "/tmp/hosts");
    nodes.gone = {"n1"}; // the head's
    const auto headless = without_nodes(mpi, nodes, "/tmp/left");
    REQUIRE(headless);
    CHECK(text(headless->words) == "mpirun --hostfile /tmp/left --map-by seq -np 3 ranktune run s.toml");
    CHECK(text(headless->hosts) == "n2 n2 n2"); // the head moves to a node of workers
}

TEST_CASE("mpirun gets the remaining nodes", "[launch]") {
    CHECK(reduced("mpirun -np 10 ranktune run s.toml", three_without_n2) ==
          "mpirun -np 6 --host n1:4,n3:2 ranktune run s.toml");
    CHECK(reduced("mpirun ranktune run s.toml", three_without_n2) == "mpirun --host n1:4,n3:2 ranktune run s.toml");
    CHECK(reduced("mpirun --host n1:3,n2:3 -n 6 ranktune run s.toml", three_without_n2) ==
          "mpirun --host n1:3 -n 3 ranktune run s.toml");
    StepNodes slots = three_without_n2;
    slots.hosts = {"n1 slots=3", "n2 slots=3", "n3 slots=3"};
    CHECK(reduced("mpirun --machinefile=h -np 9 ranktune run s.toml", slots) ==
          "mpirun --machinefile=/tmp/left -np 6 ranktune run s.toml");
}

TEST_CASE("Without `run` in the line, or without a node, nothing can be reduced", "[launch]") {
    CHECK_FALSE(without_nodes(launch_line(words("srun ./script")), three_without_n2, ""));
    CHECK_FALSE(without_nodes(launch_line(words("bash -c run")), three_without_n2, ""));
    StepNodes none = three_without_n2;
    none.gone = none.all;
    CHECK_FALSE(without_nodes(launch_line(words("srun ranktune run s.toml")), none, ""));
}

} // namespace launch_line_test
