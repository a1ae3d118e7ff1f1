// SPDX-License-Identifier: Apache-2.0
// The reference page names every option and metric of the built-in trainables.

#include <fstream>
#include <iomanip>
#include <sstream>

#include "ranktune/trainables/trainable.hpp"
#include "support/catch.hpp"

using namespace ranktune;

namespace {

/// The line of the table that the option stands in.
std::string row_of(const std::string& section, const std::string& option) {
    const std::size_t at = section.find("`" + option + "`");
    const std::size_t begin = section.rfind('\n', at) + 1;
    return section.substr(begin, section.find('\n', at) - begin);
}

/// As `%g` writes it, or in full: 1e9, 65536.
bool names_bound(const std::string& row, double bound) {
    std::ostringstream brief;
    std::ostringstream whole;
    brief << std::setprecision(8) << bound;
    whole << std::fixed << std::setprecision(0) << bound;
    std::string short_text = brief.str(); // 1e+09
    if (const auto plus = short_text.find("e+"); plus != std::string::npos)
        short_text.replace(plus, short_text.find_first_not_of('0', plus + 2) - plus, "e");
    return row.find(short_text) != std::string::npos || row.find(whole.str()) != std::string::npos;
}

} // namespace

TEST_CASE("the reference page of the trainables is complete", "[trainables]") {
    std::ifstream file(RANKTUNE_DOCS "/reference/trainables.md");
    REQUIRE(file.good());
    std::stringstream text;
    text << file.rdbuf();
    const std::string page = text.str();
    for (const char* name : {"mlp", "curve"}) {
        const std::size_t begin = page.find("## `" + std::string(name) + "`");
        REQUIRE(begin != std::string::npos);
        const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
        const study::TrainableInfo& info = trainables::find_trainable(name).info;
        for (const study::OptionInfo& option : info.options) {
            INFO(name << "." << option.name);
            CHECK(section.find("`" + option.name + "`") != std::string::npos);
            if (option.high) CHECK(names_bound(row_of(section, option.name), *option.high));
            for (const std::string& accepted : option.accepted)
                CHECK(section.find("`" + accepted + "`") != std::string::npos);
        }
        for (const std::string& metric : info.metrics) {
            INFO(metric);
            CHECK(section.find(name == std::string("mlp") ? "`" + metric + "`" : metric) != std::string::npos);
        }
    }
}
