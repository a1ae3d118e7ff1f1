// SPDX-License-Identifier: Apache-2.0
#pragma once
// Studies in various states for tests of screens, and helpers for these tests.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/screens/screens.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace ranktune::report::testing {

inline constexpr const char* digits = R"toml([study]
name = "digits"
metric = "val_accuracy"
mode = "max"
num_trials = 12
max_iterations = 9
seed = 1
[trainable]
name = "any"
[resources]
ranks = 2
[space]
lr = "loguniform(1e-4, 1.0)"
batch_size = [32, 64, 128]
hidden = [[64], [128, 64], [256, 128]]
optimizer = ["sgd", "adam"]
momentum = { domain = "uniform(0.5, 0.99)", condition = "optimizer == 'sgd'" }
constant = 3
[scheduler]
type = "asha"
)toml";

[[nodiscard]] inline Live figures() {
    Live live;
    live.elapsed_s = 72.0;
    live.left_s = 45.0;
    live.busy_share = 0.99;
    live.starting_share = 0.006;
    live.idle_share = 0.004;
    return live;
}

/// The versions for all start screens.
[[nodiscard]] inline StartInfo start_of(std::uint32_t workers, std::string hosts, std::string directory) {
    StartInfo info;
    info.version = "ranktune 0.1.0 (a1b2c3d)";
    info.mpi = "Open MPI 4.1.4";
    info.hdf5 = "HDF5 1.10.8";
    info.workers = workers;
    info.hosts = std::move(hosts);
    info.directory = std::move(directory);
    return info;
}

/// As the start with this number finds it.
[[nodiscard]] inline studydir::OpenedStudy opened(StudyByHand study, std::uint32_t start) {
    studydir::OpenedStudy found;
    found.incarnation = base::Incarnation{start};
    found.tuner = std::move(study.owned);
    return found;
}

/// Trials in most states: running, paused at several rungs, failed twice, and one with NaN.
[[nodiscard]] inline StudyByHand half_way() {
    StudyByHand study(digits);
    study.began(4);
    study.train(0, 1, 0.75);
    study.train(1, 1, 0.5);
    study.train(2, 1, 0.8125);
    study.train(3, 1, std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t i = 0; i < study.tuner.state().trials.size(); ++i) {
        if (study.state(i).phase != study::TrialPhase::running) continue;
        if (i == 2) study.train(2, 2, 0.9);
        if (i == 2) study.train(2, 3, 0.925);
    }
    study.over(4, study::AttemptOutcome::failed, {"loss is NaN at iteration 1"});
    return study;
}

[[nodiscard]] inline double curve(std::uint32_t trial, base::Iteration iteration) {
    return 0.9 - 0.01 * ((7 * trial) % 12) - 0.2 / static_cast<double>(iteration);
}

[[nodiscard]] inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

[[nodiscard]] inline std::size_t widest(const std::string& text) {
    std::size_t width = 0;
    for (const auto& line : lines_of(text)) width = std::max(width, display_width(line));
    return width;
}

[[nodiscard]] inline Style columns(std::size_t width) {
    Style style;
    style.width = width;
    return style;
}

/// For a screen with all figures.
[[nodiscard]] inline FilesInfo files() {
    FilesInfo info{9, 3'140'000, "digits", "ranktune run digits.toml"};
    info.verbose = true;
    return info;
}

/// A grid of three trials of one iteration.
[[nodiscard]] inline std::string grid(const std::string& num_trials = {}) {
    return R"toml([study]
name = "grid"
metric = "loss"
mode = "min"
max_iterations = 1
)toml" + num_trials +
           R"toml([trainable]
name = "any"
[space]
lr = [0.1, 0.2, 0.3]
layers = [[]]
[searcher]
type = "grid"
)toml";
}

/// The study above, ended; all trials have this loss.
[[nodiscard]] inline StudyByHand ended_grid(double loss, const std::string& num_trials = {}) {
    StudyByHand study(grid(num_trials));
    study.began(1);
    for (std::uint32_t trial = 0; trial < 3; ++trial) study.train(trial, 1, loss);
    return study;
}

[[nodiscard]] inline StudyByHand ended_well() {
    StudyByHand study(digits);
    study.began(4);
    study.play_out(curve);
    REQUIRE(study.tuner.state().ended);
    return study;
}

/// Nine of twelve trials have failed; the others were never created.
[[nodiscard]] inline StudyByHand early_failures() {
    StudyByHand study(digits);
    study.began(4);
    for (std::uint32_t trial = 0; trial < 12 && !study.tuner.state().ended; ++trial) {
        if (trial < study.tuner.state().trials.size() && study.state(trial).phase == study::TrialPhase::running)
            study.over(trial, study::AttemptOutcome::failed, {"No module named 'datasets'"});
    }
    REQUIRE(study.tuner.state().outcome == study::StudyOutcome::no_success);
    return study;
}

[[nodiscard]] inline bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

} // namespace ranktune::report::testing
