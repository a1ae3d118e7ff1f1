// SPDX-License-Identifier: Apache-2.0
// Plays every *.txt of this folder and compares the output with the expected output in it. RANKTUNE_REWRITE=1
// overwrites the expected output with the actual one: review the diff before committing.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "support/catch.hpp"

namespace scenario_test {

namespace {

struct Step {
    std::string comments; ///< lines beginning with '#', and empty ones, before the command
    std::string command;
    std::string body;
    std::string expected;
};

/// command, optional body, `----`, expected lines, an empty line.
std::vector<Step> read_steps(const std::filesystem::path& path) {
    std::ifstream in(path);
    std::vector<Step> steps;
    std::string line;
    Step step;
    while (std::getline(in, line)) {
        if (step.command.empty()) {
            if (line.empty() || line[0] == '#') {
                step.comments += line + "\n";
                continue;
            }
            step.command = line;
            while (std::getline(in, line) && line != "----") step.body += line + "\n";
            while (std::getline(in, line) && !line.empty()) step.expected += line + "\n";
            steps.push_back(step);
            step = {};
        }
    }
    return steps;
}

} // namespace

TEST_CASE("every scenario gives the output that is written in it", "[scenario]") {
    const char* folder = std::getenv("RANKTUNE_SCENARIOS");
    REQUIRE(folder != nullptr);
    const char* listed = std::getenv("RANKTUNE_SCENARIO_NAMES"); // the list in meson.build: a lost file fails the test
    REQUIRE(listed != nullptr);
    std::istringstream words(listed);
    const std::set<std::string> expected{std::istream_iterator<std::string>(words), {}};
    std::set<std::string> played;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".txt") continue;
        played.insert(entry.path().stem().string());
        ranktune::scenarios::Player player;
        std::string rewritten;
        for (const auto& step : read_steps(entry.path())) {
            INFO(entry.path().filename().string() << ": " << step.command);
            std::string output;
            try {
                output = player.play(step.command, step.body);
            } catch (const std::exception& error) {
                output = std::string("error: ") + error.what() + "\n";
            }
            rewritten += step.comments + step.command + "\n" + step.body + "----\n" + output + "\n";
            // A mistake in a scenario is no golden output, unless it was one before.
            if (std::getenv("RANKTUNE_REWRITE") == nullptr || output.starts_with("error: "))
                CHECK(output == step.expected);
        }
        if (std::getenv("RANKTUNE_REWRITE") != nullptr) std::ofstream(entry.path()) << rewritten;
    }
    for (const auto& name : expected) {
        INFO(name);
        CHECK(played.contains(name));
    }
}

} // namespace scenario_test
