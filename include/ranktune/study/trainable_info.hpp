// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrainableInfo: the description of a registered trainable, with which mistakes in a study file are found before
// anything starts.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ranktune::study {

/// One option of a trainable: unknown keys and wrong kinds are refused by name.
struct OptionInfo {
    std::string name;
    enum class Kind : std::uint8_t { boolean, integer, number, string, integer_list, path } kind = Kind::number;
    bool required = false;
    std::string description = {};           ///< a phrase, with the default
    std::vector<std::string> accepted = {}; ///< the allowed strings; empty: any
    std::optional<double> low = {};         ///< inclusive bounds for numbers, integers and members of an integer_list
    std::optional<double> high = {};
    /// May change while a trial trains, when the trial goes on from a state that was saved with another value
    /// ([scheduler.explore]): the option's value counts after `load`, whatever the state holds.
    bool may_change = false;
    /// Path options: returns why the file at this absolute path cannot be used, or an empty string. Called after
    /// `PathChecks::file`, and only together with it.
    std::function<std::string(const std::string& path)> check = {};
};

struct TrainableInfo {
    std::string name; ///< as a study file names it: [trainable] builtin
    std::string description = {};
    std::vector<OptionInfo> options = {}; ///< may be given in [trainable] or tuned in [space], never both
    bool can_checkpoint = true;
    bool can_reset = false;                ///< an object may serve several trials (Trainable::reset_config)
    bool sharded = false;                  ///< every rank saves a file of its own (StateSink::put_rows)
    bool any_option = false;               ///< accepts keys that are not listed (function trainables)
    std::vector<std::string> metrics = {}; ///< what it reports; empty: unknown
    bool may_use_gpus = true;              ///< false: trains on CPUs only
};

} // namespace ranktune::study
