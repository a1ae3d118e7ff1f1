// SPDX-License-Identifier: Apache-2.0
// Slurm's programs are scripts in a folder that is the whole PATH.
#include "launch/job_chain.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/files.hpp"

namespace job_chain_test {

using namespace ranktune;
using namespace ranktune::launch;

namespace {

class Programs {
  public:
    Programs() { setenv("PATH", folder_.path().c_str(), 1); }
    ~Programs() { setenv("PATH", before_.c_str(), 1); }
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;

    void add(const std::string& name, const std::string& script) {
        const std::string path = folder_.path() + "/" + name;
        std::ofstream(path) << "#!/bin/sh\nPATH=/usr/bin:/bin\ncd " << folder_.path() << "\n" << script << "\n";
        chmod(path.c_str(), 0755);
    }
    [[nodiscard]] std::string path() const { return folder_.path(); }

  private:
    testing::TemporaryDirectory folder_;
    std::string before_ = getenv("PATH");
};

std::string refusal(const Programs& programs) {
    return ranktune::testing::error_of<base::UsageError>(
        [&] { return submit_chain(programs.path(), "job.sh", {}, 1); });
}

} // namespace

TEST_CASE("Without sbatch nothing can have been submitted", "[launch]") {
    const Programs programs;
    CHECK(refusal(programs).starts_with("sbatch refused the job: cannot start 'sbatch': no such program in PATH"));
}

TEST_CASE("An sbatch that was killed may have submitted the job, whatever it said", "[launch]") {
    Programs programs;
    programs.add("sbatch", "echo 'cannot start now' >&2; kill -9 $$");
    CHECK(refusal(programs).starts_with("sbatch did not end normally: cannot start now; check with squeue"));
}

TEST_CASE("A controller that answers late is asked again, whatever its error says", "[launch]") {
    Programs programs;
    programs.add("squeue",
                 "echo again >> asked\n"
                 "test $(wc -l < asked) -gt 1 && echo '1200_7 1207 RUNNING' && exit\n"
                 "echo 'cannot start: the controller is busy' >&2; exit 1");
    const QueuedJobs found = queued_jobs({"1207"});
    CHECK(found.trouble.empty());
    CHECK(found.ids == std::vector<std::string>{"1200_7"});
    CHECK(found.states == std::vector<std::string>{"running"});
}

TEST_CASE("A squeue that is missing is not asked again", "[launch]") {
    const Programs programs;
    CHECK(queued_jobs({"1207"}).trouble.starts_with("cannot start 'squeue'"));
}

} // namespace job_chain_test
