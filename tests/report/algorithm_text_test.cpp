// SPDX-License-Identifier: Apache-2.0
// Texts on algorithms are generated from their descriptions: the reference page, `ranktune algorithms`, `init`.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "report/algorithm_text.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/known.hpp"

namespace algorithm_text_test {

using namespace ranktune;
using ranktune::testing::built_in_algorithms;

namespace {

constexpr const char* page = RANKTUNE_SOURCE_ROOT "/docs/reference/study-file.md";

/// The first table of a section of the page. RANKTUNE_REWRITE=1 replaces it by `table` first.
std::string table_of(const std::string& section, const std::string& table) {
    std::string text = ranktune::testing::read_file(page);
    const auto begin = text.find("\n| key |", text.find("\n## `[" + section + "]`\n")) + 1;
    const auto end = text.find("\n\n", begin) + 1;
    if (std::getenv("RANKTUNE_REWRITE") == nullptr) return text.substr(begin, end - begin);
    std::ofstream(page, std::ios::binary) << text.replace(begin, end - begin, table);
    return table;
}

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

TEST_CASE("the reference page has the tables of the algorithms", "[report]") {
    CHECK(table_of("searcher", report::searcher_table(built_in_algorithms())) ==
          report::searcher_table(built_in_algorithms()));
    CHECK(table_of("scheduler", report::scheduler_table(built_in_algorithms())) ==
          report::scheduler_table(built_in_algorithms()));
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
    CHECK(text.find("[searcher] type = \"random\"  (the default)\n  independent samples.\n") == 0);
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

} // namespace algorithm_text_test
