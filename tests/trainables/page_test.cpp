// SPDX-License-Identifier: Apache-2.0
// The reference pages agree with the code: variables of programs, random streams. (Options are on a generated page.)

#include <algorithm>
#include <set>
#include <sstream>

#include "process/program/environment.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace page_test {

using namespace ranktune;

namespace {

using Names = std::set<std::string>;

/// The text between a heading and the next one of any level.
std::string section_of(const std::string& page, const std::string& heading) {
    const auto begin = page.find("\n" + heading + "\n");
    REQUIRE(begin != std::string::npos);
    const auto next = page.find("\n#", begin + 1);
    return page.substr(begin, next - begin);
}

/// Texts in backquotes in one column of a page's tables; `most`: of the first so many tables.
Names quoted_in_column(const std::string& text, std::size_t column, std::size_t most) {
    Names names;
    std::istringstream lines(text);
    std::size_t tables = 0;
    bool inside = false;
    for (std::string line; std::getline(lines, line); inside = line.starts_with('|')) {
        if (!line.starts_with('|')) continue;
        if (!inside && ++tables > most) break;
        std::istringstream cells(line.substr(1));
        std::string cell;
        for (std::size_t i = 0; i <= column; ++i) std::getline(cells, cell, '|');
        for (auto at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
            const auto end = cell.find('`', at + 1);
            names.insert(cell.substr(at + 1, end - at - 1));
            at = end;
        }
    }
    return names;
}

std::string protocol_page() {
    const std::string page = ranktune::testing::read_file(RANKTUNE_DOCS "/reference/program-protocol.md");
    REQUIRE(!page.empty());
    return page;
}

} // namespace

TEST_CASE("the protocol page names the variables that are taken out, and no other", "[trainables]") {
    const Names named = quoted_in_column(section_of(protocol_page(), "### Variables that are taken out"), 1, 1);
    const std::vector<std::string> taken = process::launcher_variables();
    CHECK(taken.size() > 20);
    for (const std::string& pattern : taken) {
        INFO(pattern);
        CHECK(named.contains(pattern));
    }
    for (const std::string& name : named) { // single ones of a group may be named as examples
        INFO(name);
        const std::string base = name.substr(0, name.find('='));
        const std::string value = base.size() == name.size() ? "" : name.substr(base.size() + 1);
        CHECK(process::is_launcher_variable(base, value));
        if (name.ends_with('*')) CHECK(std::ranges::find(taken, name) != taken.end());
    }
}

TEST_CASE("the protocol page names the variables that are set, and no other", "[trainables]") {
    process::ProgramFacts facts;
    facts.checkpoint = "/c";
    facts.config_path = "/c.json";
    facts.python_path = "/p";
    facts.addresses = {"n:1"};
    facts.data = {{.name = "train", .path = "/d"}};
    study::ProgramSpec program;
    program.tf_config = program.jax = program.kept = true;
    Names set = {"RANKTUNE_GUARD"}; // by the process that starts the program
    for (const char* devices : {"0", ""}) {
        facts.visible_devices = devices;
        for (const std::string& entry : process::program_environment({}, program, facts))
            set.insert(entry.substr(0, entry.find('=')));
    }
    CHECK(quoted_in_column(section_of(protocol_page(), "### Variables that are set"), 0, 100) == set);
}

TEST_CASE("the reference page says which random streams are the user's", "[trainables]") {
    const std::string page = ranktune::testing::read_file(RANKTUNE_DOCS "/reference/trainables.md");
    CHECK(section_of(page, "## Random streams").find("ranktune::user_purpose(0)") != std::string::npos);
}

} // namespace page_test
