// SPDX-License-Identifier: Apache-2.0
#include "simulate/model.hpp"

#include <fstream>
#include <sstream>

#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"

using namespace ranktune;

namespace {

std::string refusal(const std::string& text) {
    try {
        static_cast<void>(simulate::parse_model(text, "model.toml"));
    } catch (const study::StudyFileError& error) {
        return error.what();
    }
    return "accepted";
}

} // namespace

TEST_CASE("a model file changes what it names", "[simulate]") {
    const auto model = simulate::parse_model(
        "[curves]\nseed = 3\nnoise = 0\n[time]\niteration = 2\n[failures]\nrate = 0.1\n"
        "[cluster]\nranks_per_host = 4\n",
        "model.toml");
    CHECK(model.curves.seed == 3);
    CHECK(model.curves.noise == 0.0);
    CHECK(model.curves.best == 0.95);
    CHECK(model.time.iteration == 2.0);
    CHECK(model.failures.rate == 0.1);
    CHECK(model.cluster.ranks_per_host == 4);
}

TEST_CASE("mistakes in a model file are named with line and column", "[simulate]") {
    CHECK(refusal("[curves]\nnoize = 0.1\n[tyme]\n[time]\nstart = -1\n") ==
          "3 mistakes in model.toml, nothing was started\n"
          "  2:1  curves.noize: unknown key; did you mean 'noise'?\n"
          "  3:2  tyme: unknown table; did you mean [time]?\n"
          "  5:9  time.start: needs a number from 0 to 10000000, not -1");
    CHECK(refusal("[curves]\nworst = 0.99\n").find("2:9  curves.worst: is larger than curves.best") ==
          std::string::npos);
    CHECK(refusal("[curves]\nworst = 0.99\n").find("2:9  curves.worst is larger than curves.best") !=
          std::string::npos);
    CHECK(refusal("[curves]\n seed\n").find("not valid TOML") != std::string::npos);
    // Names of study files in other tools mean nothing here.
    CHECK(refusal("[time]\ntimeout = 3\n").find("Optuna") == std::string::npos);
}

TEST_CASE("the reference describes every key of a model file", "[simulate]") {
    std::ifstream file(std::string(RANKTUNE_SOURCE_ROOT) + "/docs/reference/simulate.md");
    std::stringstream page;
    page << file.rdbuf();
    for (const std::string& key : simulate::model_keys()) {
        INFO(key);
        CHECK(page.str().find("`" + key.substr(key.find('.') + 1) + "`") != std::string::npos);
    }
}
