// SPDX-License-Identifier: Apache-2.0
// Launchers in the commands of programs: which are recognised.

#include <string>

#include "ranktune/study/command_template.hpp"
#include "study/launchers.hpp"
#include "support/catch.hpp"

namespace launchers_test {

using namespace ranktune::study;

namespace {

std::string found(const std::string& command, bool shell = false) {
    ProgramSpec program;
    program.command = command;
    program.shell = shell;
    return launcher_in(program);
}

} // namespace

TEST_CASE("a launcher in a command is found", "[study]") {
    CHECK(found("torchrun --nproc_per_node=4 train.py --lr={lr} {args}") == "torchrun");
    CHECK(found("/opt/venv/bin/torchrun --standalone --nproc-per-node 2 -m pkg.train {args}") == "torchrun");
    CHECK(found("python3.11 -u -m torch.distributed.run --nproc_per_node 2 'my train.py'") ==
          "python3.11 -m torch.distributed.run");
    CHECK(found("/v/bin/python /v/bin/torchrun train.py") == "torchrun");
    CHECK(found("accelerate launch --num_processes 8 src/train.py {args}") == "accelerate launch");
    CHECK(found("deepspeed --num_gpus=2 train.py --deepspeed ds.json") == "deepspeed");
    CHECK(found("mpirun -np 4 --host a,b python3 train.py {args}") == "mpirun");
    CHECK(found("mpiexec.hydra -n {n} ./sim {x}") == "mpiexec.hydra");
    CHECK(found("srun --ntasks=2 ./sim") == "srun");
    CHECK(found("horovodrun -np 2 -H localhost:2 python train.py") == "horovodrun");
    CHECK(found("mpirun simulate {x}") == "mpirun");
}

TEST_CASE("a launcher is found after wrappers, and wherever a shell starts a program", "[study]") {
    CHECK(found("env OMP_NUM_THREADS=1 torchrun train.py") == "torchrun");
    CHECK(found("apptainer exec --nv image.sif torchrun train.py") == "torchrun");
    CHECK(found(". venv/bin/activate && torchrun --nproc_per_node=2 train.py {args}", true) == "torchrun");
    CHECK(found("cd x; A=1 srun -n 2 ./sim | tee log", true) == "srun");
    CHECK(found("(mpirun -n 2 ./sim)", true) == "mpirun");
    CHECK(found("(", true).empty());
    CHECK(found("cd 'x", true).empty());
}

TEST_CASE("the name of a launcher among the arguments does not count", "[study]") {
    CHECK(found("python3 train.py --launcher torchrun {args}").empty());
    CHECK(found("python3 srun").empty());
    CHECK(found("nice -n 5 ./sim mpirun").empty());
    CHECK(found("python3 -m accelerate_my_training launch").empty());
    CHECK(found("accelerate config").empty());
    CHECK(found("sh mpirun.sh {x}").empty());
    CHECK(found("echo srun", true).empty());
    CHECK(found("{tool} mpirun").empty());
    CHECK(found("").empty());
}

TEST_CASE("the words of a command are known as they are written", "[study]") {
    const auto words = CommandTemplate::written("env 'a b'  {x}.py\\ c --y={{1}} {args}");
    REQUIRE(words.size() == 5);
    CHECK(words[1].text == "a b");
    CHECK_FALSE(words[1].varies);
    CHECK(words[2].text == "{x}.py c");
    CHECK(words[2].varies);
    CHECK(words[3].text == "--y={1}");
    CHECK_FALSE(words[3].varies);
    CHECK(words[4].text == "{args}");
}

} // namespace launchers_test
