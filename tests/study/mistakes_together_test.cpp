// SPDX-License-Identifier: Apache-2.0
// Mistakes of several kinds at once, and mistakes that need the disk.

#include "study_files.hpp"
#include "support/catch.hpp"

namespace mistakes_together_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

TEST_CASE("all mistakes come together, in the order of the file", "[study]") {
    const std::string text =
        "[study]\nname = \"s\"\nmetric = \"val_loss\"\nmode = \"mean\"\nnum_trials = 0\n"
        "max_iterations = 9\n[trainable]\nbuiltin = \"mlp\"\ndata = \"d\"\nepochs = 3\n[space]\n"
        "lr = \"uniform(2, 1)\"\nbatch_size = [0]\n[scheduler]\ntype = \"asha\"\neta = 1.5\nfirst_rung = 10\n"
        "[stop]\ntime = 5\n[output]\n";
    const auto found = mistakes(text);
    std::vector<std::string> places;
    for (const std::string& line : found) places.push_back(line.substr(0, line.find(": ")));
    CHECK(places == std::vector<std::string>{"4:8 study.mode", "5:14 study.num_trials", "10:1 trainable.epochs",
                                             "12:6 space.lr", "13:14 space.batch_size", "16:7 scheduler.eta",
                                             "17:14 scheduler.first_rung", "19:8 stop.time", "20:2 output"});
}

namespace {

/// Only where they are and what they are about: `11:5 space.v`.
std::vector<std::string> places(const std::string& text) {
    std::vector<std::string> found;
    for (const std::string& line : mistakes(text)) found.push_back(line.substr(0, line.find(": ")));
    return found;
}

using Places = std::vector<std::string>;

} // namespace

TEST_CASE("a wrong parameter does not hide mistakes that mention other parameters", "[study]") {
    Parts parts;
    parts.trainable = "command = \"python3 x.py {args} {nope} {itertions} {v} {w}\"\n";
    parts.space = "v = \"uniform(3,2)\"\nw = [1, 2.5]\n";
    parts.rest = "[resources]\nranks = \"{w}\"\n";
    const auto found = mistakes(parts.text());
    REQUIRE(found.size() == 4);
    CHECK(found[0].starts_with("8:11 trainable.command: unknown placeholder {nope}"));
    CHECK(found[1].starts_with(
        "8:11 trainable.command: unknown placeholder {itertions}; did you mean 'iterations'?; known: args, "));
    CHECK(found[1].find(", v, w; ") != std::string::npos);
    CHECK(found[2].starts_with("10:5 space.v: "));
    CHECK(found[3] == "13:9 resources.ranks: the parameter 'w' must give integers >= 1, not [1, 2.5]");
    // Its name is known, whatever its domain is.
    parts.rest = "[resources]\nranks = \"{v}\"\n";
    CHECK(mistakes(parts.text()).size() == 3);
    parts.rest = "[resources]\nranks = \"{vv}\"\n";
    CHECK(mistakes(parts.text()).back() == "13:9 resources.ranks: [space] has no parameter 'vv'; did you mean 'v'?");
    // A parameter with a condition is not in every trial, whether the condition is right or wrong.
    parts.space = "v = { domain = \"uniform(3,2)\", condition = \"w = 1\" }\nw = [1, 2]\n";
    parts.rest = "[resources]\nranks = \"{v}\"\n";
    CHECK(mistakes(parts.text()).back() ==
          "13:9 resources.ranks: the parameter 'v' has a condition; every trial needs ranks");
}

TEST_CASE("an impossible condition and other mistakes do not hide each other", "[study]") {
    Parts parts = free_parts();
    parts.space = "a = [1, 2]\nb = { value = 1, condition = \"a == 3\" }\nw = [1, 2.5]\n";
    parts.rest = "[resources]\nranks = \"{w}\"\n";
    CHECK(places(parts.text()) == Places{"11:30 space.b.condition", "14:9 resources.ranks"});
    parts.rest = "";
    parts.space =
        "a = [1, 2]\nb = { value = 1, condition = \"a == 3\" }\nc = { value = 1, condition = \"none == 3\" }\n";
    CHECK(mistake(parts.text()) ==
          "11:30 space.b.condition: can never hold: 'a' is drawn from [1, 2]; compare with values that can be:  "
          "\"a == 3\"\n"
          "12:30 space.c.condition: unknown parameter 'none' (known: a, b):  \"none == 3\"");
}

TEST_CASE("a parameter is compared with the trainable by its name, whatever its domain is", "[study]") {
    Parts parts;
    parts.trainable += "momentum = 0.9\n";
    parts.space = "lrr = \"uniform(3,2)\"\nmomentum = \"uniform(3,2)\"\n";
    CHECK(places(parts.text()) ==
          Places{"12:1 space.lrr", "12:7 space.lrr", "13:1 space.momentum", "13:12 space.momentum"});
    // Parameters that an unreadable condition mentions count as used.
    parts = Parts();
    parts.space = "kind = [1, 2]\nlr = { domain = \"uniform(0, 1)\", condition = \"kind = 1\" }\n";
    CHECK(places(parts.text()) == Places{"12:46 space.lr.condition"});
    parts.space = "w = [1, 2]\n";
    parts.rest = "[resources]\nranks = \"{w\"\n";
    CHECK(places(parts.text()) == Places{"13:9 resources.ranks"});
}

TEST_CASE("keys of a wrong table are not reported as unknown", "[study]") {
    Parts parts;
    parts.trainable = "command = \"./train {sgd.momentum} {empty} {lr} {lr.domian} {other}\"\n";
    parts.space =
        "lr = { domian = \"uniform(0, 1)\" }\nempty = {}\na = { value = 1, condition = \"sgd.momentum > 0\" }\n"
        "sgd = { condtion = \"a > 0\", momentum = 0.9 }\n";
    CHECK(places(parts.text()) ==
          Places{"8:11 trainable.command", "10:8 space.lr.domian", "11:9 space.empty", "13:9 space.sgd.condtion"});
    CHECK(mistakes(parts.text())[0].find("unknown placeholder {other}") != std::string::npos);
    // Where the whole table is wrong, no name is known.
    CHECK(places("space = 3\n[study]\n" + parts.study +
                 "[trainable]\ncommand = \"./train {x}\"\n"
                 "[resources]\nranks = \"{w}\"\n") == Places{"1:9 space"});
}

TEST_CASE("mistakes of the searcher are reported beside those of the space", "[study]") {
    Parts parts = free_parts();
    parts.space = "v = \"uniform(3,2)\"\nw = \"uniform(0, 1)\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\n";
    CHECK(places(parts.text()) == Places{"10:5 space.v", "13:8 searcher.type"});
}

TEST_CASE("the rungs are compared with the ceiling by what is right among their keys", "[study]") {
    Parts parts = free_parts();
    const auto found = [&](const std::string& keys) {
        parts.rest = "[scheduler]\ntype = \"asha\"\n" + keys;
        return places(parts.text());
    };
    CHECK(found("first_rung = 28\neta = 1.5\n") == Places{"13:14 scheduler.first_rung", "14:7 scheduler.eta"});
    CHECK(found("first_rung = 28\nbrackets = 0\n") == Places{"13:14 scheduler.first_rung", "14:12 scheduler.brackets"});
    CHECK(found("first_rung = 28\nvariant = \"stpo\"\n") ==
          Places{"13:14 scheduler.first_rung", "14:11 scheduler.variant"});
    CHECK(found("first_rung = 9\neta = 3\nbrackets = 3\nrule = \"ray\"\n") == Places{"16:1 scheduler.rule"});
    CHECK(found("first_rung = 0\nbrackets = 9\n") == Places{"13:14 scheduler.first_rung"});
    // Whether fractions are allowed depends on the variant and the rule.
    CHECK(found("variant = \"stpo\"\nrule = \"ray\"\neta = 2.5\nfirst_rung = 0.5\n") ==
          Places{"13:11 scheduler.variant"});
}

TEST_CASE("values left unknown by a mistake cause no second one", "[study]") {
    Parts parts;
    parts.trainable = "name = \"sleeper\"\n";
    parts.rest = "[scheduler]\ntype = \"asha\"\nrestart_paused = 1\n";
    CHECK(places(parts.text()) == Places{"13:18 scheduler.restart_paused"});
    parts.rest = "[scheduler]\ntype = \"asha\"\nrule = \"ray\"\n";
    CHECK(places(parts.text()) == Places{"11:1 scheduler.variant", "13:1 scheduler.rule"});
    parts = free_parts();
    parts.rest = "[scheduler]\ntype = \"ahsa\"\n[checkpoint]\nat_rungs = true\n";
    CHECK(places(parts.text()) == Places{"12:8 scheduler.type"});
    parts.rest = "";
    parts.study += "deterministic = true\nmax_concurrent = -1\n";
    CHECK(places(parts.text()) == Places{"8:18 study.max_concurrent"});
}

TEST_CASE("a malformed override does not hide the mistakes of the file", "[study]") {
    Parts parts;
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"mean\"\nnum_trials = 10\nmax_iterations = 27\n";
    const auto found = mistakes(parts.text(), {"no equals sign"});
    REQUIRE(found.size() == 2);
    CHECK(found[0].find("study.mode") != std::string::npos);
    CHECK(found[1].find("'no equals sign'") != std::string::npos);
}

TEST_CASE("more ranks than there are is a mistake among the others, with its place", "[study]") {
    const auto told = [](const Parts& parts, const std::vector<std::string>& overrides = {}) {
        const RankCheck two = [](std::uint32_t most) { return most > 2 ? std::to_string(most) + " are too many" : ""; };
        std::string all;
        try {
            static_cast<void>(parse_study(parts.text(), "s.toml", overrides, known(), {}, two));
        } catch (const StudyFileError& error) {
            for (const Mistake& mistake : error.mistakes())
                all += std::to_string(mistake.line) + ":" + std::to_string(mistake.column) + " " + mistake.key + ": " +
                       mistake.message.substr(0, 14) + "\n";
        }
        return all;
    };
    Parts parts = free_parts();
    CHECK(told(parts) == "");
    parts.space = "lr = \"uniform(2, 1)\"\nw = [1, 3, 2]\nv = { value = 4, condition = \"w == 5\" }\n";
    parts.rest = "[resources]\nranks = 5\n";
    CHECK(told(parts) ==
          "10:6 space.lr: uniform needs \n12:30 space.v.condition: can never hold\n"
          "14:9 resources.ranks: 5 are too many\n");
    parts.space = "w = [1, 3, 2]\n";
    parts.rest = "[resources]\nranks = \"{w}\"\n";
    CHECK(told(parts) == "12:9 resources.ranks: 3 are too many\n");
    CHECK(told(parts, {"space.w=[1, 2]"}) == "");
    CHECK(told(parts, {"resources.ranks=7"}) == "0:0 resources.ranks: 7 are too many\n");
    parts.rest = "[resources]\ngpus = 4\n";
    CHECK(told(parts) == "12:8 resources.gpus: 4 are too many\n");
    parts.rest = "[resources]\ngpus = 0\n";
    CHECK(told(parts) == "");
}

TEST_CASE("files and directories are checked wherever they are named", "[study]") {
    std::vector<std::string> asked;
    const PathChecks paths{.file = [&asked](const std::string& path) -> std::string {
                               asked.push_back(path);
                               return path.ends_with("there.h5") ? "" : "there is no file \"" + path + "\"";
                           },
                           .directory = [](const std::string& path) { return "no directory " + path; }};
    const auto places = [&](const std::string& text) {
        std::string all;
        try {
            static_cast<void>(parse_study(text, "/studies/s.toml", {}, known(), paths));
        } catch (const StudyFileError& error) {
            for (const Mistake& mistake : error.mistakes())
                all += std::to_string(mistake.line) + " " + mistake.key + ": " + mistake.message + "\n";
        }
        return all;
    };
    Parts parts;
    CHECK(places(parts.text()) == "9 trainable.data: there is no file \"/studies/d.h5\"\n");
    parts.trainable = "builtin = \"mlp\"\n";
    parts.space = "data = [\"there.h5\", \"gone.h5\"]\nlr = \"uniform(2, 1)\"\n";
    const std::string both = places(parts.text());
    CHECK(both.find("space.data: there is no file \"/studies/gone.h5\"") != std::string::npos);
    CHECK(both.find("space.lr: ") != std::string::npos);
    parts.trainable = "command = \"./train {lr}\"\ndirectory = \"gone\"\n";
    parts.space = "lr = \"uniform(0, 1)\"\n";
    CHECK(places(parts.text()).find("9 trainable.directory: no directory /studies/gone\n") != std::string::npos);
    // Workers and replays do not check the files again.
    CHECK(asked.size() == 3);
    CHECK(mistakes(Parts().text()).empty());
}

TEST_CASE("a trainable's own check of a file comes after the check that it exists", "[study]") {
    auto known = known_trainables();
    known[0].options[0].check = [](const std::string& path) { return path + " is no dataset"; };
    const PathChecks paths{.file = [](const std::string&) { return std::string(); }, .directory = {}};
    try {
        static_cast<void>(parse_study(Parts().text(), "/studies/s.toml", {}, ranktune::testing::known(known), paths));
        FAIL("a file that does not serve was accepted");
    } catch (const StudyFileError& error) {
        REQUIRE(error.mistakes().size() == 1);
        CHECK(error.mistakes()[0].message == "/studies/d.h5 is no dataset");
    }
}

TEST_CASE("a Sobol search over more parameters than there are directions for is refused", "[study]") {
    Parts parts = free_parts();
    parts.space.clear();
    for (int i = 0; i <= 3667; ++i) parts.space += "x" + std::to_string(i) + " = \"uniform(0, 1)\"\n";
    parts.rest = "[searcher]\ntype = \"sobol\"\n";
    CHECK(mistake(parts.text()).find("has directions for 3667 parameters, the space has 3668") != std::string::npos);
}

TEST_CASE("an empty path is a mistake among the others", "[study]") {
    // As the file's own folder is empty when it is named without one.
    const auto told = [](const std::string& text) {
        std::string all;
        try {
            static_cast<void>(parse_study(text, "s.toml", {}, known()));
        } catch (const StudyFileError& error) {
            for (const Mistake& mistake : error.mistakes())
                all += std::to_string(mistake.line) + " " + mistake.key + ": " + mistake.message + "\n";
        }
        return all;
    };
    Parts parts;
    parts.trainable = "builtin = \"mlp\"\ndata = \"\"\n";
    parts.space = "lr = \"uniform(2, 1)\"\n";
    const std::string both = told(parts.text());
    CHECK(both.starts_with("9 trainable.data: the option takes a path, not \"\"\n11 space.lr: "));
    parts.trainable = "builtin = \"mlp\"\n";
    parts.space = "data = [\"digits.h5\", \"\"]\n";
    CHECK(told(parts.text()) == "10 space.data: the option takes a path, not \"\"\n");
    parts.trainable = "command = \"./train {args}\"\ndirectory = \"\"\n";
    parts.space = "lr = \"uniform(0, 1)\"\n";
    CHECK(told(parts.text()) ==
          "9 trainable.directory: needs a directory, not \"\"; \".\" is that of the study file, as without the key\n");
}

TEST_CASE("a value in place of a table is one mistake, not one for each missing key", "[study]") {
    const std::string rest = "[trainable]\nname = \"curve\"\n[space]\na = 1\n";
    CHECK(mistake("study = 3\n" + rest) == "1:9 study: needs a table, not an integer");
    CHECK(mistake("[[study]]\nname = \"s\"\n" + rest) == "1:1 study: needs a table, not a list");
    Parts parts;
    CHECK(mistake("trainable = 3\n[study]\n" + parts.study) == "1:13 trainable: needs a table, not an integer");
}

TEST_CASE("an override says where its key belongs, and what integers there are", "[study]") {
    Parts parts;
    CHECK(mistake(parts.text(), {"lr=0.1"}) ==
          "0:0 lr: unknown table; did you mean the key space.lr?  (override \"lr=0.1\")");
    CHECK(mistake(parts.text(), {"data=x.h5"}).find("did you mean the key trainable.data?") != std::string::npos);
    CHECK(mistake(parts.text(), {"study.seed=18446744073709551615"}) ==
          "0:0 : override 'study.seed=18446744073709551615': integers go from -9223372036854775808 to "
          "9223372036854775807 (64 bits)");
}

TEST_CASE("a placeholder is a bare word of an override", "[study]") {
    Parts parts = free_parts();
    parts.space = "w = [1, 2]\n";
    CHECK(parse(parts.text(), {"resources.ranks={w}"}).resources.ranks_parameter == "w");
    CHECK(mistake(parts.text(), {"resources.ranks={w"}).find("override 'resources.ranks={w'") != std::string::npos);
    CHECK(mistake(parts.text(), {"resources.ranks={}"}).find("needs an integer") != std::string::npos);
}

TEST_CASE("an unknown parameter in a condition is answered with those that there are", "[study]") {
    Parts parts = free_parts();
    parts.space = "lr = 0.1\noptimizer = [\"sgd\", \"adam\"]\nm = { value = 1, condition = \"kind == 'sgd'\" }\n";
    CHECK(mistake(parts.text()) ==
          "12:30 space.m.condition: unknown parameter 'kind' (known: lr, optimizer):  \"kind == 'sgd'\"");
    parts.space = "m = { value = 1, condition = \"kind == 1\" }\n";
    for (char c = 'a'; c < 'm'; ++c) parts.space += std::string(1, c) + "1 = 1\n";
    CHECK(mistake(parts.text()) ==
          "10:30 space.m.condition: unknown parameter 'kind' (known: a1, b1, c1, d1, e1, f1, g1, "
          "h1 and 4 more):  \"kind == 1\"");
}

TEST_CASE("a size with the letter of a unit alone is answered with the units", "[study]") {
    for (const char* text : {"10G", "10g", "10", "G", "10 gb"}) {
        Parts parts;
        parts.rest = "[checkpoint]\nmax_bytes = \"" + std::string(text) + "\"\n";
        CHECK(mistake(parts.text()) ==
              "13:13 checkpoint.max_bytes: needs a number of bytes, or text with one of the units KB, MB, GB, TB, KiB, "
              "MiB, GiB, TiB, as in \"500GB\", not \"" +
                  std::string(text) + "\"");
    }
}

TEST_CASE("a condition that cannot be read says where", "[study]") {
    Parts parts = free_parts();
    parts.space = "b = 1\na = { value = 3, condition = \"b = 1\" }\n";
    const std::string text = mistake(parts.text());
    CHECK(text.find("11:30 space.a.condition: ") == 0);
    CHECK(text.find("column 3") != std::string::npos);
    CHECK(text.find(":  \"b = 1\"") != std::string::npos);
}

} // namespace mistakes_together_test
