// SPDX-License-Identifier: Apache-2.0
#include "schedulers/built_in.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"

namespace ranktune::schedulers {

std::unique_ptr<Scheduler> make_scheduler(const study::StudySpec& spec) {
    // The parser reports mistakes with line and column; a StudySpec made in C++ is checked here.
    study::check_options(spec.scheduler, spec);
    return spec.scheduler.algorithm->make(spec);
}

study::SchedulerSpec chosen(std::string_view name, const std::vector<study::OptionValue>& values) {
    const auto all = built_in();
    const auto found = std::ranges::find(all, name, [](const auto& info) { return std::string_view(info->name); });
    if (found == all.end()) throw base::UsageError("there is no scheduler '" + std::string(name) + "'");
    return study::chosen(*found, values);
}

} // namespace ranktune::schedulers
