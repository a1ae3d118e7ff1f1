// SPDX-License-Identifier: Apache-2.0
#pragma once
// The studies of a folder, as a table.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/screens/text.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

/// How a study stands, for a list.
enum class ListedState : std::uint8_t {
    running,     ///< its lease may be held: from another node nobody can see whether the writer lives
    finished,    ///< nothing is left to do
    stopped,     ///< goes on with the next `run`
    failed,      ///< ended with another exit code than 0
    interrupted, ///< nobody runs it, and it did not end: killed
    unreadable   ///< `problem` says why
};
[[nodiscard]] std::string_view name(ListedState state);

struct ListedStudy {
    std::string directory; ///< as the user would type it
    std::string name;
    ListedState state = ListedState::interrupted;
    std::optional<int> exit_code;
    bool simulated = false;
    std::uint64_t trials = 0; ///< created
    std::uint64_t done = 0;   ///< of them, those that neither train nor wait for ranks
    std::uint64_t num_trials = 0;
    std::string metric;  ///< the first objective
    std::string metrics; ///< all objectives: "loss and latency"
    study::Mode mode = study::Mode::max;
    struct Best {
        std::uint64_t trial = 0;
        double value = 0.0;
    };
    std::optional<Best> best;
    std::uint64_t front = 0;              ///< trials on the Pareto front, with several objectives
    std::optional<std::uint64_t> nearest; ///< trial that is nearest to the constraints, when none keeps them
    std::optional<double> newest;         ///< when it was last heard of, in seconds since 1970; nothing: simulated
    std::string problem = {};             ///< one line; empty: none
};

/// What the end of a start makes of a study.
[[nodiscard]] ListedState state_after(study::StudyOutcome outcome);

/// The facts of a study. Unless it has ended, `state` and `exit_code` are left to the caller, who can ask who runs it.
[[nodiscard]] ListedStudy listed(const tuner::Tuner& tuner, const std::string& directory);

/// "0.9722  #3", "front of 5", or "none, near: #2"; "-": no result.
[[nodiscard]] std::string best_of(const ListedStudy& study);

/// How long ago it was last heard of; "-": not known.
[[nodiscard]] std::string age_text(const ListedStudy& study, double now);

/// Running studies first, then the newest. `now`: seconds since 1970.
[[nodiscard]] std::string studies_text(std::vector<ListedStudy> studies, double now, const Style& style);
/// An object with `schema` and `studies`, in the same order.
[[nodiscard]] nlohmann::ordered_json studies_json(std::vector<ListedStudy> studies);

} // namespace ranktune::report
