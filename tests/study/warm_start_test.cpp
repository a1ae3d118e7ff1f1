// SPDX-License-Identifier: Apache-2.0
// searcher.warm_start: how the list is read and written, and what breaks its rules.
#include <string>
#include <vector>

#include "ranktune/study/change.hpp"
#include "ranktune/study/parse.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace warm_start_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

Parts with_sources(const std::string& sources, const std::string& searcher = "tpe") {
    Parts parts = free_parts();
    parts.rest = "[searcher]\ntype = \"" + searcher + "\"\nwarm_start = " + sources + "\n"; // line 13
    return parts;
}

} // namespace

TEST_CASE("earlier results are named by path, and written to the resolved file", "[study]") {
    const StudySpec spec = parse(
        with_sources(
            R"(["../old/", "/data/t.csv", { path = "j.log", study = "a b" }, { path = "x.csv", metric = "acc" }])")
            .text());
    const std::vector<WarmSource> expected = {
        {"/old", "", ""}, {"/data/t.csv", "", ""}, {"/studies/j.log", "", "a b"}, {"/studies/x.csv", "acc", ""}};
    CHECK(spec.searcher.warm_start == expected);
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("warm_start = [\"/old\", \"/data/t.csv\", { path = \"/studies/j.log\", study = \"a b\" }, "
                        "{ path = \"/studies/x.csv\", metric = \"acc\" }]\n") != std::string::npos);
    CHECK(parse_resolved(resolved).searcher.warm_start == expected);
    CHECK(parse(with_sources("[]", "random").text()).searcher.warm_start.empty());
}

TEST_CASE("mistakes of searcher.warm_start", "[study]") {
    const std::string forms =
        "each entry is a path, or a table such as { path = \"old.csv\", metric = \"acc\" }; a path "
        "is that of a study directory, a CSV table or a journal of Optuna";
    CHECK(mistake(with_sources("\"old.csv\"").text()) == "13:14 searcher.warm_start: needs a list; " + forms);
    CHECK(mistake(with_sources("[1]").text()) == "13:14 searcher.warm_start: needs a list; " + forms);
    CHECK(mistake(with_sources("[\"\"]").text()) == "13:15 searcher.warm_start: is empty");
    CHECK(mistake(with_sources("[{ metric = \"a\" }]").text()) ==
          "13:15 searcher.warm_start.path: missing: where the earlier results are");
    CHECK(mistake(with_sources("[{ path = \"a\", mode = \"min\" }]").text()) ==
          "13:29 searcher.warm_start.mode: unknown key; an entry has path, metric and study");
    CHECK(mistake(with_sources("[\"old\"]", "sobol").text()) ==
          "13:1 searcher.warm_start: \"sobol\" does not learn from earlier results; use \"auto\", \"bohb\", \"cmaes\", "
          "\"evolution\", \"gp\", \"nsga2\" or \"tpe\", or give the best of them as [[searcher.start]]");
}

TEST_CASE("earlier results of a study that has begun cannot be others", "[study]") {
    const StudySpec before = parse(with_sources("[\"old\"]").text());
    const StudySpec after = parse(with_sources("[\"older\"]").text());
    const auto changes = differences(before, after);
    REQUIRE(changes.size() == 1);
    CHECK(changes.front().key == "searcher.warm_start");
    CHECK_FALSE(changes.front().may_change);
}

} // namespace warm_start_test
