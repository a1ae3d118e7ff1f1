// SPDX-License-Identifier: Apache-2.0
// docs/reference/study-file.md says everything that the parser accepts.
#include <string>

#include "study/parse/key_table.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace reference_page_test {

using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {
std::string page() { return read_file(RANKTUNE_SOURCE_ROOT "/docs/reference/study-file.md"); }

/// The text between the heading of a table and the next heading of its level.
std::string section(const std::string& text, const std::string& table) {
    const auto start = text.find("\n## `[" + table + "]`");
    if (start == std::string::npos) return "";
    return text.substr(start, text.find("\n## ", start + 1) - start);
}
} // namespace

TEST_CASE("every accepted table has a section and every key a row in the reference page", "[study]") {
    const std::string text = page();
    REQUIRE(!text.empty());
    for (const std::string_view table : accepted_tables()) {
        INFO(table);
        CHECK(!section(text, std::string(table)).empty());
    }
    const KeyTable known(ranktune::testing::built_in_algorithms());
    for (const std::string& key : known.keys()) {
        INFO(key);
        const auto dot = key.find('.');
        CHECK(section(text, key.substr(0, dot)).find("| `" + key.substr(dot + 1) + "`") != std::string::npos);
    }
}

TEST_CASE("every domain is in the reference page", "[study]") {
    const std::string text = page();
    for (const std::string name : {"uniform", "quniform", "loguniform", "qloguniform", "randn", "qrandn", "randint",
                                   "qrandint", "lograndint", "qlograndint", "choice", "grid"}) {
        INFO(name);
        CHECK(text.find("| `" + name + "(") != std::string::npos);
    }
}

TEST_CASE("the examples of the reference page are correct studies", "[study]") {
    const std::string text = page();
    std::size_t examples = 0;
    for (auto at = text.find("```toml\n[study]"); at != std::string::npos; at = text.find("```toml\n[study]", at + 1)) {
        const auto start = at + std::string("```toml\n").size();
        const std::string example = text.substr(start, text.find("```", start) - start);
        INFO(example);
        CHECK(mistake(example) == "");
        ++examples;
    }
    CHECK(examples >= 2);
}

} // namespace reference_page_test
