// SPDX-License-Identifier: Apache-2.0
// Text that is no TOML: what the message says in place of the library's words.
#include <string>
#include <vector>

#include "study_files.hpp"
#include "support/catch.hpp"

namespace syntax_test {

using namespace ranktune::study::testing;

namespace {

struct Case {
    std::string text;
    std::string expected; ///< `line:column` and the message
};

void check(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
        INFO(c.text);
        const std::size_t at = c.expected.find(' ');
        CHECK(mistake(c.text) == c.expected.substr(0, at) + " : not valid TOML:" + c.expected.substr(at));
    }
}

} // namespace

TEST_CASE("a line that is no TOML is explained by what it lacks", "[study]") {
    check({
        {"[study]\nname = \"s\nmode = \"min\"\n", "2:8 the quote \" is not closed in this line"},
        {"[study]\nname = 's\n", "2:8 the quote ' is not closed in this line"},
        {"[study]\nname = “s”\n", "2:8 a typographic quote; study files have straight ones: \" or '"},
        {"[study]\nname = \"s\"\nmode = minimize\n", "3:8 text stands in quotes:  \"minimize\""},
        {"[study]\nnum_trials: 3\n", "2:1 a key and its value stand on both sides of '=':  num_trials = 3"},
        {"[study]\nnum_trials 3\n", "2:1 the '=' between a key and its value is missing:  num_trials = 3"},
        {"[study]\nnum_trials\n", "2:1 a key without a value: '=' and a value are missing"},
        {"[study]\nnum_trials =\n", "2:13 the value is missing"},
        {"[study]\nname = \"s\"\nnum_trials = 3\nname = \"t\"\n",
         "4:8 name stands in line 2 already, and each may stand once: keep one of them"},
        {"[study]\nname = \"s\"\n[space]\nx = 1\n[study]\nseed = 1\n",
         "5:1 [study] begins in line 1 already, and each may stand once: keep one of them"},
        {"[space]\nx = True\n", "2:5 it is written in small letters:  true"},
        {"[space]\nx = FALSE # no\n", "2:5 it is written in small letters:  false"},
        {"[space]\nx = None\n", "2:5 there is no empty value: leave the key out for its default"},
        {"[space]\nx = 0,5\n", "2:5 a number has a point, not a comma:  0.5"},
        {"[space]\nx = .5\n", "2:5 a number begins with a digit:  0.5"},
        {"[space]\nx = 5.\n", "2:5 a number ends with a digit:  5.0"},
        {"[space]\nx = (1, 2)\n", "2:5 a list stands in square brackets:  [1, 2]"},
    });
}

TEST_CASE("a bracket that is not closed is found where it begins", "[study]") {
    check({
        {"[study\nname = \"s\"\n", "1:1 the name of a table ends with ']', as in [study]"},
        {"[space]\nx = [1, 2\ny = 3\n", "2:5 the list is not closed: a ']' is missing"},
        {"[space]\nx = [1,\n  2, \n", "2:5 the list is not closed: a ']' is missing"},
        {"[space]\nx = [[64], [128, 64]\n", "2:5 the list is not closed: a ']' is missing"},
        {"[space]\nx = { domain = \"uniform(0, 1)\",\n",
         "2:5 the '{' is not closed in this line; a table in braces stands in one "
         "line"},
    });
}

TEST_CASE("another kind of file is named", "[study]") {
    const std::string python =
        " this is Python; a study file is TOML and names the program under [trainable], as in command = "
        "\"python3 train.py {args}\". `ranktune init NAME --template program` writes one";
    const std::string yaml =
        " this is YAML; a study file is TOML: tables like [study], and lines like num_trials = 20. `ranktune "
        "init NAME` writes one";
    check({
        {"import ranktune\nranktune.report(loss=1)\n", "1:1" + python},
        {"#!/usr/bin/env python3\n# ours\nprint(1)\n", "1:1" + python},
        {"# ours\nfrom torch import nn\n", "1:1" + python},
        {"study:\n  name: s\n", "1:1" + yaml},
        {"name: s\nmetric: loss\n", "1:1" + yaml},
        {"---\nname: s\n", "1:1" + yaml},
    });
    CHECK(mistake("{\"study\": {\"name\": \"s\"}}").find("this is JSON; a study file is TOML") != std::string::npos);
    CHECK(mistake("#!/bin/sh\nexec python3 train.py\n").find("this is a shell script; a study file") !=
          std::string::npos);
    CHECK(mistake(std::string("\x1f\x8b\x08\x00", 4)).find("this is no text in UTF-8") != std::string::npos);
}

TEST_CASE("a list over several lines with a mistake inside is not called unclosed", "[study]") {
    const std::string text = mistake("[space]\nx = [\n  1,\n  2 3,\n]\n");
    CHECK(text.find("closed") == std::string::npos);
    CHECK(text.find("4:") == 0);
}

} // namespace syntax_test
