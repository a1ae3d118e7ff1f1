// SPDX-License-Identifier: Apache-2.0
#include "report/export/safetensors.hpp"

#include <array>
#include <cstring>
#include <sstream>

#include <nlohmann/json.hpp>

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace safetensors_test {

using namespace ranktune;

namespace {

study::MemoryState model() {
    study::MemoryState state;
    state.put<float>("layers.0.weight", std::array{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3});
    state.put<float>("optimizer.momentum.layers.0.weight", std::array{0.0F}, {1});
    state.put<std::int64_t>("classes", std::array{std::int64_t{7}}, {});
    state.put<std::uint64_t>("trainer.counters", std::array{std::uint64_t{9}}, {1});
    return state;
}

struct File {
    nlohmann::json header;
    std::string data;
    std::size_t header_bytes = 0;
};

File written(bool all) {
    std::ostringstream out;
    report::write_safetensors(model(), all, {{"format", "pt"}}, out);
    const std::string text = out.str();
    std::uint64_t size = 0;
    std::memcpy(&size, text.data(), sizeof size);
    return {nlohmann::json::parse(text.substr(8, size)), text.substr(8 + size), size};
}

} // namespace

TEST_CASE("a safetensors file holds the weights, row by row, behind a header that says where", "[report]") {
    const File file = written(false);
    CHECK(file.header_bytes % 8 == 0);
    CHECK(file.header == nlohmann::json::parse(R"({"__metadata__": {"format": "pt"},
        "layers.0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]},
        "classes": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}})"));
    std::array<float, 6> weights{};
    REQUIRE(file.data.size() == 32);
    std::memcpy(weights.data(), file.data.data() + 8, 24);
    CHECK((weights == std::array{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}));
    CHECK(static_cast<int>(file.data[0]) == 7);
}

TEST_CASE("what is beside the weights is written when asked for", "[report]") {
    const File file = written(true);
    CHECK(file.header.size() == 5);
    CHECK(file.header.at("trainer.counters").at("dtype") == "U64");
    study::MemoryState bare;
    bare.put<std::uint64_t>("trainer.counters", std::array{std::uint64_t{9}}, {1});
    std::ostringstream out;
    CHECK_THROWS_AS(report::write_safetensors(bare, false, {}, out), base::UsageError);
}

TEST_CASE("tensors of all types lie at multiples of their size", "[report]") {
    study::MemoryState state;
    state.put("a", std::array<std::uint8_t, 3>{});
    state.put("b", std::array<base::BFloat16, 3>{});
    state.put("c", std::array<double, 1>{});
    state.put("d", std::array<float, 1>{});
    state.put("e", std::array<base::Float16, 1>{});
    std::ostringstream out;
    report::write_safetensors(state, false, {}, out);
    const std::string text = out.str();
    CHECK(nlohmann::json::parse(text.substr(8, text.size() - 8 - 23)) == nlohmann::json::parse(R"({
        "c": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
        "d": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        "b": {"dtype": "BF16", "shape": [3], "data_offsets": [12, 18]},
        "e": {"dtype": "F16", "shape": [1], "data_offsets": [18, 20]},
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [20, 23]}})"));
}

TEST_CASE("weights of 16 bits are written as they are", "[report]") {
    study::MemoryState half;
    half.put("a", std::array{base::BFloat16(1.0F), base::BFloat16(-2.0F)});
    half.put("b", std::array{base::Float16(1.0F)});
    std::ostringstream out;
    report::write_safetensors(half, false, {}, out);
    const std::string text = out.str();
    const std::size_t data = text.size() - 6;
    CHECK(nlohmann::json::parse(text.substr(8, data - 8)) == nlohmann::json::parse(R"({
        "a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "b": {"dtype": "F16", "shape": [1], "data_offsets": [4, 6]}})"));
    CHECK(text.substr(data) == std::string("\x80\x3F\x00\xC0\x00\x3C", 6));
}

} // namespace safetensors_test
