// SPDX-License-Identifier: Apache-2.0
// Texts on algorithms are generated from their descriptions: the reference page, `ranktune algorithms`, `init`.
#include <sstream>
#include <string>

#include "ranktune/base/error.hpp"
#include "report/explain/algorithm_text.hpp"
#include "report/explain/reference.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace algorithm_text_test {

using namespace ranktune;
using ranktune::testing::built_in_algorithms;

namespace {

/// The study file with its commented lines `# key = value` uncommented, where the option applies.
std::string uncommented(const std::string& text, const study::AlgorithmInfo& info,
                        const space::Configuration& options) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);) {
        for (const study::AlgorithmOption& option : info.options)
            if (line.starts_with("# " + option.name + " = ") && applies(info, options, option)) line = line.substr(2);
        out += line + "\n";
    }
    return out;
}

constexpr const char* begin =
    "[study]\nname = \"s\"\nmetric = \"score\"\nmode = \"max\"\nnum_trials = 4\nmax_iterations = 27\n[trainable]\n"
    "name = \"any\"\n[space]\nn = \"choice([1, 2, 3, 4], ordered=true)\"\n";

} // namespace

TEST_CASE("the reference page of the algorithms has every option, with what it goes with", "[report]") {
    const std::string page = report::algorithms_page(built_in_algorithms());
    CHECK(page.find("\n### Searcher `random`\n\nIndependent samples.\n") != std::string::npos);
    CHECK(page.find("| `finish_top` | integer >= 0 | 1 | `variant = \"promote\"` | When nothing else is left, ") !=
          std::string::npos);
    CHECK(page.find("```toml\n[scheduler]\ntype = \"topk\"\nfirst = 1\nk = 1\nrestart_paused = false\n```\n") !=
          std::string::npos);
    const auto all_are_there = [&](const auto& infos) {
        for (const auto& info : infos)
            for (const auto& option : info->options)
                CHECK(page.find("\n| `" + option.name + "` | ") != std::string::npos);
    };
    all_are_there(built_in_algorithms().searchers);
    all_are_there(built_in_algorithms().schedulers);
}

TEST_CASE("the commented table of every algorithm is its default, also when the comments are taken away", "[report]") {
    const auto parsed = [](const std::string& table) {
        const std::string changes = table.find("lr = ") == std::string::npos ? "" : "lr = \"uniform(0.01, 1)\"\n";
        return study::resolved_toml(study::parse_study(begin + changes + table, "/s.toml", {},
                                                       ranktune::testing::known({ranktune::testing::any_trainable()})));
    };
    const auto check = [&](const std::string& kind, const auto& info, const space::Configuration& options,
                           const std::string& required) {
        INFO(info.name);
        const std::string table = report::commented_table(info);
        const std::string plain = parsed("[" + kind + "]\ntype = \"" + info.name + "\"\n" + required);
        CHECK(parsed(table) == plain);
        const std::string all = uncommented(table, info, options);
        CHECK((info.options.empty() || all != table));
        CHECK(parsed(all) == plain);
    };
    for (const auto& searcher : built_in_algorithms().searchers)
        check("searcher", *searcher, study::chosen(searcher).options, "");
    for (const auto& scheduler : built_in_algorithms().schedulers)
        check("scheduler", *scheduler, study::chosen(scheduler).options,
              scheduler->explores    ? "explore.lr = \"perturb\"\n"
              : scheduler->schedules ? "schedule.lr = [[1, 0.05]]\n"
                                     : "");
}

TEST_CASE("every option of every algorithm is told on a terminal", "[report]") {
    const std::string text = report::algorithms_text(built_in_algorithms(), 60);
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) CHECK(line.size() <= 60);
    CHECK(text.find("[searcher] type = \"auto\"  (the default)\n  ") == 0);
    CHECK(text.find("[searcher] type = \"random\"\n  independent samples.\n") != std::string::npos);
    CHECK(text.find("[scheduler] type = \"fifo\"  (the default)\n  every trial runs to the end.\n") !=
          std::string::npos);
    for (const auto& scheduler : built_in_algorithms().schedulers)
        for (const auto& option : scheduler->options)
            CHECK(text.find("\n  " + option.name + ": ") != std::string::npos);
    CHECK(text.find("\n  brackets: integer 1 to 64; default 1\n") != std::string::npos);
    CHECK(text.find("\n  min_samples: integer >= 1; default 3\n") != std::string::npos);
    CHECK(text.find("\n  rule: \"floor\", \"ray\"; default \"floor\"; only with variant =\n  \"stop\"\n") !=
          std::string::npos);
}

TEST_CASE("marks of Markdown are taken out for terminals and manual pages", "[report]") {
    CHECK(report::without_marks("`a` and [b](c.md#d), [e]") == "a and b, [e]");
    CHECK(report::without_marks("[1, 2]") == "[1, 2]");
    CHECK(report::without_marks("") == "");
    CHECK(report::table_row({"a|b", ""}) == "| a\\|b |  |\n");
}

TEST_CASE("keys are told by table, by key, or all", "[report]") {
    const std::string failure = report::keys_text("failure", 60);
    std::istringstream in(report::keys_text("", 60));
    for (std::string line; std::getline(in, line);) CHECK(line.size() <= 60);
    CHECK(failure.find("[failure]\nWhat happens when trials fail.\nfailure.tolerate: number 0 to 1; default 0.05\n") ==
          0);
    CHECK(report::keys_text("tolerate", 60).find("failure.tolerate: ") == 0);
    CHECK(failure.find("stop.") == std::string::npos);
    CHECK_THROWS_AS(report::keys_text("falure", 60), base::UsageError);
}

} // namespace algorithm_text_test
