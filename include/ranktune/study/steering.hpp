// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a user asks of a study while it runs: pause, resume or cancel a trial, add trials, set keys of the study file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/fixed.hpp"

namespace ranktune::study {

/// pause: the trial saves its state and gives its ranks back, until `resume`. cancel: it is stopped for good. add: more
/// trials, with configurations that may be partial. set: keys of the study file. Codes are written to the journal:
/// append only.
enum class SteerVerb : std::uint8_t { pause = 0, resume = 1, cancel = 2, add = 3, set = 4 };
inline constexpr SteerVerb last_steer_verb = SteerVerb::set;
[[nodiscard]] std::string_view name(SteerVerb verb);

/// One request.
struct Steering {
    std::uint64_t request = 0; ///< random: a request takes effect once, however often it is read
    SteerVerb verb = SteerVerb::pause;
    base::TrialId trial;                      ///< of pause, resume and cancel
    std::vector<space::Configuration> points; ///< of add: one per trial; what a point lacks comes from the searcher
    std::vector<std::string> settings;        ///< of set: "study.num_trials=120"
    static void fields(auto&& each, auto& r) { each(fixed(r.request), r.verb, r.trial, r.points, r.settings); }
    friend bool operator==(const Steering&, const Steering&) = default;
};

/// "pause trial #17", "add 2 trials: lr=0.1; lr=0.2", "set study.num_trials=120".
[[nodiscard]] std::string describe(const Steering& ask);

} // namespace ranktune::study
