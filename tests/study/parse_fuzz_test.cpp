// SPDX-License-Identifier: Apache-2.0
// Mutated study files are parsed, or refused with mistakes; nothing crashes.
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace parse_fuzz_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

const std::vector<std::string> tokens = {"\"uniform(0, 1)\"",
                                         "\"lograndint(1, 9)\"",
                                         "\"grid([1, 2])\"",
                                         "[1, 2]",
                                         "[]",
                                         "{}",
                                         "{ value = 1 }",
                                         "{ domain = 3 }",
                                         "{ domain = \"uniform(0, 1)\", condition = \"lr > 0\" }",
                                         "condition",
                                         "nan",
                                         "inf",
                                         "-1",
                                         "0",
                                         "3",
                                         "27",
                                         "1e308",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "0.5",
                                         "true",
                                         "\"\"",
                                         "\"asha\"",
                                         "\"median\"",
                                         "\"sobol\"",
                                         "\"grid\"",
                                         "\"{lr}\"",
                                         "\"stop\"",
                                         "\"ray\"",
                                         "\"2h\"",
                                         "2024-01-01",
                                         "04:00:00",
                                         "\n[scheduler]\n",
                                         "\n[space.lr]\n",
                                         "\n[stop.plateau]\n",
                                         "\n[[study]]\n",
                                         "\n",
                                         "=",
                                         ".",
                                         ",",
                                         "[",
                                         "]",
                                         "{",
                                         "}",
                                         "\"",
                                         "'",
                                         "#",
                                         "\\",
                                         "\t",
                                         "\xC3\xA9",
                                         "\xFF",
                                         "a.b.c = 1\n",
                                         "lr = 1\n",
                                         "eta = 3\n",
                                         "brackets = 2\n",
                                         "name = \"mlp\"\n",
                                         "num_samples = 3\n",
                                         "\"val_loss <= 1\"",
                                         "\"lr == 1 and\""};

std::vector<std::string> seeds() {
    Parts full;
    full.study += "seed = 7\nmax_concurrent = 5\ntime_budget = \"2h30m\"\n";
    full.trainable += "hidden = [64, 32]\n";
    full.space +=
        "ranks = [1, 2]\nopt = [\"a\", \"b\"]\nmomentum = { domain = \"uniform(0.5, 0.9)\", condition = \"opt == 'a'\" "
        "}\n"
        "[space.sgd]\ncondition = \"opt in ['a', 'b']\"\ndecay = \"qloguniform(1e-3, 1.0, 1e-3)\"\n";
    full.rest =
        "[resources]\nranks = \"{ranks}\"\n[searcher]\ntype = \"sobol\"\n[scheduler]\ntype = \"asha\"\nvariant = "
        "\"stop\"\n"
        "rule = \"ray\"\neta = 2.5\n[stop]\nmetric = [\"val_loss <= 0.1\"]\n[stop.plateau]\nstd = "
        "0.5\n[failure]\ntolerate = 0.5\n"
        "[run]\nabort_grace = \"5s\"\n";
    Parts grid = free_parts();
    grid.space = "a = \"grid([1, 2, 3])\"\nb = { value = [1, 2] }\nn.x = 1\nn.y = \"randint(1, 4)\"\n";
    grid.rest = "[searcher]\ntype = \"grid\"\n[scheduler]\ntype = \"median\"\n";
    return {full.text(), grid.text()};
}

void mutate(std::string& text, base::RngStream& rng) {
    const std::size_t at = rng.below(text.size() + 1);
    switch (rng.below(7)) {
        case 0: // lose some bytes
            text.erase(at, 1 + rng.below(6));
            break;
        case 1: // insert a token
            text.insert(at, tokens[rng.below(tokens.size())]);
            break;
        case 2: { // put a token in the place of a value
            const std::size_t equals = text.find('=', at);
            if (equals == std::string::npos) break;
            const std::size_t end = text.find('\n', equals);
            text.replace(equals + 1, end - equals - 1, " " + tokens[rng.below(tokens.size())]);
            break;
        }
        case 3: { // copy a piece elsewhere
            const std::string piece = text.substr(at, rng.below(40));
            text.insert(rng.below(text.size() + 1), piece);
            break;
        }
        case 4: { // lose a line
            const std::size_t start = text.find('\n', at);
            if (start == std::string::npos) break;
            text.erase(start, text.find('\n', start + 1) - start);
            break;
        }
        case 5: { // change a digit
            const std::size_t digit = text.find_first_of("0123456789", at);
            if (digit != std::string::npos) text[digit] = static_cast<char>('0' + rng.below(10));
            break;
        }
        default: // hit one byte
            if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
    }
}

} // namespace

TEST_CASE("mutated study files are parsed or refused, and what is parsed resolves to the same study", "[study]") {
    base::RngStream rng(11, base::Purpose::fault);
    int parsed = 0;
    int refused = 0;
    for (const std::string& seed : seeds()) {
        REQUIRE(mistake(seed) == "");
        for (int round = 0; round < 1500; ++round) {
            std::string text = seed;
            for (std::uint64_t i = 0; i <= rng.below(3); ++i) mutate(text, rng);
            INFO(text);
            try {
                const StudySpec spec = parse(text);
                ++parsed;
                const std::string resolved = resolved_toml(spec);
                INFO(resolved);
                REQUIRE(resolved_toml(parse(resolved)) == resolved);
                static_cast<void>(spec.max_ranks_per_trial());
            } catch (const StudyFileError& error) {
                ++refused;
                REQUIRE(!error.mistakes().empty());
            }
        }
    }
    CHECK(parsed > 100);
    CHECK(refused > 500);
}

TEST_CASE("mutated overrides are taken or refused", "[study]") {
    base::RngStream rng(12, base::Purpose::fault);
    const std::string text = Parts{}.text();
    const std::vector<std::string> keys = {
        "study.num_trials", "space.lr", "space.lr.condition", "scheduler.type", "a", "", "a.b",
        "stop.plateau",     "\"x",      "trainable.hidden",   "study"};
    int refused = 0;
    for (int round = 0; round < 1500; ++round) {
        std::string change = keys[rng.below(keys.size())] + "=" + tokens[rng.below(tokens.size())];
        if (rng.below(3) == 0) mutate(change, rng);
        INFO(change);
        try {
            static_cast<void>(parse(text, {change}));
        } catch (const StudyFileError&) {
            ++refused;
        }
    }
    CHECK(refused > 300);
    CHECK(refused < 1500);
}

} // namespace parse_fuzz_test
