// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model of `ranktune simulate`: how trials learn and how long everything takes. Read from a TOML file; the defaults
// stand here, docs/reference/simulate.md describes each key.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::simulate {

/// [curves]. By default power laws: quality is between 0 and 1, larger is better. After t iterations with one
/// configuration it is limit - gap * t^-speed, three numbers that depend on the configuration.
struct CurveModel {
    std::string file;                  ///< a table of measured curves (CSV, HDF5)
    std::string study;                 ///< the directory of an earlier study, whose journal has the curves
    double best = 0.95;                ///< limit of the best configuration
    double worst = 0.45;               ///< limit of the worst one
    double skew = 2.0;                 ///< 1: limits are spread evenly between these; larger: more good ones
    double start = 0.1;                ///< lowest quality after one iteration
    double roughness = 0.005;          ///< how much limits of neighbouring configurations differ
    double slowest = 0.5;              ///< smallest exponent
    double fastest = 1.5;              ///< largest exponent
    double crossing = 0.5;             ///< 1: the better the limit, the slower; 0: limit and speed are independent
    double noise = 0.005;              ///< standard deviation of a report
    double forgetting = 0.2;           ///< share of a lead over the curve that one iteration loses (after an exploit)
    std::optional<std::uint64_t> seed; ///< of all that is drawn here and of failures; nullopt: study.seed

    [[nodiscard]] bool is_measured() const { return !file.empty() || !study.empty(); }
};

/// [time], in seconds.
struct TimeModel {
    double iteration = 60.0;       ///< of a configuration of middle speed
    double spread = 0.3;           ///< iterations of a configuration take exp(-spread) to exp(spread) times as long
    double jitter = 0.05;          ///< one iteration takes up to this share more or less
    double stragglers = 0.02;      ///< share of the ranks that are slow
    double straggler_factor = 1.5; ///< how much longer iterations take there
    double start = 10.0;           ///< from the assignment of ranks to the first iteration
    /// The same where a rank has its first trial in a job: libraries and data are opened. nullopt: as `start`.
    std::optional<double> first_start = {};
    double checkpoint = 2.0; ///< to write one
    double exploit = 5.0;    ///< as `start`, with the state of another trial
    double report = 0.0;     ///< between two iterations
    double head = 0.0;       ///< that the head computes for one event; events wait in line
    double suggestion = 0.0; ///< that a thread of the head computes for a suggestion ahead; one after the other

    std::vector<std::string> given = {}; ///< keys that the model file names
    [[nodiscard]] bool gives(std::string_view key) const { return std::ranges::find(given, key) != given.end(); }
};

/// [cluster].
struct ClusterModel {
    std::uint32_t ranks_per_host = 8;
};

struct Model {
    CurveModel curves;
    TimeModel time;
    ClusterModel cluster;
};

/// Throws study::StudyFileError with every mistake and its place.
[[nodiscard]] Model parse_model(const std::string& text, const std::string& file);
/// Every key of a model file, `table.key`.
[[nodiscard]] const std::vector<std::string>& model_keys();

} // namespace ranktune::simulate
