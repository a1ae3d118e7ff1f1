// SPDX-License-Identifier: Apache-2.0
#include "slurm/job_script.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/catch.hpp"

namespace job_script_test {

using namespace ranktune::slurm;
using namespace std::chrono_literals;

namespace {

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// slurm/gpu.sbatch; slurm/cpu.sbatch is the script without any choice.
JobScript gpu_template() {
    JobScript script;
    script.file = "gpu.sbatch";
    script.gpus.text = "--gpus-per-node=4";
    script.cpus_per_worker = 4;
    return script;
}

bool has(const std::string& text, const std::string& line) { return text.find(line) != std::string::npos; }

} // namespace

TEST_CASE("The templates in slurm/ are what submit writes, with the arguments left open", "[slurm]") {
    for (const auto& script : {JobScript{}, gpu_template()}) {
        const std::string path = std::string(RANKTUNE_SOURCE_ROOT "/slurm/") + script.file;
        // RANKTUNE_REWRITE=1 writes them: read the diff before you commit it.
        if (std::getenv("RANKTUNE_REWRITE") != nullptr) std::ofstream(path, std::ios::binary) << render(script);
        INFO(path);
        CHECK(read(path) == render(script));
    }
}

TEST_CASE("A script for one study says what it runs, and marks what a site file asked for", "[slurm]") {
    JobScript script = gpu_template();
    script.nodes = 2;
    script.time = 26h + 30min;
    script.lead = 300s;
    script.poll = 300s;
    script.gpus = {"--gres=gpu:4", "/etc/ranktune/site.toml:2"};
    script.options = {{"--partition=long", "/etc/ranktune/site.toml:3"}, {"--qos=high", ""}};
    script.commands = {{"module load openmpi", "/etc/ranktune/site.toml:4"}};
    script.arguments = "/data/my.toml study.seed=3 -o '/data/a b'";
    script.directory = "'/data/a b'";
    const std::string text = render(script);
    CHECK(has(text, "#SBATCH --nodes=2\n"));
    CHECK(has(text, "# from /etc/ranktune/site.toml:2:\n#SBATCH --gres=gpu:4\n"));
    CHECK_FALSE(has(text, "--gpus-per-node=4\n"));
    CHECK(has(text, "#SBATCH --time=1-02:30:00\n"));
    CHECK(has(text, "#SBATCH --signal=B:USR1@300\n"));
    CHECK(has(text, "while sleep 300; do\n"));
    CHECK(has(text, "# from /etc/ranktune/site.toml:3:\n#SBATCH --partition=long\n#SBATCH --qos=high\n"));
    CHECK(has(text, "# from /etc/ranktune/site.toml:4:\nmodule load openmpi\n"));
    CHECK(has(text, "set -- /data/my.toml study.seed=3 -o '/data/a b'\n"));
    CHECK(has(text, "directory='/data/a b'\n"));
    CHECK_FALSE(has(text, "usage:"));
    CHECK(arguments_of(text) == std::vector<std::string>{"/data/my.toml", "study.seed=3", "-o", "/data/a b"});
    CHECK(has(with_arguments(text, "other"), "\nset -- other\n"));
    CHECK(arguments_of("#!/bin/sh\nset -- $(reboot)\n").empty());
    CHECK(arguments_of("#!/bin/sh\n").empty());
    // Every directive must come before the first command, where Slurm stops reading.
    CHECK(text.rfind("\n#SBATCH") < text.find("module load"));
}

TEST_CASE("Time limits as Slurm reads them", "[slurm]") {
    CHECK(time_limit_text(90min) == "01:30:00");
    CHECK(time_limit_text(24h) == "1-00:00:00");
    CHECK(time_limit_text(23h + 59min + 59s) == "23:59:59");
}

} // namespace job_script_test
