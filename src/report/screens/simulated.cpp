// SPDX-License-Identifier: Apache-2.0
#include "report/screens/simulated.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "report/explain/next_steps.hpp"

namespace ranktune::report {
namespace {

std::string time_text(double seconds) { return std::isfinite(seconds) ? short_duration(seconds) : "never"; }
std::string hours_text(double hours) { return fmt::format("{:.1f}", hours); }
std::string share_text(double share) { return fmt::format("{:.1f} %", 100.0 * share); }

std::string count_text(double count) { return fmt::format("{:.0f}", count); }
std::string distance_text(double distance) { return fmt::format("{:.2f}", distance); }

/// How far measured curves had to be stretched.
std::string stretch_text(const simulate::Setup& setup, const simulate::Extrapolation& stretch) {
    std::string text =
        fmt::format("{} of {}; {} of the reports beyond their data", counted(setup.recordings->curves.size(), "curve"),
                    unbroken(setup.recordings->origin), share_text(stretch.beyond));
    if (stretch.distances)
        text +=
            fmt::format("; the nearest configuration {} away (median; at most {}; 1: opposite corners of the space)",
                        distance_text(stretch.distances->median), distance_text(stretch.distances->largest));
    return text;
}

/// What the jobs went through.
std::string jobs_text(const simulate::Figures& figures) {
    return fmt::format("{}, {} waiting for them; {} lost; {} of the training repeated", counted(figures.jobs, "job"),
                       short_duration(figures.seconds - figures.in_jobs_s), counted(figures.ranks_lost, "rank"),
                       share_text(figures.repeated()));
}

/// Whether the study outgrows its head.
std::string head_text(const simulate::Figures& figures) {
    return fmt::format("computes {} of the time", share_text(figures.head_s / std::max(figures.in_jobs_s, 1e-9)));
}

template <class Text>
std::string cell(const simulate::Quartiles& quartiles, const Text& text) {
    return fmt::format("{} ({} to {})", text(quartiles.median), text(quartiles.low), text(quartiles.high));
}

} // namespace

std::string simulated_text(const tuner::State& state) {
    return state.simulation.empty() ? "" : "simulated: " + state.simulation + "; no trial was trained";
}

std::string simulated_screen(const simulate::Setup& setup, const simulate::Figures& figures,
                             const std::string& directory, const Style& style) {
    const auto& spec = setup.spec;
    std::string text = paragraph(fmt::format("{} simulated: {}, {}, {}", spec.name, simulate::description(setup),
                                             counted(figures.trials, "trial"), counted(figures.reports, "report")),
                                 style);
    text +=
        prose("time", fmt::format("{}, {} core-hours", short_duration(figures.seconds), hours_text(figures.core_hours)),
              style);
    text += prose("workers", share_text(figures.utilisation()) + " training", style);
    if (setup.model.time.head > 0.0) text += prose("head", head_text(figures), style);
    if (!std::isnan(figures.best))
        text += prose("best",
                      fmt::format("{} {} without noise; best reachable {}", spec.objective.metric,
                                  metric_text(figures.best), metric_text(figures.best_reachable)),
                      style);
    text += prose("near best",
                  figures.near_best_s ? "within 1 % of the best reachable after " + short_duration(*figures.near_best_s)
                                      : std::string("never within 1 % of the best reachable"),
                  style);
    if (figures.extrapolation) text += prose("curves", stretch_text(setup, *figures.extrapolation), style);
    if (setup.faults.has_jobs()) text += prose("jobs", jobs_text(figures), style);
    text += labelled("trials", command_text({"status", directory}));
    text += labelled("result", command_text({"best", directory}));
    return encoded(std::move(text), style);
}

std::string sweep_table(std::span<const simulate::Axis> axes, std::span<const simulate::SweepRow> rows,
                        const simulate::Setup& setup) {
    std::vector<std::vector<std::string>> table(1);
    for (const auto& axis : axes) table[0].push_back(axis.key);
    for (const char* title : {"best", "to 1 %", "reached", "core-hours", "utilisation"}) table[0].emplace_back(title);
    if (setup.faults.has_jobs())
        for (const char* title : {"jobs", "repeated"}) table[0].emplace_back(title);
    if (setup.recordings)
        for (const char* title : {"beyond data", "distance"}) table[0].emplace_back(title);
    table[0][axes.size()] += " " + setup.spec.objective.metric;
    for (const auto& row : rows) {
        auto& line = table.emplace_back(row.values);
        line.push_back(cell(row.best, metric_text));
        line.push_back(cell(row.near_best_s, time_text));
        line.push_back(fmt::format("{}/{}", row.reached, row.seeds));
        line.push_back(cell(row.core_hours, hours_text));
        line.push_back(cell(row.utilisation, share_text));
        if (setup.faults.has_jobs()) {
            line.push_back(cell(row.jobs, count_text));
            line.push_back(cell(row.repeated, share_text));
        }
        if (setup.recordings) {
            line.push_back(cell(row.beyond, share_text));
            line.push_back(cell(row.distance, distance_text));
        }
    }
    std::vector<std::size_t> widths(table[0].size());
    for (const auto& line : table)
        for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
    std::string text;
    for (const auto& line : table) {
        std::string out;
        for (std::size_t i = 0; i < line.size(); ++i) out += (i == 0 ? "" : "  ") + pad_right(line[i], widths[i]);
        text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
    }
    const std::uint32_t seeds = rows.empty() ? 0 : rows.front().seeds;
    return text + fmt::format("simulated: {}; median (first to third quartile) over {}\n", simulate::description(setup),
                              counted(seeds, "seed"));
}

} // namespace ranktune::report
