// SPDX-License-Identifier: Apache-2.0
// What the reference says of keys is what the parser does; the examples of its page are correct.
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "study/parse/key_table.hpp"
#include "study/parse/keys.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace reference_page_test {

using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {
std::string page() { return read_file(RANKTUNE_SOURCE_ROOT "/docs/reference/study-file.md"); }

/// Whether the parser takes `key = value` without a complaint about kind or bounds.
bool accepts(std::string_view key, const std::string& value) {
    Parts parts = free_parts();
    if (key.starts_with("trainable.")) parts.trainable = "command = \"./train {args}\"\n"; // keys of programs
    for (const std::string& line : mistakes(parts.text(), {std::string(key) + "=" + value}))
        if (line.find(std::string(key) + ": ") != std::string::npos && line.find("needs a") != std::string::npos)
            return false;
    return true;
}

/// "integer 1 to 64", "number >= 0": (kind, lowest, highest); nothing for other texts.
struct Bounds {
    bool whole = false;
    double low = 0.0;
    std::optional<double> high = {};
};
std::optional<Bounds> bounds_of(std::string_view takes) {
    std::istringstream words{std::string(takes)};
    std::string kind, first, to;
    words >> kind >> first;
    if (kind != "integer" && kind != "number") return std::nullopt;
    Bounds bounds{.whole = kind == "integer"};
    if (first == ">=") {
        words >> bounds.low;
        return bounds;
    }
    double high = 0.0;
    if (first.empty() || first[0] < '0' || first[0] > '9' || !(words >> to >> high)) return std::nullopt;
    bounds.low = std::stod(first);
    bounds.high = high;
    return bounds;
}
std::string text_of(const Bounds& bounds, double value) {
    return bounds.whole ? std::to_string(static_cast<std::int64_t>(value)) : std::to_string(value);
}
} // namespace

TEST_CASE("the bounds that the reference names are those of the parser", "[study]") {
    std::size_t bounded = 0;
    for (const KeyInfo& key : key_infos()) {
        const auto bounds = bounds_of(key.takes);
        if (!bounds) continue;
        INFO(key.key);
        CHECK(accepts(key.key, text_of(*bounds, bounds->low)));
        CHECK_FALSE(accepts(key.key, text_of(*bounds, bounds->low - 1.0)));
        if (bounds->high) {
            CHECK(accepts(key.key, text_of(*bounds, *bounds->high)));
            CHECK_FALSE(accepts(key.key, text_of(*bounds, *bounds->high + 1.0)));
        }
        ++bounded;
    }
    CHECK(bounded > 15);
}

TEST_CASE("the defaults that the reference names are those of a resolved file", "[study]") {
    const std::string resolved = resolved_toml(parse(free_parts().text() + "[stop.plateau]\n"));
    std::size_t compared = 0;
    for (const KeyInfo& key : key_infos()) {
        const std::string standard(key.standard);
        const auto dot = key.key.rfind('.');
        const bool literal = standard.find(' ') == std::string::npos && standard != "none" && standard != "required" &&
                             standard != "empty" && standard[0] != '`';
        const auto table = resolved.find("[" + std::string(key.key.substr(0, dot)) + "]\n");
        if (!literal || table == std::string::npos || key.key.starts_with("trainable.")) continue;
        const std::string section = resolved.substr(table, resolved.find("\n\n", table) + 1 - table);
        const std::string line = "\n" + std::string(key.key.substr(dot + 1)) + " = ";
        if (section.find(line) == std::string::npos) continue; // written only when it is true
        INFO(key.key);
        CHECK(section.find(line + standard + "\n") != std::string::npos);
        ++compared;
    }
    CHECK(compared > 20);
}

TEST_CASE("every key that the parser knows is described, and the tables and domains exist", "[study]") {
    const KeyTable known(ranktune::testing::built_in_algorithms());
    for (const KeyInfo& key : key_infos()) {
        INFO(key.key);
        CHECK(std::ranges::count(key_infos(), key.key, &KeyInfo::key) == 1);
        CHECK(known.has_table(key.key.substr(0, key.key.find('.'))));
        CHECK(!key.meaning.empty());
    }
    for (const DomainInfo& domain : domain_infos()) {
        INFO(domain.call);
        std::string call(domain.call); // with numbers for the names of the arguments
        for (const auto& [name, value] : {std::pair<std::string, std::string>{"lower", "1"},
                                          {"upper", "9"},
                                          {", q)", ", 2)"},
                                          {", step)", ", 2)"},
                                          {"mean,", "0,"},
                                          {"sd,", "1,"},
                                          {"[a, b, ...]", "[1, 2]"}})
            if (const auto at = call.find(name); at != std::string::npos) call.replace(at, name.size(), value);
        CHECK_NOTHROW(parse(free_parts().text() + "x = \"" + call + "\"\n"));
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
