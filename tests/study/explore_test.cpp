// SPDX-License-Identifier: Apache-2.0
// [scheduler.explore]: what breaks its rules, and what is said.
#include <string>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace explore_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {
/// Lines to put into [scheduler], and the mistakes that they make.
struct ExploreCase {
    std::string lines;
    std::string expected;
};
} // namespace

// (Unlike in Ray any searcher goes with it: it chooses where the members begin.)
TEST_CASE("P16: mistakes of [scheduler.explore] and of pbt's options", "[study]") {
    const std::string pbt = "type = \"pbt\"\n";
    const std::string takes = "takes \"perturb\", \"resample\", \"keep\", or a list of factors such as [0.8, 1.2]";
    const std::vector<ExploreCase> cases = {
        {pbt,
         "12:1 scheduler.explore: needs a line for each hyper-parameter that is to change while a trial trains, "
         "such as lr = \"perturb\"; those that may change: lr; explore = {} if trials shall only take over states"},
        {pbt + "explore = 3\n",
         "14:11 scheduler.explore: is a table: [scheduler.explore] with a line for each "
         "hyper-parameter that changes"},
        {pbt + "explore.lr = \"perturbed\"\n", "14:14 scheduler.explore.lr: " + takes + ", not \"perturbed\""},
        {pbt + "explore.lr = 1.2\n", "14:14 scheduler.explore.lr: " + takes + ", not a float"},
        {pbt + "explore.lr = []\n", "14:14 scheduler.explore.lr: " + takes + ", not this list"},
        {pbt + "explore.lr = [0.8, \"x\"]\n", "14:14 scheduler.explore.lr: " + takes + ", not this list"},
        {pbt + "explore.lr = [0.8, 1]\n", "14:14 scheduler.explore.lr: factors are numbers above 0, and not 1"},
        {pbt + "explore.lr = [-0.8, 1.2]\n", "14:14 scheduler.explore.lr: factors are numbers above 0, and not 1"},
        {pbt + "explore.lrr = \"perturb\"\n",
         "14:9 scheduler.explore.lrr: no hyper-parameter of [space] has this name; did you mean 'lr'?"},
        {pbt + "explore.momentum = \"perturb\"\n",
         "14:9 scheduler.explore.momentum: no hyper-parameter of [space] has this name; those that may change: lr"},
        {pbt + "explore.lr = \"perturb\"\ninterval = 0\n", "15:12 scheduler.interval: needs an integer >= 1, not 0"},
        {pbt + "explore.lr = \"perturb\"\ninterval = 27\n",
         "15:12 scheduler.interval: 27 leaves no ready point below the ceiling study.max_iterations (27)"},
        {pbt + "explore.lr = \"perturb\"\nquantile = 0\n",
         "15:12 scheduler.quantile: must be above 0: with 0 nobody takes over anything"},
        {pbt + "explore.lr = \"perturb\"\nquantile = 0.6\n",
         "15:12 scheduler.quantile: needs a number from 0 to 0.5, not 0.6"},
        {pbt + "explore.lr = \"perturb\"\nperturbation_interval = 5\n",
         "15:1 scheduler.perturbation_interval: is Ray Tune's name; here: interval"},
        {"type = \"asha\"\nexplore.lr = \"perturb\"\n",
         "14:1 scheduler.explore: type = \"asha\" changes nothing while a trial trains"},
    };
    for (const ExploreCase& c : cases) {
        Parts parts;
        parts.rest = "[scheduler]\n" + c.lines;
        INFO(parts.text());
        CHECK(mistake(parts.text()) == c.expected);
    }
    const auto with_space = [&](const std::string& space, const std::string& explore) {
        Parts parts;
        parts.space += space;
        parts.rest = "[scheduler]\n" + pbt + explore;
        return mistake(parts.text());
    };
    CHECK(with_space("hidden = [[64], [128]]\n", "explore.hidden = \"resample\"\n") ==
          "15:18 scheduler.explore.hidden: cannot change while a trial of 'mlp' trains: its state was saved for "
          "another value");
    CHECK(with_space("dropout = 0.5\n", "explore.dropout = \"resample\"\n") ==
          "15:19 scheduler.explore.dropout: is a constant");
    CHECK(with_space("batch_size = \"choice([32, 64], ordered=false)\"\n", "explore.batch_size = \"perturb\"\n") ==
          "15:22 scheduler.explore.batch_size: has no order in which factors could move it: write \"resample\", or in "
          "[space] choice([...], ordered=true)");
    CHECK(with_space("batch_size = [32, 64]\n", "explore.batch_size = \"perturb\"\n") == "");
    CHECK(with_space("", "explore.lr = \"resample\"\n") == "");
}

TEST_CASE("what is explored reads back from the resolved file as it was written", "[study]") {
    Parts parts;
    parts.space += "optimizer.decay = \"uniform(0, 1)\"\n";
    parts.trainable = "builtin = \"curve\"\n";
    parts.rest = "[scheduler]\ntype = \"pbt\"\n[scheduler.explore]\nlr = \"perturb\"\noptimizer.decay = \"resample\"\n";
    const StudySpec spec = parse(parts.text());
    REQUIRE(spec.scheduler.explore.size() == 2);
    CHECK(spec.scheduler.explore[0] == Explored{"lr", {0.8, 1.2}});
    CHECK(spec.scheduler.explore[1] == Explored{"optimizer.decay", {}});
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("[scheduler.explore]\nlr = [0.8, 1.2]\noptimizer.decay = \"resample\"\n") != std::string::npos);
    CHECK(resolved_toml(parse_resolved_study(resolved, "resolved.toml", ranktune::testing::built_in_algorithms())) ==
          resolved);
}

TEST_CASE("a study can say that nothing is explored", "[study]") {
    for (const char* lines : {"explore = {}\n", "[scheduler.explore]\n", "explore.lr = \"keep\"\n"}) {
        INFO(lines);
        Parts parts;
        parts.trainable = "builtin = \"curve\"\n";
        parts.rest = std::string("[scheduler]\ntype = \"pbt\"\n") + lines;
        const StudySpec spec = parse(parts.text());
        CHECK(spec.scheduler.explore.empty());
        const std::string resolved = resolved_toml(spec);
        CHECK(resolved_toml(parse_resolved_study(resolved, "resolved.toml",
                                                 ranktune::testing::built_in_algorithms())) == resolved);
    }
}

TEST_CASE("a deterministic population is not synchronous", "[study]") {
    Parts parts;
    parts.study += "deterministic = true\nmax_concurrent = 4\n";
    const auto with = [&](const std::string& lines) {
        parts.rest = "[scheduler]\ntype = \"pbt\"\n" + lines + "explore.lr = \"perturb\"\n";
        return mistake(parts.text());
    };
    CHECK(with("") == "");
    CHECK(
        with("synchronous = true\n") ==
        "16:15 scheduler.synchronous: true does not go with study.deterministic, where trials are compared in logical "
        "order; leave one of them out");
}

} // namespace explore_test
