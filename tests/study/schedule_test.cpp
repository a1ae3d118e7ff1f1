// SPDX-License-Identifier: Apache-2.0
// [scheduler.schedule]: what breaks its rules, and what is said.
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "schedulers/built_in.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace schedule_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {
/// Lines to put into [scheduler], and the mistakes that they make.
struct ScheduleCase {
    std::string lines;
    std::string expected;
};
} // namespace

TEST_CASE("mistakes of [scheduler.schedule]", "[study]") {
    const std::string type = "type = \"schedule\"\n";
    const std::string takes =
        "takes a list of [iterations, value], such as [[10, 0.05], [20, 0.01]]: after so many iterations it has this "
        "value";
    const std::vector<ScheduleCase> cases = {
        {type,
         "12:1 scheduler.schedule: needs a line for each hyper-parameter that changes, such as lr = [[10, 0.05], [20, "
         "0.01]]: after so many iterations it has this value"},
        {type + "schedule = 3\n",
         "14:12 scheduler.schedule: is a table: [scheduler.schedule] with a line for each hyper-parameter that "
         "changes"},
        {type + "schedule.lr = 0.05\n", "14:15 scheduler.schedule.lr: " + takes},
        {type + "schedule.lr = []\n", "14:15 scheduler.schedule.lr: needs at least one [iterations, value]"},
        {type + "schedule.lr = [10, 0.05]\n",
         "14:16 scheduler.schedule.lr: " + takes + "\n14:20 scheduler.schedule.lr: " + takes},
        {type + "schedule.lr = [[10.5, 0.05]]\n", "14:16 scheduler.schedule.lr: " + takes},
        {type + "schedule.lr = [[0, 0.05]]\n",
         "14:15 scheduler.schedule.lr: the first change comes after 1 iteration or later; [space] has the value "
         "before it"},
        {type + "schedule.lr = [[10, 0.05], [10, 0.01]]\n",
         "14:15 scheduler.schedule.lr: the iterations of its changes must ascend: 10 comes after 10"},
        {type + "schedule.lr = [[10, 0.05], [27, 0.01]]\n",
         "14:29 scheduler.schedule.lr: no trial goes on after 27 iterations: study.max_iterations = 27"},
        {type + "schedule.lr = [[10, 2.0]]\n",
         "14:15 scheduler.schedule.lr: 2.0 is no value of loguniform(0.0001, 1.0)"},
        {type + "schedule.lrr = [[10, 0.05]]\n",
         "14:10 scheduler.schedule.lrr: no hyper-parameter of [space] has this name; did you mean 'lr'?"},
        {type + "schedule.momentum = [[10, 0.05]]\n",
         "14:10 scheduler.schedule.momentum: no hyper-parameter of [space] has this name; it has lr"},
        {"type = \"asha\"\nschedule.lr = [[10, 0.05]]\n",
         "14:1 scheduler.schedule: type = \"asha\" changes nothing at given iterations"},
    };
    for (const ScheduleCase& c : cases) {
        Parts parts;
        parts.rest = "[scheduler]\n" + c.lines;
        INFO(parts.text());
        CHECK(mistake(parts.text()) == c.expected);
    }
    const auto with_space = [&](const std::string& space, const std::string& schedule) {
        Parts parts;
        parts.space += space;
        parts.rest = "[scheduler]\n" + type + schedule;
        return mistake(parts.text());
    };
    CHECK(with_space("hidden = [[64], [128]]\n", "schedule.hidden = [[10, [64]]]\n") ==
          "15:19 scheduler.schedule.hidden: cannot change while a trial of 'mlp' trains: its state was saved for "
          "another value");
    CHECK(with_space("batch_size = 32\n", "schedule.batch_size = [[10, \"many\"]]\n") ==
          "15:23 scheduler.schedule.batch_size: cannot change from 32 to 'many', which is another kind");
    CHECK(with_space("batch_size = 32\n", "schedule.batch_size = [[10, 64], [20, 128]]\n") == "");
    CHECK(with_space("batch_size = [32, 64]\n", "schedule.batch_size = [[10, 64]]\n") == "");
}

TEST_CASE("a schedule reads back from the resolved file as it was written", "[study]") {
    Parts parts;
    parts.space += "optimizer.decay = 0.5\n";
    parts.trainable = "builtin = \"curve\"\n";
    parts.rest =
        "[scheduler]\ntype = \"schedule\"\n[scheduler.schedule]\nlr = [[3, 0.5], [9, 0.125]]\n"
        "optimizer.decay = [[9, 1]]\n";
    const StudySpec spec = parse(parts.text());
    REQUIRE(spec.scheduler.schedule.size() == 2);
    CHECK(spec.scheduler.schedule[0] == Scheduled{"lr", {{3, 0.5}, {9, 0.125}}});
    CHECK(spec.scheduler.schedule[1] == Scheduled{"optimizer.decay", {{9, 1.0}}});
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("[scheduler.schedule]\nlr = [[3, 0.5], [9, 0.125]]\noptimizer.decay = [[9, 1.0]]\n") !=
          std::string::npos);
    CHECK(resolved_toml(parse_resolved_study(resolved, "resolved.toml", ranktune::testing::built_in_algorithms())) ==
          resolved);
}

TEST_CASE("a study that is made in C++ has a schedule that fits", "[study]") {
    StudySpec spec;
    spec.max_iterations = 10;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.0, 1.0, false, 0.0}, {}}});
    spec.scheduler = schedulers::chosen("schedule");
    const auto check = [&](std::vector<Scheduled> schedule) {
        spec.scheduler.schedule = std::move(schedule);
        check_options(spec.scheduler, spec);
    };
    CHECK_NOTHROW(check({{"lr", {{3, 0.5}}}}));
    CHECK_THROWS_AS(check({}), base::UsageError);
    CHECK_THROWS_AS(check({{"rate", {{3, 0.5}}}}), base::UsageError);
    CHECK_THROWS_AS(check({{"lr", {{3, 2.5}}}}), base::UsageError);
    CHECK_THROWS_AS(check({{"lr", {{3, 0.5}, {2, 0.25}}}}), base::UsageError);
    spec.scheduler = schedulers::chosen("fifo");
    CHECK_THROWS_AS(check({{"lr", {{3, 0.5}}}}), base::UsageError);
}

} // namespace schedule_test
