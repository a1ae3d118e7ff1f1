// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results in what a program prints: `report` and `result` of [trainable].

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// As study files name it; of none: nothing.
[[nodiscard]] constexpr std::string_view name(PrintedResult result) {
    constexpr std::string_view names[] = {"", "last-number", "exit-code", "success"};
    return names[static_cast<std::size_t>(result)];
}

/// The metric of studies whose trials are tasks and nothing else: it is 0 for each that succeeds. `ranktune map` writes
/// it.
inline constexpr std::string_view task_metric = "exit_code";
/// The trainable whose trials are ranges of samples. `ranktune predict` writes it.
inline constexpr const char* predict_trainable = "predict";
/// Whether the trials are ranges of samples.
[[nodiscard]] inline bool predicts(const StudySpec& spec) { return spec.trainable.name == predict_trainable; }
/// Whether the study starts programs for its trials: they are programs, or ranges that programs predict.
[[nodiscard]] inline bool runs_programs(const StudySpec& spec) {
    return spec.trainable.program || (predicts(spec) && spec.predict.by_program());
}
/// Whether the trials are tasks.
[[nodiscard]] inline bool has_tasks(const StudySpec& spec) {
    return spec.trainable.program && spec.trainable.program->has_tasks();
}
/// Whether no trial is better than another one.
[[nodiscard]] inline bool compares_nothing(const StudySpec& spec) {
    if (!spec.trainable.program) return predicts(spec);
    return has_tasks(spec) && spec.objective.metric == task_metric;
}

/// Reads the lines that a program prints. Of a regular expression with named groups, `(?P<loss>...)`, each is a metric;
/// of one without, group 1 is the metric of the study.
class PrintedValues {
  public:
    using Values = std::vector<std::pair<std::string, double>>;

    /// Throws base::UsageError: what is wrong with a pattern, and where; or a metric of the study that none of them
    /// has.
    PrintedValues(std::span<const std::string> patterns, const Objective& objective);
    ~PrintedValues();
    PrintedValues(const PrintedValues&) = delete;
    PrintedValues& operator=(const PrintedValues&) = delete;

    /// A report, once all metrics of the study have been printed since the last one: all that was printed since then,
    /// of each metric the newest value. Throws base::Error when a group holds something else than a number.
    [[nodiscard]] std::optional<Values> line(std::string_view text);

  private:
    struct Pattern;
    void take(const Pattern& pattern, std::string_view text);

    std::vector<std::unique_ptr<Pattern>> patterns_;
    std::vector<std::string> needed_; ///< metrics of a report
    Values found_;
};

/// The last number in the last line that has one; nullopt: none has. A digit within a word is no number.
[[nodiscard]] std::optional<double> last_number(std::string_view output);

} // namespace ranktune::study
