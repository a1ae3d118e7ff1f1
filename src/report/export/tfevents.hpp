// SPDX-License-Identifier: Apache-2.0
#pragma once
// TensorBoard's event files, as bytes: TFRecord frames around protocol buffers, written by hand. The messages:
// tensorflow/core/util/event.proto, framework/summary.proto; tensorboard/plugins/hparams/{api,plugin_data}.proto.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/value.hpp"

namespace ranktune::report::tfevents {

/// A record of a TFRecord file: length, its masked CRC-32C, data, their masked CRC-32C; all little-endian.
[[nodiscard]] std::string framed(std::string_view data);

/// The first event of every file. Times are seconds since 1970.
[[nodiscard]] std::string file_version(double wall_time);
[[nodiscard]] std::string scalar(double wall_time, std::int64_t step, std::string_view tag, double value);

/// What a hyper-parameter can be.
struct HyperParameter {
    std::string name;
    enum class Kind : std::uint8_t { string = 1, boolean = 2, number = 3 } kind = Kind::number;
    std::vector<space::Value> values = {};                  ///< of a list; empty: none
    std::optional<std::pair<double, double>> interval = {}; ///< of a range
};
/// The value as the plugin takes it: numbers, booleans and strings; anything else becomes its text.
[[nodiscard]] space::Value plain(const space::Value& value);

/// For the folder that holds all runs: which hyper-parameters and metrics there are.
[[nodiscard]] std::string experiment(double wall_time, const std::string& name,
                                     const std::vector<HyperParameter>& parameters,
                                     const std::vector<std::string>& metrics);
/// For the folder of one run: its hyper-parameters.
[[nodiscard]] std::string session_start(double wall_time,
                                        const std::vector<std::pair<std::string, space::Value>>& parameters);
enum class Status : std::uint8_t { unknown = 0, success = 1, failure = 2, running = 3 };
[[nodiscard]] std::string session_end(double wall_time, Status status);

} // namespace ranktune::report::tfevents
