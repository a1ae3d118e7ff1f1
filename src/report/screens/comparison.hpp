// SPDX-License-Identifier: Apache-2.0
#pragma once
// Studies side by side: their best values so far on the same axes.

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "report/screens/text.hpp"
#include "report/view/study_view.hpp"

namespace ranktune::report {

struct ComparedStudy {
    std::string directory; ///< as the user would type it
    StudyView view;
};

/// Throws base::UsageError when the studies do not have the same metric and mode: then no value of one says anything
/// about the other.
void require_same_objective(std::span<const ComparedStudy> studies);

/// What makes a comparison unfair, in sentences: other hyper-parameters, another ceiling of iterations, another
/// trainable. Empty: nothing.
[[nodiscard]] std::vector<std::string> differences(std::span<const ComparedStudy> studies);

/// The best value of a study when its trials had trained `iterations` in all, or after so many seconds of study time.
/// NaN: none yet.
[[nodiscard]] double best_after_iterations(const StudyView& view, std::uint64_t iterations);
[[nodiscard]] double best_after_seconds(const StudyView& view, double seconds);

/// What the studies are, and two tables: best value over iterations trained by all trials, and over study time. Needs
/// the same objective. At least one study.
[[nodiscard]] std::string comparison_text(std::span<const ComparedStudy> studies, const Style& style);
/// `metric`, `mode`, `differences` and `studies`, each with every improvement of its best value.
[[nodiscard]] nlohmann::ordered_json comparison_json(std::span<const ComparedStudy> studies);

} // namespace ranktune::report
