// SPDX-License-Identifier: Apache-2.0
#pragma once
// Searchers and schedulers in words, from their descriptions: for a terminal, for the reference page, and for a study
// file to start from.

#include <string>

#include "ranktune/study/algorithm.hpp"
#include "report/screens/text.hpp"

namespace ranktune::report {

/// Every algorithm with its options, `width` columns wide.
[[nodiscard]] std::string algorithms_text(const study::Algorithms& algorithms, std::size_t width);

/// docs/reference/generated/algorithms.md.
[[nodiscard]] std::string algorithms_page(const study::Algorithms& algorithms);

/// The table [searcher] or [scheduler] of a study file that names this algorithm, with its options, their meanings and
/// defaults in comments.
[[nodiscard]] std::string commented_table(const study::SearcherInfo& searcher);
[[nodiscard]] std::string commented_table(const study::SchedulerInfo& scheduler);

} // namespace ranktune::report
