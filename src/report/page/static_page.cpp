// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "ranktune/base/utf8.hpp"
#include "report/screens/text.hpp"
#include "report/view/importance.hpp"

namespace ranktune::report {
namespace {

constexpr std::size_t most_rows = 100;
constexpr std::size_t most_curves = 200;

std::string heading(const char* text) { return fmt::format("<h2>{}</h2>\n", text); }
std::string sentence(std::string_view text, const char* kind = "") {
    return fmt::format("<p{}>{}</p>\n", *kind == '\0' ? "" : fmt::format(" class=\"{}\"", kind), html(text));
}

using TextRow = std::vector<std::string>;

/// `rows`: plain text.
std::string html_table(const TextRow& titles, const std::vector<TextRow>& rows) {
    std::string text = "<div class=\"scroll\"><table><thead><tr>";
    for (const auto& title : titles) text += "<th scope=\"col\">" + html(title) + "</th>";
    text += "</tr></thead><tbody>\n";
    for (const TextRow& row : rows) {
        text += "<tr>";
        for (const auto& cell : row) text += "<td class=\"text\">" + html(cell) + "</td>";
        text += "</tr>\n";
    }
    return text + "</tbody></table></div>\n";
}

/// The trials with a value, best first, then the others.
std::vector<std::size_t> best_first(const StudyView& view) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < view.trials.size(); ++i) order.push_back(i);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
        return study::better(
            {study::score(view.trials[a].best, view.mode), study::TrialId{static_cast<std::uint32_t>(a)}},
            {study::score(view.trials[b].best, view.mode), study::TrialId{static_cast<std::uint32_t>(b)}});
    });
    return order;
}

struct Point {
    double x = 0.0;
    double y = 0.0;
};
struct Line {
    std::vector<Point> points;
    const char* kind = "curve"; ///< class of the style
    bool steps = false;         ///< horizontal up to the next point
};

struct Extent {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    void take(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    /// Position in the range, 0 to 1.
    [[nodiscard]] double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

/// Lines in a frame with the ends of both axes.
class Picture {
  public:
    Picture(std::string title, std::string along, bool time)
        : title_(std::move(title)), along_(std::move(along)), time_(time) {
        x_.take(0.0);
    }
    void add(Line line) {
        for (const Point& point : line.points) {
            x_.take(point.x);
            y_.take(point.y);
        }
        lines_.push_back(std::move(line));
    }
    [[nodiscard]] std::string svg() const {
        std::string text = fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" role=\"img\" aria-label=\"{}\">\n",
                                       width, height, width, html(title_));
        text += fmt::format("<rect class=\"frame\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", left, top,
                            width - left - right, height - top - bottom);
        text += label(left, top - 8, "start", title_) + label(width - right, height - 4, "end", along_);
        text += label(left - 6, height - bottom, "end", metric_text(y_.low));
        text += label(left - 6, top + 12, "end", metric_text(y_.high));
        text += label(left, height - bottom + 16, "start", "0");
        text += label(width - right, height - bottom + 16, "end",
                      time_ ? short_duration(x_.high) : fmt::format("{:.0f}", x_.high));
        for (const Line& line : lines_) text += path(line);
        return text + "</svg>\n";
    }

  private:
    static constexpr int width = 680, height = 300, left = 70, right = 12, top = 24, bottom = 36;

    static std::string label(int x, int y, const char* anchor, const std::string& text) {
        return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, html(text));
    }
    [[nodiscard]] std::string path(const Line& line) const {
        std::string d;
        double before = 0.0;
        for (const Point& point : line.points) {
            if (!std::isfinite(point.y)) continue;
            const double x = left + x_.share(point.x) * (width - left - right);
            const double y = height - bottom - y_.share(point.y) * (height - top - bottom);
            if (line.steps && !d.empty()) d += fmt::format("L{:.1f} {:.1f}", x, before);
            d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", x, y);
            before = y;
        }
        return d.empty() ? "" : fmt::format("<path class=\"{}\" d=\"{}\"/>\n", line.kind, d);
    }

    std::string title_;
    std::string along_;
    bool time_;
    std::vector<Line> lines_;
    Extent x_;
    Extent y_;
};

std::string headline_html(const PageStudy& study) {
    const StudyView& view = study.view;
    std::string text = "<h1>" + html(view.name) + "</h1>\n";
    text += sentence(fmt::format("{} of {}; {} search, scheduler {}, up to {}; {}.",
                                 counted(view.trials.size(), "trial"), grouped(view.num_trials), view.searcher,
                                 view.scheduler, counted(view.max_iterations, "iteration"), study.state));
    if (!view.end.empty()) text += sentence(view.end, "warning");
    for (const std::string& each : view.failures) text += sentence("Failed: " + each, "warning");
    if (!view.simulated.empty()) text += sentence(view.simulated, "warning");
    if (!view.ended) text += sentence("Not ended: as of " + view.as_of + ".", "warning");
    return text;
}

std::string best_html(const StudyView& view) {
    if (view.compares_nothing) return {};
    std::string text = heading("Best result");
    if (!view.best) {
        text += sentence("No trial has reported a finite " + view.metric + view.limits + ".");
        return view.nearest.empty() ? text : text + sentence("Nearest to it: " + view.nearest + ".");
    }
    const TrialView& best = view.trials[view.best->value()];
    text += "<div class=\"big\">" + html(view.best_mean.empty() ? metric_text(best.best) : view.best_mean) + "</div>\n";
    std::string others;
    for (std::size_t i = 0; i < view.others.size() && i < best.others.size(); ++i)
        others += fmt::format(", {} {}", view.others[i].metric, metric_text(best.others[i]));
    const std::string weights = view.other_weights.empty() ? "" : "; " + view.other_weights;
    text += sentence(fmt::format("{}, trial #{} at iteration {} of {}{}{}{}", view.metric, view.best->value(),
                                 best.best_iteration, view.max_iterations, view.limits, others, weights));
    if (!view.by_mean.empty()) text += sentence("Best by mean: " + view.by_mean + ".");
    std::vector<TextRow> rows;
    for (const auto& entry : best.configuration.entries()) rows.push_back({entry.name, entry.value.text()});
    text += html_table({"hyper-parameter", "value"}, rows);
    Picture picture("best " + view.metric + " so far", "study time", true);
    Line line{{}, "best", true};
    for (const BestStep& step : view.best_steps) line.points.push_back({step.at_s, step.value});
    if (!line.points.empty()) line.points.push_back({view.now_s, line.points.back().y});
    picture.add(std::move(line));
    return text + picture.svg();
}

/// The Pareto front of several objectives; else empty.
std::string front_html(const StudyView& view) {
    if (view.others.empty()) return {};
    TextRow titles{"trial", view.metric};
    for (const study::Goal& each : view.others) titles.push_back(each.metric);
    for (const auto& parameter : view.parameters) titles.push_back(parameter.name);
    std::vector<TextRow> rows;
    for (const study::TrialId id : view.front) {
        const TrialView& trial = view.trials[id.value()];
        TextRow row{fmt::format("#{}", id.value()), metric_text(trial.best)};
        for (const double value : trial.others) row.push_back(metric_text(value));
        for (const auto& parameter : view.parameters) row.push_back(value_text(trial.configuration, parameter.name));
        rows.push_back(std::move(row));
    }
    return heading("Pareto front") +
           sentence("No trial is better in one objective without being worse in another.", "note") +
           html_table(titles, rows);
}

/// In place of curves, where every trial has one report; empty: there is no value.
std::string values_html(const StudyView& view) {
    Picture picture(view.metric, "trial", false);
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < view.trials.size(); ++i) {
        const double value = view.trials[i].best;
        if (!std::isfinite(value)) continue;
        const double x = static_cast<double>(i);
        picture.add({{{x - 0.3, value}, {x + 0.3, value}}, view.best && view.best->value() == i ? "best" : "curve"});
        ++drawn;
    }
    return drawn == 0 ? std::string() : heading("Values by trial") + picture.svg();
}

std::string curves_html(const StudyView& view, const std::vector<std::size_t>& order) {
    Picture picture(view.metric, "iteration", false);
    std::size_t drawn = 0;
    for (const std::size_t i : order) {
        const auto& curve = view.trials[i].curve;
        const auto is_finite = [](const CurvePoint& point) { return std::isfinite(point.value); };
        if (curve.size() < 2 || drawn == most_curves || std::ranges::none_of(curve, is_finite)) continue;
        Line line;
        for (const std::size_t k : thinned(curve, 200, view.mode))
            line.points.push_back({static_cast<double>(curve[k].iteration), curve[k].value});
        if (view.best && view.best->value() == i) line.kind = "best";
        picture.add(std::move(line));
        ++drawn;
    }
    if (drawn == 0) return values_html(view);
    return heading("Learning curves") + sentence(fmt::format("Of the best {}.", counted(drawn, "trial")), "note") +
           picture.svg();
}

std::string importance_html(const StudyView& view) {
    const auto importance = importance_of(view);
    if (importance.empty()) return {};
    std::vector<TextRow> rows;
    for (const Importance& each : importance)
        rows.push_back({each.parameter, each.share ? fmt::format("{:.0f} %", 100.0 * *each.share) : "too few trials"});
    return heading("Which hyper-parameters matter") +
           sentence("PED-ANOVA: how much each separates the best tenth of the trials from all of them.", "note") +
           html_table({"hyper-parameter", "share"}, rows);
}

std::string rungs_html(const StudyView& view) {
    if (view.rungs.empty()) return {};
    std::vector<TextRow> rows;
    for (const RungView& rung : view.rungs)
        rows.push_back({std::to_string(rung.bracket), grouped(rung.iteration), grouped(rung.entries.size()),
                        grouped(rung.went_on()), metric_text(rung.entries.front().value)});
    return heading("Rungs") + html_table({"bracket", "iteration", "compared", "went on", "best"}, rows);
}

std::string trials_html(const StudyView& view, const std::vector<std::size_t>& order) {
    TextRow titles{"trial", "state", view.metric, "iterations", "time"};
    for (const auto& parameter : view.parameters) titles.push_back(parameter.name);
    titles.emplace_back("why");
    std::vector<TextRow> rows;
    for (std::size_t k = 0; k < std::min(order.size(), most_rows); ++k) {
        const TrialView& trial = view.trials[order[k]];
        TextRow row{fmt::format("#{}", order[k]), std::string(study::name(trial.phase)), metric_text(trial.best),
                    std::to_string(trial.iterations), short_duration(trial.seconds)};
        for (const auto& parameter : view.parameters) row.push_back(value_text(trial.configuration, parameter.name));
        row.push_back(trial.message.empty() ? trial.why : first_line(trial.message));
        rows.push_back(std::move(row));
    }
    std::string text = heading("Trials");
    if (order.size() > most_rows)
        text += sentence(fmt::format("The best {} of {}; ranktune export has all.", most_rows, grouped(order.size())),
                         "note");
    return text + html_table(titles, rows);
}

std::string cost_html(const PageStudy& study) {
    const StudyView& view = study.view;
    std::vector<std::string> hosts;
    for (const HostView& host : view.hosts) hosts.push_back(fmt::format("{} ({})", host.name, host.ranks));
    const Training& training = view.training;
    std::vector<TextRow> rows = {
        {"trainable", view.trainable},
        {"ranktune", base::join(view.versions)},
        {"time", fmt::format("{}, {}", short_duration(view.now_s), counted(view.starts.size(), "start"))},
        {"training", fmt::format("{} of {}", grouped(training.iterations), counted(training.full, "iteration"))}};
    if (!hosts.empty()) { // otherwise a loop asked for trials
        rows.push_back({"workers", fmt::format("{} on {}", counted(view.ranks, "rank"), base::join_some(hosts, 12))});
        rows.push_back(
            {"cost",
             fmt::format("{:.1f} core-hours{}; {:.1f} % held by trials, {:.1f} % starting", view.cost.core_hours(),
                         view.cost.gpu_s > 0.0 ? fmt::format(", {:.1f} GPU-hours", view.cost.gpu_s / 3600.0) : "",
                         100.0 * view.cost.utilisation(),
                         100.0 * view.cost.share(view.cost.spent_s[static_cast<std::size_t>(Spent::starting)]))});
    }
    for (const Surroundings& start : study.surroundings) {
        std::vector<std::string> parts{start.host, start.job.empty() ? "" : "job " + start.job, start.software,
                                       start.code.empty() ? "" : "code " + start.code};
        std::erase(parts, "");
        rows.push_back({fmt::format("start {}", start.start), base::join(parts)});
    }
    return heading("How it ran") + html_table({"", ""}, rows);
}

} // namespace

std::string html(std::string_view text) {
    return replaced(base::escaped(text),
                    {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string static_page(std::span<const PageStudy> studies, bool without_scripts) {
    std::string text;
    if (without_scripts)
        text += sentence(
            "This ranktune was built without d3: the report has tables and pictures, and nothing to click. "
            "Built with -Dd3=FILE it has both.",
            "note");
    for (const PageStudy& study : studies) {
        const auto order = best_first(study.view);
        text += headline_html(study) + best_html(study.view) + front_html(study.view) + curves_html(study.view, order) +
                importance_html(study.view) + rungs_html(study.view) + trials_html(study.view, order) +
                cost_html(study);
    }
    return text;
}

} // namespace ranktune::report
