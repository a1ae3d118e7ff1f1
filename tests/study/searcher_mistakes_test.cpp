// SPDX-License-Identifier: Apache-2.0
// Mistakes in [searcher], and spaces that a searcher cannot have.
#include <string>
#include <vector>

#include "searchers/built_in.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace searcher_mistakes_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

struct SearcherCase {
    std::string lines; ///< of [searcher]
    std::string expected;
};

/// The names of all searchers: "a", "b" or "c".
std::string accepted() {
    const auto all = searchers::built_in();
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i)
        text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + ("\"" + all[i]->name + "\"");
    return text;
}

} // namespace

TEST_CASE("mistakes of [searcher]", "[study]") {
    const std::vector<SearcherCase> cases = {
        {"type = \"anneal\"\n", "13:8 searcher.type: unknown value \"anneal\"; accepted: " + accepted()},
        {"type = \"rnadom\"\n",
         "13:8 searcher.type: unknown value \"rnadom\"; accepted: " + accepted() + "; did you mean \"random\"?"},
        {"type = \"qmc\"\n",
         "13:8 searcher.type: unknown value \"qmc\"; accepted: " + accepted() + "; here it is called \"sobol\""},
        {"type = \"random\"\nscramble = true\n", "14:1 searcher.scramble: is a key of type \"sobol\" only"},
        {"scramble = true\n", "13:1 searcher.scramble: is a key of type \"sobol\" only"},
        {"type = \"sobol\"\nscramble = 1\n", "14:12 searcher.scramble: needs true or false, not an integer (1)"},
        {"type = \"grid\"\n",
         "13:8 searcher.type: \"grid\" needs finitely many values of 'lr', not loguniform(0.0001, 1.0); "
         "give it a list, integers or a quantum"},
        {"type = \"cmaes\"\npopulation = 3\n",
         "14:14 searcher.population: 3 results are too few for a generation; use 0, or at least 4"},
        {"repeats = 0\n", "13:11 searcher.repeats: needs an integer from 1 to 1000, not 0"},
        {"repeats = 3\n",
         "13:11 searcher.repeats: study.num_trials = 10 is no multiple of 3 trials for each configuration; use 9 or "
         "12"},
        {"repeats = 5\n[scheduler]\ntype = \"asha\"\n",
         "13:11 searcher.repeats: does not go with scheduler.type = \"asha\": trials that pause, stop or change have "
         "no "
         "mean; leave one of the two out, or use \"fifo\""},
        {"seed = 3\n", "13:1 searcher.seed: unknown key here; it belongs to study.seed"},
        {"points_to_evaluate = []\n", "13:1 searcher.points_to_evaluate: is Ray Tune's name; here: start"},
    };
    for (const SearcherCase& c : cases) {
        Parts parts;
        parts.rest = "[searcher]\n" + c.lines;
        INFO(parts.text());
        CHECK(mistake(parts.text()) == c.expected);
    }
    Parts parts;
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 1\n";
    CHECK(mistake(parts.text()) ==
          "1:1 study.num_trials: missing; the number of configurations to try (a grid search can leave it out)");
    parts = free_parts();
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 1\n";
    parts.space = "";
    for (const std::string name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
        parts.space += name + " = \"grid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\n";
    CHECK(mistake(parts.text()) ==
          "1:1 study.num_trials: missing, and the grid is too large to run whole: 10000000000 configurations");
    parts.study += "num_trials = 7\n";
    CHECK(mistake(parts.text()) == "");
    parts.space += "k = { value = 1, condition = \"a == 1\" }\n";
    CHECK(mistake(parts.text()).find("22:8 searcher.type: ") == 0); // too many points to enumerate
}

TEST_CASE("repeats are written to the resolved file, and a grid has as many trials more", "[study]") {
    Parts parts = free_parts();
    parts.rest = "[searcher]\nrepeats = 5\n";
    const StudySpec spec = parse(parts.text());
    CHECK(spec.searcher.repeats == 5);
    CHECK(spec.searcher.by_default);
    CHECK(resolved_toml(spec).find("\nrepeats = 5\n") != std::string::npos);
    CHECK(parse_resolved(resolved_toml(spec)).searcher.repeats == 5);
    CHECK_FALSE(parse_resolved(resolved_toml(spec)).searcher.by_default);
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 1\n";
    parts.space = "a = \"grid([1, 2, 3])\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\nrepeats = 4\nstart = [{ a = 2 }, { a = 2 }]\n";
    CHECK(parse(parts.text()).num_trials == 16);
    parts.study += "num_trials = 4\n";
    parts.space.clear(); // the product of all domains and repeats has no place in an integer
    for (char name = 'a'; name < 'p'; ++name) parts.space += std::string(1, name) + " = \"randint(0, 1000000)\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\nrepeats = 4\n";
    CHECK(parse(parts.text()).num_trials == 4);
    parts.rest = "[searcher]\ntype = \"grid\"\n";
    CHECK(resolved_toml(parse(parts.text())).find("repeats = 1\n") != std::string::npos);
}

TEST_CASE("a searcher of numbers refuses categories and conditions", "[study]") {
    Parts parts = free_parts();
    parts.rest = "[searcher]\ntype = \"cmaes\"\n";
    parts.space = "lr = \"uniform(0, 1)\"\nkind = [\"sgd\", \"adam\"]\n";
    const std::string begin = "13:8 searcher.type: \"cmaes\" needs a number for ";
    CHECK(mistake(parts.text()) == begin +
                                       "'kind' in every trial, not ['sgd', 'adam']; if the values have an order, write "
                                       "choice([...], ordered=true); otherwise use \"tpe\" or \"auto\"");
    parts.space = "lr = \"uniform(0, 1)\"\nm = { domain = \"uniform(0, 1)\", condition = \"lr > 0.5\" }\n";
    CHECK(mistake(parts.text()) == begin +
                                       "'m' in every trial, not a parameter with a condition; remove the condition, "
                                       "or use \"tpe\" or \"auto\"");
    parts.space = "lr = \"uniform(0, 1)\"\nkind = \"choice(['a', 'b'], ordered=true)\"\n";
    CHECK(mistake(parts.text()) == "");
}

} // namespace searcher_mistakes_test
