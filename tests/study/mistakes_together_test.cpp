// SPDX-License-Identifier: Apache-2.0
// Mistakes of several kinds at once, and those that only the disk can tell.

#include "study_files.hpp"
#include "support/catch.hpp"

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
                                             "19:8 stop.time", "20:2 output"});
}

TEST_CASE("a malformed override does not hide the mistakes of the file", "[study]") {
    Parts parts;
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"mean\"\nnum_trials = 10\nmax_iterations = 27\n";
    const auto found = mistakes(parts.text(), {"no equals sign"});
    REQUIRE(found.size() == 2);
    CHECK(found[0].find("study.mode") != std::string::npos);
    CHECK(found[1].find("'no equals sign'") != std::string::npos);
}

TEST_CASE("files and directories are asked about wherever they are named, with their place", "[study]") {
    std::vector<std::string> asked;
    const PathChecks paths{.file = [&asked](const std::string& path) -> std::string {
                               asked.push_back(path);
                               return path.ends_with("there.h5") ? "" : "there is no file \"" + path + "\"";
                           },
                           .directory = [](const std::string& path) { return "no directory " + path; }};
    const auto places = [&](const std::string& text) {
        std::string all;
        try {
            static_cast<void>(parse_study(text, "/studies/s.toml", {}, known_trainables(), paths));
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
    // What a head has checked, its workers and replays need not find again.
    CHECK(asked.size() == 3);
    CHECK(mistakes(Parts().text()).empty());
}

TEST_CASE("a trainable's own check of a file follows the one that it is there", "[study]") {
    auto known = known_trainables();
    known[0].options[0].check = [](const std::string& path) { return path + " is no dataset"; };
    const PathChecks paths{.file = [](const std::string&) { return std::string(); }, .directory = {}};
    try {
        static_cast<void>(parse_study(Parts().text(), "/studies/s.toml", {}, known, paths));
        FAIL("a file that does not serve was accepted");
    } catch (const StudyFileError& error) {
        REQUIRE(error.mistakes().size() == 1);
        CHECK(error.mistakes()[0].message == "/studies/d.h5 is no dataset");
    }
}

TEST_CASE("a Sobol search over more parameters than there are directions for is refused", "[study]") {
    Parts parts = free_parts();
    parts.space.clear();
    for (std::size_t i = 0; i <= max_sobol_parameters; ++i)
        parts.space += "x" + std::to_string(i) + " = \"uniform(0, 1)\"\n";
    parts.rest = "[searcher]\ntype = \"sobol\"\n";
    CHECK(mistake(parts.text()).find("has directions for 1111 parameters, the space has 1112") != std::string::npos);
}

TEST_CASE("an empty path is a mistake among the others", "[study]") {
    // As the file's own folder is empty when it is named without one.
    const auto told = [](const std::string& text) {
        std::string all;
        try {
            static_cast<void>(parse_study(text, "s.toml", {}, known_trainables()));
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

TEST_CASE("something that is no table makes one mistake, not one for each key that it lacks", "[study]") {
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
