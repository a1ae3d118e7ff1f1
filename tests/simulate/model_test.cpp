// SPDX-License-Identifier: Apache-2.0
#include "simulate/model.hpp"

#include <cstdint>
#include <sstream>
#include <string>

#include "ranktune/study/parse.hpp"
#include "simulate/faults.hpp"
#include "simulate/file_keys.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace model_test {

using namespace ranktune;

namespace {

std::string refusal(const std::string& text) {
    return ranktune::testing::error_of<study::StudyFileError>(
        [&] { return simulate::parse_model(text, "model.toml"); });
}

} // namespace

TEST_CASE("a model file changes what it names", "[simulate]") {
    const auto model = simulate::parse_model(
        "[curves]\nseed = 3\nnoise = 0\n[time]\niteration = 2\nreport = 0.5\nfirst_start = 7\n"
        "[cluster]\nranks_per_host = 4\n",
        "model.toml");
    CHECK(model.curves.seed == 3);
    CHECK(model.curves.noise == 0.0);
    CHECK(model.curves.best == 0.95);
    CHECK(model.time.iteration == 2.0);
    CHECK(model.time.report == 0.5);
    CHECK(model.time.first_start == 7.0);
    CHECK(model.time.gives("report"));
    CHECK_FALSE(model.time.gives("start"));
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

TEST_CASE("measured curves have no power law", "[simulate]") {
    const auto model = simulate::parse_model("[curves]\nfile = \"c.csv\"\nforgetting = 0.5\nseed = 3\n", "model.toml");
    CHECK(model.curves.file == "c.csv");
    CHECK(model.curves.is_measured());
    CHECK(model.curves.forgetting == 0.5);
    CHECK(refusal("[curves]\nstudy = \"d\"\nnoise = 0.1\n").find("3:1  curves.noise: describes power laws") !=
          std::string::npos);
    CHECK(refusal("[curves]\nstudy = \"d\"\nfile = \"c.csv\"\n").find("curves come from one of them") !=
          std::string::npos);
}

TEST_CASE("a file of failures", "[simulate]") {
    const auto faults = simulate::parse_faults(
        "[trials]\nrate = 0.1\n[ranks]\nmean_time_to_failure = \"2000h\"\n[job]\nmean_time_to_failure = \"2d\"\n"
        "walltime = \"8h\"\nwait = \"30m\"\njobs = 7\n",
        "faults.toml");
    CHECK(faults == simulate::FaultModel{0.1, 7.2e6, 172800.0, 28800.0, 1800.0, 7});
    CHECK(faults.has_jobs());
    CHECK_FALSE(simulate::parse_faults("[trials]\nrate = 0.1\n", "").has_jobs());
    CHECK(simulate::parse_faults("", "") == simulate::FaultModel{});
    const auto refused = [](const std::string& text) {
        try {
            static_cast<void>(simulate::parse_faults(text, "faults.toml"));
        } catch (const study::StudyFileError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    CHECK(refused("[job]\nwaltime = \"8h\"\n").find("2:1  job.waltime: unknown key; did you mean 'walltime'?") !=
          std::string::npos);
    CHECK(refused("[job]\nwait = \"8h\"\n").find("2:8  job.wait: needs job.walltime") != std::string::npos);
    CHECK(refused("[trials]\nrate = 1\n").find("needs a number from 0 to 0.999") != std::string::npos);
}

TEST_CASE("the bounds that the reference names are those of the reader", "[simulate]") {
    const auto accepts = [](std::string_view key, const std::string& value) {
        const auto dot = key.find('.');
        const std::string text =
            "[" + std::string(key.substr(0, dot)) + "]\n" + std::string(key.substr(dot + 1)) + " = " + value + "\n";
        try {
            static_cast<void>(simulate::parse_model(text, "m.toml"));
        } catch (const study::StudyFileError& error) {
            return std::string(error.what()).find("needs a") == std::string::npos;
        }
        return true;
    };
    std::size_t bounded = 0;
    for (const study::KeyInfo& key : simulate::model_key_infos()) {
        std::istringstream words{std::string(key.takes)};
        std::string kind, low, to;
        double high = 0.0;
        if (!(words >> kind >> low >> to >> high)) continue;
        INFO(key.key);
        CHECK(accepts(key.key, low));
        CHECK_FALSE(accepts(key.key, "-1e-9"));
        CHECK_FALSE(accepts(key.key, kind == "integer" ? std::to_string(static_cast<std::int64_t>(high) + 1)
                                                       : std::to_string(high * 1.01)));
        ++bounded;
    }
    CHECK(bounded > 15);
}

} // namespace model_test
