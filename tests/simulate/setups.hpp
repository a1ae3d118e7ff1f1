// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small studies to simulate.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "simulate/driver.hpp"
#include "support/known.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::simulate::testing {

/// `study`: more keys of [study]; `more`: further tables.
[[nodiscard]] inline study::StudySpec spec(const std::string& study, const std::string& more = "") {
    const bool has_searcher = more.find("[searcher]") != std::string::npos;
    const std::string text = "[study]\nname = \"virtual\"\nmetric = \"score\"\nmode = \"max\"\nseed = 1\n" + study +
                             "\n[trainable]\nname = \"any\"\n" +
                             (has_searcher ? "" : "[searcher]\ntype = \"random\"\n") +
                             "[space]\nx = \"uniform(0, 1)\"\ny = \"uniform(0, 1)\"\n" + more;
    return study::parse_study(text, "virtual.toml", {},
                              ranktune::testing::known({ranktune::testing::any_trainable("any")}));
}

/// Iterations of exactly one second, nothing else takes time, no noise.
[[nodiscard]] inline Model exact() {
    Model model;
    model.time = {.iteration = 1.0,
                  .spread = 0.0,
                  .jitter = 0.0,
                  .stragglers = 0.0,
                  .straggler_factor = 1.0,
                  .start = 0.0,
                  .checkpoint = 0.0,
                  .exploit = 0.0};
    model.curves.noise = 0.0;
    return model;
}

/// Keeps the records, and lets a second core apply them.
struct Twin final : study::RecordSink {
    explicit Twin(const study::StudySpec& spec) : tuner(spec) {}
    void append(const std::vector<study::Record>& batch) override {
        for (const auto& record : batch) tuner.apply(record);
        records.insert(records.end(), batch.begin(), batch.end());
    }
    template <class T>
    [[nodiscard]] std::size_t count() const {
        std::size_t n = 0;
        for (const auto& record : records) n += std::holds_alternative<T>(record) ? 1 : 0;
        return n;
    }
    tuner::Tuner tuner;
    std::vector<study::Record> records;
};

} // namespace ranktune::simulate::testing
