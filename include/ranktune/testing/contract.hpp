// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every scheduler and every searcher must do, as suites for the tests of whoever writes one. They need no test
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

/// Options of an algorithm that a suite is run with; the others have their defaults.
using Settings = std::vector<study::OptionValue>;

/// What a suite runs an algorithm with: the defaults; every combination of booleans and accepted strings that apply (64
/// at most); each number at its bounds and at a few values near its default, with the first of these combinations that
/// takes it. Settings that the algorithm's own check refuses for 20 iterations are left out.
[[nodiscard]] std::vector<Settings> settings_of(const study::SchedulerInfo& info);
[[nodiscard]] std::vector<Settings> settings_of(const study::SearcherInfo& info);

/// Runs the scheduler through random histories of small studies, asynchronous and deterministic ones, with losses,
/// failures, stops, drains and restarts of the head, values that are not finite, ties, and checks the rules of
/// schedulers::Scheduler on the way; then its snapshots, whole and damaged, and its description. Trials save
/// checkpoints and exploit each other, where the scheduler says so. Everything is drawn from fixed seeds. Returns the
/// rules that it breaks, each with the settings under which it does. Runs for about a second.
[[nodiscard]] std::vector<std::string> check_scheduler(const study::SchedulerInfo& info,
                                                       const std::vector<Settings>& more = {});

/// The same for a searcher: spaces of every kind of domain with conditions, domains of one value, a space without
/// parameters, exhaustion, values that are not finite, failed trials, preparation ahead, snapshots, replay, and its
/// description. The table of observations is kept as a study keeps it.
[[nodiscard]] std::vector<std::string> check_searcher(const study::SearcherInfo& info,
                                                      const std::vector<Settings>& more = {});

} // namespace ranktune::testing
