// SPDX-License-Identifier: Apache-2.0
// A short version of tools/fuzz with the ordinary compiler: runs the same targets on the corpus and on a fixed number
// of mutated copies.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuzz/targets.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace ranktune::fuzz {
namespace {

const std::map<std::string, std::function<int(const std::uint8_t*, std::size_t)>> targets = {
    {"program", program}, {"request", request}, {"study", study},
    {"codec", codec},     {"journal", journal}, {"slurm", slurm}};

/// Sorted by name, so that runs are reproducible.
std::vector<std::string> corpus(const std::string& target) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(RANKTUNE_FUZZ_CORPUS + ("/" + target)))
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> inputs;
    for (const auto& path : paths) inputs.push_back(testing::read_file(path));
    return inputs;
}

void change(std::string& input, const std::string& other, base::RngStream& rng) {
    const std::size_t at = rng.below(input.size() + 1);
    switch (rng.below(5)) {
        case 0: // replace a byte
            if (at < input.size()) input[at] = static_cast<char>(rng.below(256));
            break;
        case 1: // flip a bit
            if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << rng.below(8)));
            break;
        case 2: // remove some bytes
            input.erase(at, 1 + rng.below(8));
            break;
        case 3: // repeat some bytes
            input.insert(rng.below(input.size() + 1), input.substr(at, rng.below(16)));
            break;
        default: // insert a piece of another input
            if (!other.empty()) input.insert(at, other.substr(rng.below(other.size()), rng.below(32)));
    }
}

void call(const std::string& target, const std::string& input) {
    INFO("the bytes, to run again: " << Catch::StringMaker<std::string>::convert(input));
    REQUIRE_NOTHROW(targets.at(target)(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()));
}

} // namespace

TEST_CASE("every input of the fuzzers' corpus is read or refused", "[fuzz]") {
    for (const auto& [target, read] : targets) {
        const auto inputs = corpus(target);
        CHECK(inputs.size() >= 20);
        for (const std::string& input : inputs) call(target, input);
    }
}

TEST_CASE("changed inputs of the fuzzers' corpus are read or refused", "[fuzz]") {
    constexpr int changes = 4000; // for each target
    for (const auto& [target, read] : targets) {
        const auto inputs = corpus(target);
        REQUIRE_FALSE(inputs.empty());
        base::RngStream rng(1, base::Purpose::fault, 0, static_cast<std::uint32_t>(target.size()));
        for (int i = 0; i < changes; ++i) {
            std::string input = inputs[rng.below(inputs.size())];
            for (std::uint64_t count = 0; count <= rng.below(4); ++count)
                change(input, inputs[rng.below(inputs.size())], rng);
            call(target, input);
        }
    }
}

} // namespace ranktune::fuzz
