// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contract suites that every scheduler and searcher must pass, for the tests of their authors. They need no test
// framework: an empty list means that the algorithm keeps the contract.
//
//     int main() {
//         const auto broken = ranktune::testing::check_scheduler(describe_mean_stopping());
//         for (const std::string& rule : broken) std::cerr << rule << "\n";
//         return broken.empty() ? 0 : 1;
//     }

#include <string>
#include <vector>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::testing {

/// Options for one run of a suite; the others keep their defaults.
using Settings = std::vector<study::OptionValue>;

/// The settings that a suite uses: the defaults; every combination of booleans and accepted strings that apply (at most
/// 64); each number at its bounds and at a few values near its default, with the first of these combinations that
/// accepts it. Settings that the algorithm's own check refuses for 20 iterations are left out.
[[nodiscard]] std::vector<Settings> settings_of(const study::SchedulerInfo& info);
[[nodiscard]] std::vector<Settings> settings_of(const study::SearcherInfo& info);

/// Runs the scheduler through random histories of small studies (asynchronous and deterministic, with losses, failures,
/// stops, drains, restarts of the head, non-finite values and ties) and checks the rules of schedulers::Scheduler on
/// the way; then checks its snapshots, whole and damaged, and its description. Trials save checkpoints and exploit each
/// other if the scheduler says so. Everything is drawn from fixed seeds. `more`: additional settings. Returns the
/// broken rules, each with the settings that broke it. Takes seconds, or more with many options.
[[nodiscard]] std::vector<std::string> check_scheduler(const study::SchedulerInfo& info,
                                                       const std::vector<Settings>& more = {});

/// The same for a searcher: spaces with every kind of domain and with conditions, domains of one value, a space without
/// parameters, exhaustion, non-finite values, failed trials, preparation ahead, snapshots, replay, and its description.
/// The table of observations is kept as in a study.
[[nodiscard]] std::vector<std::string> check_searcher(const study::SearcherInfo& info,
                                                      const std::vector<Settings>& more = {});

} // namespace ranktune::testing
