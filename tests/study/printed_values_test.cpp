// SPDX-License-Identifier: Apache-2.0
#include "study/printed_values.hpp"

#include <cmath>

#include "ranktune/base/error.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace ranktune::study::printed_values_test {
namespace {

using namespace ranktune::study::testing;
using Values = PrintedValues::Values;

const Objective loss{"loss", Mode::min};

PrintedValues reader(const std::vector<std::string>& patterns, const Objective& objective = loss) {
    return {patterns, objective};
}

std::string refusal(const std::vector<std::string>& patterns, const Objective& objective = loss) {
    return ranktune::testing::error_of<base::UsageError>([&] { return reader(patterns, objective); });
}

/// Mistakes of a study of a program with these further lines in [trainable].
std::vector<std::string> mistakes_of(const std::string& lines, const std::string& more = "") {
    return mistakes(
        "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
        "[trainable]\ncommand = \"./train {args}\"\n" +
        lines + "[space]\nlr = \"uniform(0.0, 1.0)\"\n" + more);
}

} // namespace

TEST_CASE("without named groups, group 1 is the metric of the study", "[study]") {
    PrintedValues values({{"loss[:=] *([-+.0-9eEdDnaif]+)"}}, loss);
    CHECK_FALSE(values.line("step 3, nothing here"));
    CHECK(values.line("epoch 1 loss: 0.25, time 3 s") == Values{{"loss", 0.25}});
    CHECK(values.line("loss=+1e-3") == Values{{"loss", 1e-3}});
    CHECK(values.line("loss= -.5 ") == Values{{"loss", -0.5}});
    CHECK(values.line("loss: 1.5D-02") == Values{{"loss", 0.015}}); // Fortran
    CHECK(std::isnan(values.line("loss: nan").value()[0].second));
    CHECK(values.line("loss: -inf") == Values{{"loss", -HUGE_VAL}});
    CHECK(values.line("\xff\xfe loss: 2") == Values{{"loss", 2.0}}); // not UTF-8
}

TEST_CASE("a report waits for the metrics of the study, and takes the newest of the others along", "[study]") {
    PrintedValues values(
        std::vector<std::string>{"train (?P<train_loss>\\S+)", "val (?P<loss>\\S+)( acc (?<accuracy>\\S+))?"}, loss);
    CHECK_FALSE(values.line("train 0.9"));
    CHECK_FALSE(values.line("train 0.8"));
    CHECK(values.line("val 0.7 acc 0.5") == Values{{"train_loss", 0.8}, {"loss", 0.7}, {"accuracy", 0.5}});
    CHECK(values.line("val 0.6") == Values{{"loss", 0.6}});

    Objective two{"loss", Mode::min};
    two.others = {{"time", Mode::min}};
    two.constraints = {{"memory", 8.0, true}};
    PrintedValues all(std::vector<std::string>{"(?P<loss>\\d+)/(?P<time>\\d+)", "MB (?P<memory>\\d+)"}, two);
    CHECK_FALSE(all.line("3/4"));
    CHECK(all.line("MB 7") == Values{{"loss", 3.0}, {"time", 4.0}, {"memory", 7.0}});
}

TEST_CASE("what a group finds must be a number", "[study]") {
    PrintedValues values({{"loss: (\\S+)"}}, loss);
    CHECK_THROWS_WITH(values.line("loss: high"),
                      "'high', which 'loss: (\\S+)' (report of [trainable]) finds for loss, is no number; the line: "
                      "loss: high");
}

TEST_CASE("a pattern that cannot give the metrics of the study is refused", "[study]") {
    CHECK(refusal({"loss: (\\S+"}) ==
          "'loss: (\\S+' is no regular expression: missing closing parenthesis, at character 11");
    CHECK(refusal({"loss: \\S+"}).find("has no group: put the value into parentheses") != std::string::npos);
    CHECK(refusal({"(?P<acc>\\S+)"}) ==
          "no group finds 'loss', a metric of the study: name one, as in (?P<loss>[-+.0-9a-zA-Z]+)");
    const Objective slash{"val/loss", Mode::min};
    CHECK(refusal({"(?P<loss>\\S+)"}, slash).find("only a pattern without named groups") != std::string::npos);
    CHECK(refusal({"(\\S+)"}, slash) == "");
    Objective two = loss;
    two.others = {{"time", Mode::min}};
    CHECK(refusal({"(\\d+)"}, two).find("name its groups, as in (?P<loss>") != std::string::npos);
    CHECK(refusal({"(?P<loss>\\d+)", "(?P<time>\\d+)"}, two) == "");
}

TEST_CASE("a pattern that tries without end is given up at the line", "[study]") {
    PrintedValues values({{"(?:a+)+b(\\d)"}}, loss);
    CHECK_FALSE(values.line(std::string(5000, 'a')));
    CHECK(values.line("ab7") == Values{{"loss", 7.0}});
}

TEST_CASE("the last number of an output", "[study]") {
    CHECK(last_number("epoch 3\nloss 0.25") == 0.25);
    CHECK(last_number("loss 0.25\ndone.\n") == 0.25);
    CHECK(last_number("took 12s, reached -1.5e-3.") == -1.5e-3);
    CHECK(last_number("score=7\nsaved model_v2.bin, sha1sum") == 7.0);
    CHECK_FALSE(last_number("no number in v2 here"));
    CHECK_FALSE(last_number(""));
}

TEST_CASE("a study of a program that prints", "[study]") {
    CHECK(mistakes_of("report = 'loss: (\\S+)'\n").empty());
    CHECK(mistakes_of("report = ['loss: (?P<loss>\\S+)', 'lr (?P<lr>\\S+)']\n").empty());
    CHECK(mistakes_of("result = \"last-number\"\n").empty());
    CHECK(mistakes_of("result = \"exit-code\"\ncheckpoints = false\n").empty());
    CHECK(mistakes_of("result = \"success\"\n").empty());
    const auto only = [](const std::vector<std::string>& found) {
        REQUIRE(found.size() == 1);
        return found[0];
    };
    CHECK(only(mistakes_of("report = 'loss'\n")).find("trainable.report: 'loss' has no group") != std::string::npos);
    CHECK(only(mistakes_of("report = 3\n")).find("trainable.report: needs a string") != std::string::npos);
    CHECK(only(mistakes_of("result = \"last\"\n")).find("accepted: \"last-number\", \"exit-code\" or \"success\"") !=
          std::string::npos);
    CHECK(only(mistakes_of("report = '(\\d+)'\nresult = \"exit-code\"\n")).find("give one of them") !=
          std::string::npos);
    CHECK(only(mistakes_of("report = '(\\d+)'\ncheckpoints = true\n")).find("cannot be told to save") !=
          std::string::npos);
    // Paused trials of such a program have no state to go on from.
    CHECK(only(mistakes_of("report = '(\\d+)'\n", "[scheduler]\ntype = \"asha\"\n")).find("variant = \"stop\"") !=
          std::string::npos);
    CHECK(mistakes_of("report = '(\\d+)'\n", "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n").empty());
}

} // namespace ranktune::study::printed_values_test
