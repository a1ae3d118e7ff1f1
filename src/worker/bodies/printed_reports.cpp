// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/printed_reports.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::worker {
namespace {

process::ProgramReport report_of(trainables::Metrics metrics) {
    process::ProgramReport report;
    report.metrics = std::move(metrics);
    return report;
}

} // namespace

void complete_task(trainables::Metrics& metrics, std::vector<std::pair<std::string, std::string>>& texts,
                   const std::string& metric) {
    if (metric == study::task_metric) {
        const std::string other = "metric." + metric;
        for (auto& value : metrics)
            if (value.first == metric) value.first = other;
        for (auto& text : texts)
            if (text.first == metric) text.first = other;
    }
    if (std::ranges::find(metrics, metric, &trainables::Metrics::value_type::first) == metrics.end())
        metrics.emplace_back(metric, 0.0);
}

PrintedReports::PrintedReports(const study::ProgramSpec& program, const study::Objective& objective)
    : result_(program.result), metric_(objective.metric) {
    if (!program.report.empty()) values_.emplace(program.report, objective);
}

void PrintedReports::line(std::string_view text) {
    if (!values_ || !mistake_.empty()) return;
    last_ = Last::nothing;
    try {
        if (auto values = values_->line(text)) {
            reports_.push_back(*std::move(values));
            last_ = Last::report;
        }
    } catch (const base::Error& error) {
        mistake_ = error.what();
        last_ = Last::mistake;
    }
}

void PrintedReports::forget_last_line() {
    if (last_ == Last::report && !reports_.empty()) reports_.pop_back();
    if (last_ == Last::mistake) mistake_.clear();
    last_ = Last::nothing;
}

std::optional<process::ProgramReport> PrintedReports::next() {
    if (!reports_.empty()) {
        auto report = report_of(std::move(reports_.front()));
        reports_.pop_front();
        return report;
    }
    if (!mistake_.empty()) throw base::Error(mistake_);
    return std::nullopt;
}

std::optional<process::ProgramReport> PrintedReports::at_end(const process::Child& ended) {
    const auto of = [this](double value) { return report_of({{metric_, value}}); };
    const process::ChildExit& exit = *ended.exited();
    if (std::exchange(over_, true) || exit.signal != 0) return std::nullopt;
    if (result_ == study::PrintedResult::exit_code) return of(exit.code);
    if (exit.code != 0) return std::nullopt;
    if (result_ == study::PrintedResult::success) {
        auto report = process::values_on_last_line(ended.last_line());
        complete_task(report.metrics, report.texts, metric_);
        return report;
    }
    if (result_ != study::PrintedResult::last_number) return std::nullopt;
    if (const auto value = study::last_number(ended.last_output())) return of(*value);
    throw base::Error("there is no number in the last lines that the program printed (result = \"last-number\")");
}

} // namespace ranktune::worker
