// SPDX-License-Identifier: Apache-2.0
// [[searcher.start]]: how points are read, how they are written, and what breaks their rules.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/parse.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace start_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

Parts with_points(const std::string& points, const std::string& searcher = "type = \"random\"\n") {
    Parts parts = free_parts();
    parts.space =
        "lr = \"loguniform(1e-4, 10.0)\"\nhidden = [[64], [128, 64]]\n[space.opt]\nkind = [\"sgd\", \"adam\"]\n"
        "momentum = { domain = \"uniform(0, 1)\", condition = \"opt.kind == 'sgd'\" }\n";
    parts.rest = "[searcher]\n" + searcher + points; // points begin in line 17
    return parts;
}

struct StartCase {
    std::string points;
    std::string expected;
};

} // namespace

TEST_CASE("points to try first are read, also partial and nested ones, and written to the resolved file", "[study]") {
    const StudySpec spec = parse(with_points("[[searcher.start]]\nlr = 1\n[[searcher.start]]\nhidden = [128, 64]\n"
                                             "[searcher.start.opt]\nkind = \"sgd\"\nmomentum = 0.5\n")
                                     .text());
    REQUIRE(spec.searcher.start.size() == 2);
    CHECK(spec.searcher.start[0].text() == "lr=1.0");
    CHECK(spec.searcher.start[1].text() == "hidden=[128,64] opt.kind=sgd opt.momentum=0.5");
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("start = [{ lr = 1.0 }, { hidden = [128, 64], opt.kind = \"sgd\", opt.momentum = 0.5 }]\n") !=
          std::string::npos);
    CHECK(parse_resolved(resolved).searcher.start == spec.searcher.start);
    CHECK(parse(with_points("start = [{ lr = 0.5 }]\n").text()).searcher.start.size() == 1);
    CHECK(parse(with_points("").text(), {"searcher.start=[{lr=0.5},{opt={kind='adam'}}]"}).searcher.start.size() == 2);
    CHECK(parse(with_points("start = []\n").text()).searcher.start.empty());
}

TEST_CASE("a search of the whole space leaves out the points to try first", "[study]") {
    Parts parts = free_parts();
    parts.space = "a = [1, 2, 3]\nb = [\"x\", \"y\"]\n";
    const std::string with_number = parts.study;
    const std::pair<const char*, std::uint32_t> cases[] = {
        {"", 6},
        {"{ a = 2, b = \"y\" }", 6},
        {"{ a = 2, b = \"y\" }, { a = 2, b = \"y\" }", 7}, // asked for twice
        {"{ b = \"y\" }, { a = 1, b = \"y\" }", 7},        // what is left open is as in the first one, {1, x}
        {"{ a = 1, b = \"x\" }, { b = \"y\" }, { b = \"x\" }", 6}};
    for (const auto& [points, trials] : cases) {
        INFO(points);
        parts.rest = std::string("[searcher]\ntype = \"grid\"\nstart = [") + points + "]\n";
        parts.study = with_number; // which is larger
        CHECK(parse(parts.text()).num_trials == trials);
        parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 27\n";
        CHECK(parse(parts.text()).num_trials == trials);
    }
    parts.space = "a = [1, 2]\nb = { domain = [3, 4], condition = \"a == 2\" }\n";
    parts.rest = "[searcher]\ntype = \"grid\"\nstart = [{ a = 1 }, { a = 2, b = 4 }]\n";
    CHECK(parse(parts.text()).num_trials == 3);
}

TEST_CASE("mistakes of [[searcher.start]]", "[study]") {
    const std::vector<StartCase> cases = {
        {"start = 3\n",
         "17:9 searcher.start: is a list of points: [[searcher.start]] for each, with lines such as lr = 0.1"},
        {"[searcher.start]\nlr = 0.1\n",
         "17:1 searcher.start: is a list of points: [[searcher.start]] for each, with lines such as lr = 0.1"},
        {"start = [{ lr = 20.0 }]\n", "17:17 searcher.start.lr: 20.0 is no value of loguniform(0.0001, 10.0)"},
        {"start = [{ lr = \"a\" }]\n", "17:17 searcher.start.lr: 'a' is no value of loguniform(0.0001, 10.0)"},
        {"[[searcher.start]]\nlr = 0.1\n[[searcher.start]]\nlrr = 0.1\n",
         "20:1 searcher.start.lrr: no hyper-parameter of [space] has this name; did you mean 'lr'?"},
        {"start = [{ opt.kind = \"adam\", opt.momentum = 0.5 }]\n",
         "17:35 searcher.start.opt.momentum: does not exist at this point; its condition is opt.kind == 'sgd'"},
        {"start = [{}]\n", "17:10 searcher.start: gives no value; the searcher suggests such points by itself"},
        {"start = [{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1},{lr=1}]\n",
         "17:9 searcher.start: 11 points, but study.num_trials = 10 trials; raise it, or leave out points"},
    };
    for (const StartCase& c : cases) {
        const Parts parts = with_points(c.points);
        INFO(parts.text());
        CHECK(mistake(parts.text()) == c.expected);
    }
}

TEST_CASE("points from C++ are checked, too", "[study]") {
    StudySpec spec = parse(with_points("start = [{ lr = 0.5 }]\n").text());
    CHECK_NOTHROW(check_options(spec.searcher, spec));
    spec.searcher.start[0].set("lr", 70.0);
    CHECK_THROWS_WITH(check_options(spec.searcher, spec),
                      "searcher.start.lr: 70.0 is no value of loguniform(0.0001, 10.0)");
}

} // namespace start_test
