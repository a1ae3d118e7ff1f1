// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs that steer a study while it runs.

#include <string>
#include <vector>

#include "ranktune/study/steering.hpp"

namespace ranktune::cli {

struct SteerArguments {
    study::SteerVerb verb = study::SteerVerb::pause;
    std::string directory;             ///< of the study
    std::string trial;                 ///< digits; of pause, resume and cancel
    std::vector<std::string> settings; ///< `key=value`: of set, and of add the hyper-parameters
    std::string csv;                   ///< of add: a file of trials; empty: none
};
/// Leaves a request for the head and waits for its answer. A study that is not run takes the request when it goes on.
/// Throws base::UsageError with the reason when the request is refused.
int steer(const SteerArguments& arguments);

} // namespace ranktune::cli
