// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measured learning curves: from a table, or from the journal of an earlier study.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "simulate/model.hpp"
#include "storage/file_system.hpp"

namespace ranktune::simulate {

/// One measured curve.
struct Recording {
    struct Point {
        base::Iteration iteration = 0; ///< from 1
        double value = 0.0;            ///< of the metric
        double seconds = 0.0;          ///< training time from iteration 0 on; only with Recordings::has_seconds
    };
    /// Values in the order of Recordings::parameters; nullopt: the configuration lacks the parameter.
    std::vector<std::optional<std::string>> configuration;
    std::vector<Point> points; ///< ascending iterations, at least one
};

/// What else a journal tells, in seconds: means. nullopt: it did not happen.
struct MeasuredTimes {
    std::optional<double> start;       ///< of ranks that have had a trial before
    std::optional<double> first_start; ///< of the others
    std::optional<double> exploit;
    std::optional<double> checkpoint;
    std::optional<double> report;
};

struct Recordings {
    std::string origin;   ///< for people: "curves.csv", "the study in digits"
    std::string identity; ///< the same data have the same
    std::string metric;
    std::vector<std::string> parameters; ///< names of hyper-parameters; none: curves are not told apart
    std::vector<Recording> curves;
    bool has_seconds = false;
    MeasuredTimes times;
};

/// From CSV (RFC 4180) with a header line. Columns: `curve` (any text), `iteration`, the metric, perhaps `seconds`
/// (training time so far), and those of `parameters` that are there; other columns are ignored. Throws base::UsageError
/// with file and line.
[[nodiscard]] Recordings read_csv(const std::string& text, const std::string& file, const std::string& metric,
                                  const std::vector<std::string>& parameters);
/// The same from the one-dimensional data sets in the root of an HDF5 file. Throws base::FormatError for one that
/// cannot be read.
[[nodiscard]] Recordings read_hdf5(const std::string& file, const std::string& metric,
                                   const std::vector<std::string>& parameters);

/// From the journal of the study in `directory`: one curve for each trial that has reported the metric, up to its first
/// exploit. Throws base::UsageError when there is no such study or metric, base::FormatError for a damaged journal.
[[nodiscard]] Recordings read_study(storage::FileSystem& files, const std::string& directory,
                                    const std::string& metric);

/// The times of a simulation with these curves: what was measured, where the model file gives nothing. Measured seconds
/// have stragglers in them. Throws base::UsageError for keys of the model that would have no effect.
[[nodiscard]] TimeModel times_of(const TimeModel& model, const Recordings& recordings);

} // namespace ranktune::simulate
