// SPDX-License-Identifier: Apache-2.0
// The reference page names every option and metric of the built-in trainables.

#include <fstream>
#include <sstream>

#include "ranktune/trainables/trainable.hpp"
#include "support/catch.hpp"

using namespace ranktune;

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
            for (const std::string& accepted : option.accepted)
                CHECK(section.find("`" + accepted + "`") != std::string::npos);
        }
        for (const std::string& metric : info.metrics) {
            INFO(metric);
            CHECK(section.find(name == std::string("mlp") ? "`" + metric + "`" : metric) != std::string::npos);
        }
    }
}
