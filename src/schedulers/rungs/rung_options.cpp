// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/rung_options.hpp"

#include "ranktune/space/value.hpp"

namespace ranktune::schedulers {

using Kind = study::OptionInfo::Kind;

study::AlgorithmOption eta_option(std::string description) {
    return {.name = "eta",
            .kind = Kind::integer,
            .standard = 3,
            .description = std::move(description),
            .low = 2.0,
            .high = 1e6};
}

study::AlgorithmOption first_rung_option(std::string description) {
    return {.name = "first_rung",
            .kind = Kind::integer,
            .standard = 1,
            .description = std::move(description),
            .low = 1.0,
            .high = 1e15};
}

study::AlgorithmOption restart_paused_option(const std::string& whom, std::optional<study::OptionValue> only_with) {
    return {.name = "restart_paused",
            .kind = Kind::boolean,
            .standard = false,
            .description = "Needed with a trainable that cannot save checkpoints: " + whom +
                           " are trained again from the beginning.",
            .only_with = std::move(only_with),
            .may_change = true};
}

bool check_ceiling(const study::AlgorithmCheck& check, const char* option, const std::string& note) {
    if (!check.max_iterations || !check.is_right(option)) return true;
    const double iteration = check.options.at(option).as_double();
    if (iteration <= static_cast<double>(*check.max_iterations)) return true;
    check.complain(option, space::number_text(iteration) + " is above the ceiling study.max_iterations (" +
                               std::to_string(*check.max_iterations) + ")" + note);
    return false;
}

} // namespace ranktune::schedulers
