// SPDX-License-Identifier: Apache-2.0
#include "report/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ranktune/base/utf8.hpp"
#include "report/export.hpp"
#include "report/importance.hpp"
#include "report/next_steps.hpp"
#include "report/text.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;

/// Enough for a picture, and half of the bytes of a double. Not finite: null.
Json rounded(double value) {
    if (!std::isfinite(value)) return nullptr;
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    const double near = std::strtod(text, nullptr);
    if (near == std::trunc(near) && std::abs(near) < 1e15) return static_cast<std::int64_t>(near); // "3", not "3.0"
    return near;
}

std::int64_t hundredths(double seconds) { return std::llround(seconds * 100.0); }

/// A column of integers as differences.
class Differences {
  public:
    void add(std::int64_t value) { column_.push_back(value - std::exchange(last_, value)); }
    void restart() { last_ = 0; }
    [[nodiscard]] Json take() { return std::move(column_); }

  private:
    Json column_ = Json::array();
    std::int64_t last_ = 0;
};

/// Texts that occur often, each once.
class TextTable {
  public:
    std::size_t number(const std::string& text) {
        const auto [at, is_new] = numbers_.emplace(text, numbers_.size());
        if (is_new) texts_.push_back(base::as_utf8(text));
        return at->second;
    }
    [[nodiscard]] Json take() { return std::move(texts_); }

  private:
    std::unordered_map<std::string, std::size_t> numbers_;
    Json texts_ = Json::array();
};

/// One hyper-parameter: a number is drawn on an axis, any other value is one of a list.
class ParameterColumn {
  public:
    explicit ParameterColumn(const space::Parameter& parameter) : parameter_(&parameter) {
        const auto& domain = parameter.domain;
        const auto* choice = std::get_if<space::Choice>(&domain);
        const auto* grid = std::get_if<space::Grid>(&domain);
        if (choice == nullptr && grid == nullptr) return;
        listed_ = true;
        for (const space::Value& value : choice != nullptr ? choice->values : grid->values) number(value);
    }
    [[nodiscard]] Json cell(const space::Configuration& configuration) {
        const space::Value* value = configuration.find(parameter_->name);
        if (value == nullptr) return nullptr;
        if (!listed_) return value->is_number() ? rounded(value->as_double()) : Json(nullptr);
        return number(*value);
    }
    [[nodiscard]] Json description() const {
        Json json = {{"name", base::as_utf8(parameter_->name)},
                     {"domain", base::as_utf8(space::text(parameter_->domain))}};
        if (listed_) json["values"] = values_;
        if (const auto* floats = std::get_if<space::FloatRange>(&parameter_->domain)) {
            json["log"] = floats->log;
            json["bounds"] = {rounded(floats->lower), rounded(floats->upper)};
        } else if (const auto* ints = std::get_if<space::IntRange>(&parameter_->domain)) {
            json["log"] = ints->log;
            json["bounds"] = {ints->lower, ints->upper};
        }
        return json;
    }

  private:
    std::size_t number(const space::Value& value) {
        const std::string text = value_text(value);
        const auto found = std::ranges::find(values_, text);
        if (found != values_.end()) return static_cast<std::size_t>(found - values_.begin());
        values_.push_back(text);
        return values_.size() - 1;
    }

    const space::Parameter* parameter_;
    bool listed_ = false;
    std::vector<std::string> values_;
};

/// Makes the JSON of one study.
class StudyJson {
  public:
    StudyJson(const PageStudy& study, const PageLimits& limits) : study_(study), view_(study.view), limits_(limits) {
        for (const auto& parameter : view_.parameters) columns_.emplace_back(parameter);
    }

    [[nodiscard]] Json make() {
        Json json = facts();
        json["trials"] = trials();
        json["curves"] = curves();
        json["generations"] = generations();
        json["lineage"] = lineage_of_best();
        json["best_steps"] = best_steps();
        json["decisions"] = decisions();
        json["rungs"] = rungs();
        json["attempts"] = attempts();
        json["starts"] = starts();
        json["incidents"] = incidents();
        json["busy"] = busy();
        json["importance"] = importance();
        json["parameters"] = Json::array(); // last: columns find values that are in no list
        for (const ParameterColumn& column : columns_) json["parameters"].push_back(column.description());
        json["texts"] = texts_.take();
        return json;
    }

  private:
    Json facts() const {
        const Training& training = view_.training;
        const CostView& cost = view_.cost;
        Json hosts = Json::array();
        for (const HostView& host : view_.hosts) hosts.push_back({base::as_utf8(host.name), host.ranks, host.gpus});
        Json versions = Json::array();
        for (const std::string& version : view_.versions) versions.push_back(base::as_utf8(version));
        Json json = {{"name", base::as_utf8(view_.name)},
                     {"directory", base::as_utf8(study_.directory)},
                     {"state", base::as_utf8(study_.state)},
                     {"uuid", view_.uuid},
                     {"metric", base::as_utf8(view_.metric)},
                     {"mode", view_.mode == study::Mode::max ? "max" : "min"},
                     {"simulated", base::as_utf8(view_.simulated)},
                     {"searcher", view_.searcher},
                     {"scheduler", view_.scheduler},
                     {"trainable", base::as_utf8(view_.trainable)},
                     {"num_trials", view_.num_trials},
                     {"max_iterations", view_.max_iterations},
                     {"seed", view_.seed},
                     {"ended", view_.ended},
                     {"end", base::as_utf8(view_.end)},
                     {"now", hundredths(view_.now_s)},
                     {"as_of", view_.as_of},
                     {"best", view_.best ? Json(view_.best->value()) : Json(nullptr)},
                     {"ranks", view_.ranks},
                     {"hosts", hosts},
                     {"versions", versions},
                     {"training",
                      {{"iterations", training.iterations},
                       {"again", training.again},
                       {"full", training.full},
                       {"seconds", rounded(training.seconds)},
                       {"full_seconds", rounded(training.full_seconds)}}},
                     {"cost",
                      {{"core_hours", rounded(cost.core_hours())},
                       {"held", rounded(cost.utilisation())},
                       {"training", rounded(cost.available_s > 0.0 ? cost.training_s / cost.available_s : 0.0)}}}};
        if (!view_.others.empty()) {
            json["objectives"] = Json::array({goal({view_.metric, view_.mode})});
            for (const study::Goal& each : view_.others) json["objectives"].push_back(goal(each));
            json["front"] = Json::array();
            for (const study::TrialId trial : view_.front) json["front"].push_back(trial.value());
        }
        if (view_.best) json["copies"] = copies();
        return json;
    }

    static Json goal(const study::Goal& of) {
        return {{"metric", base::as_utf8(of.metric)}, {"mode", of.mode == study::Mode::max ? "max" : "min"}};
    }

    /// The best configuration in the forms in which people take it elsewhere.
    Json copies() const {
        std::string configuration; // a line for each, lists in one line
        for (const auto& entry : view_.trials.at(view_.best->value()).configuration.entries())
            configuration += (configuration.empty() ? "{\n  " : ",\n  ") + text_of(base::as_utf8(entry.name)) + ": " +
                             text_of(json_of(entry.value));
        const std::string again = command_text({"replay", study_.directory, "--schedule", "best"}) + " > again.toml";
        return {{"toml", base::as_utf8(view_.again)},
                {"json", configuration.empty() ? "{}" : configuration + "\n}"},
                {"command", base::as_utf8(view_.command.empty() ? again : view_.command)}};
    }

    static std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

    Json trials() {
        Json phase = Json::array(), why = Json::array(), message = Json::array(), iterations = Json::array();
        Json best = Json::array(), best_iteration = Json::array(), last = Json::array(), seconds = Json::array();
        Json attempts = Json::array(), ranks = Json::array(), bracket = Json::array(), origin = Json::array();
        Differences created;
        Json values = Json::array();
        for (std::size_t i = 0; i < columns_.size(); ++i) values.push_back(Json::array());
        for (const TrialView& trial : view_.trials) {
            phase.push_back(static_cast<int>(trial.phase));
            why.push_back(texts_.number(trial.why));
            message.push_back(texts_.number(trial.message));
            iterations.push_back(trial.iterations);
            best.push_back(rounded(trial.best));
            best_iteration.push_back(trial.best_iteration);
            last.push_back(rounded(trial.last));
            seconds.push_back(rounded(trial.seconds));
            attempts.push_back(trial.attempts);
            ranks.push_back(trial.ranks);
            bracket.push_back(trial.bracket);
            origin.push_back(texts_.number(trial.origin));
            created.add(hundredths(trial.created_s));
            for (std::size_t i = 0; i < columns_.size(); ++i)
                values[i].push_back(columns_[i].cell(trial.configuration));
        }
        Json all = {{"phase", phase},
                    {"why", why},
                    {"message", message},
                    {"iterations", iterations},
                    {"best", best},
                    {"best_iteration", best_iteration},
                    {"last", last},
                    {"seconds", seconds},
                    {"attempts", attempts},
                    {"ranks", ranks},
                    {"bracket", bracket},
                    {"origin", origin},
                    {"created", created.take()},
                    {"values", values}};
        if (!view_.others.empty()) all["others"] = others_columns();
        return all;
    }

    /// The further objectives, a column for each.
    Json others_columns() const {
        Json columns = Json::array();
        for (std::size_t k = 0; k < view_.others.size(); ++k) {
            Json column = Json::array();
            for (const TrialView& trial : view_.trials)
                column.push_back(k < trial.others.size() ? rounded(trial.others[k]) : Json(nullptr));
            columns.push_back(std::move(column));
        }
        return columns;
    }

    /// Points of all curves one after the other, and how many each trial has.
    Json curves() const {
        std::size_t all = 0;
        for (const TrialView& trial : view_.trials) all += trial.curve.size();
        const std::size_t most = std::max<std::size_t>(
            3,
            all <= limits_.curve_points ? all : limits_.curve_points / std::max<std::size_t>(1, view_.trials.size()));
        Json count = Json::array();
        Json value = Json::array();
        Differences iteration;
        Differences at;
        for (const TrialView& trial : view_.trials) {
            const auto kept = thinned(trial.curve, most, view_.mode);
            count.push_back(kept.size());
            iteration.restart();
            at.restart();
            for (const std::size_t position : kept) {
                const CurvePoint& point = trial.curve[position];
                value.push_back(rounded(point.value));
                iteration.add(static_cast<std::int64_t>(point.iteration));
                at.add(hundredths(point.at_s));
            }
        }
        return {{"reports", all}, {"thinned", all > limits_.curve_points}, {"count", count},
                {"value", value}, {"iteration", iteration.take()},         {"at", at.take()}};
    }

    /// Of trials that took over a state; others have one configuration, which `trials` has.
    Json generations() {
        Json trial = Json::array(), from = Json::array(), donor = Json::array(), donor_iteration = Json::array();
        Json values = Json::array();
        for (std::size_t i = 0; i < columns_.size(); ++i) values.push_back(Json::array());
        for (std::size_t t = 0; t < view_.trials.size(); ++t) {
            if (view_.trials[t].generations.size() < 2) continue;
            for (const GenerationView& each : view_.trials[t].generations) {
                trial.push_back(t);
                from.push_back(each.from);
                donor.push_back(each.donor ? Json(each.donor->value()) : Json(nullptr));
                donor_iteration.push_back(each.donor_iteration);
                for (std::size_t i = 0; i < columns_.size(); ++i)
                    values[i].push_back(columns_[i].cell(each.configuration));
            }
        }
        return {{"trial", trial},
                {"from", from},
                {"donor", donor},
                {"donor_iteration", donor_iteration},
                {"values", values}};
    }

    /// How the weights of the best result were trained, where trials took over states.
    Json lineage_of_best() {
        Json all = Json::array();
        for (const StretchView& stretch : view_.lineage) {
            Json values = Json::array();
            for (ParameterColumn& column : columns_) values.push_back(column.cell(stretch.configuration));
            all.push_back(
                {{"trial", stretch.trial.value()}, {"from", stretch.from}, {"to", stretch.to}, {"values", values}});
        }
        return all;
    }

    Json best_steps() const {
        Differences at;
        Differences iterations;
        Json trial = Json::array();
        Json value = Json::array();
        for (const BestStep& step : view_.best_steps) {
            at.add(hundredths(step.at_s));
            iterations.add(static_cast<std::int64_t>(step.iterations));
            trial.push_back(step.trial.value());
            value.push_back(rounded(step.value));
        }
        return {{"at", at.take()}, {"iterations", iterations.take()}, {"trial", trial}, {"value", value}};
    }

    Json decisions() {
        const std::size_t all = view_.decisions.size();
        Json trial = Json::array(), iteration = Json::array(), why = Json::array();
        Differences at;
        for (std::size_t i = all - std::min(all, limits_.decisions); i < all; ++i) {
            const Decision& decision = view_.decisions[i];
            trial.push_back(decision.trial.value());
            iteration.push_back(decision.iteration);
            why.push_back(texts_.number(study::describe(decision.reason, decision.a, decision.b)));
            at.add(hundredths(decision.at_s));
        }
        return {{"all", all}, {"trial", trial}, {"iteration", iteration}, {"at", at.take()}, {"why", why}};
    }

    Json rungs() const {
        Json all = Json::array();
        for (const RungView& rung : view_.rungs) {
            Json trial = Json::array(), value = Json::array(), went_on = Json::array();
            for (const RungView::Entry& entry : rung.entries) {
                trial.push_back(entry.trial.value());
                value.push_back(rounded(entry.value));
                went_on.push_back(entry.went_on ? 1 : 0);
            }
            all.push_back({{"bracket", rung.bracket},
                           {"iteration", rung.iteration},
                           {"trial", trial},
                           {"value", value},
                           {"on", went_on}});
        }
        return all;
    }

    /// Numbers of the attempts that stay, in the order of their starts.
    [[nodiscard]] std::vector<std::size_t> shown_attempts() const {
        std::vector<std::size_t> shown(view_.attempts.size());
        std::iota(shown.begin(), shown.end(), std::size_t{0});
        if (shown.size() <= limits_.attempts) return shown;
        const auto length = [this](std::size_t i) { return view_.attempts[i].end_s - view_.attempts[i].begin_s; };
        std::ranges::nth_element(shown, shown.begin() + static_cast<std::ptrdiff_t>(limits_.attempts),
                                 std::ranges::greater{}, length);
        shown.resize(limits_.attempts);
        std::ranges::sort(shown);
        return shown;
    }

    Json attempts() {
        Json trial = Json::array(), number = Json::array(), length = Json::array(), outcome = Json::array();
        Json message = Json::array(), ranks = Json::array(), from = Json::array(), whose = Json::array();
        Differences begin;
        for (const std::size_t i : shown_attempts()) {
            const AttemptView& attempt = view_.attempts[i];
            trial.push_back(attempt.trial.value());
            number.push_back(attempt.attempt);
            from.push_back(attempt.from);
            whose.push_back(attempt.whose.value());
            begin.add(hundredths(attempt.begin_s));
            length.push_back(hundredths(attempt.end_s) - hundredths(attempt.begin_s));
            outcome.push_back(texts_.number(attempt.outcome ? std::string(study::name(*attempt.outcome))
                                            : attempt.runs  ? "running"
                                                            : "interrupted"));
            message.push_back(texts_.number(attempt.message));
            ranks.push_back(rank_ranges(attempt.ranks));
        }
        return {{"all", view_.attempts.size()},
                {"trial", trial},
                {"number", number},
                {"from", from},
                {"whose", whose},
                {"begin", begin.take()},
                {"length", length},
                {"outcome", outcome},
                {"message", message},
                {"ranks", ranks}};
    }

    /// First rank and number of ranks, for each run of neighbours.
    static Json rank_ranges(const std::vector<study::Rank>& ranks) {
        Json ranges = Json::array();
        for (std::size_t i = 0; i < ranks.size();) {
            std::size_t end = i + 1;
            while (end < ranks.size() && ranks[end].value() == ranks[end - 1].value() + 1) ++end;
            ranges.push_back(ranks[i].value());
            ranges.push_back(end - i);
            i = end;
        }
        return ranges;
    }

    Json starts() const {
        Json all = Json::array();
        for (const StartOfHead& start : view_.starts)
            all.push_back({{"at", hundredths(start.at_s)},
                           {"end", hundredths(start.end_s)},
                           {"time", base::as_utf8(start.wall_time)},
                           {"ranks", start.ranks}});
        return all;
    }

    Json incidents() const {
        Json all = Json::array();
        for (const Incident& incident : view_.incidents)
            all.push_back({{"at", hundredths(incident.at_s)}, {"text", base::as_utf8(incident.text)}});
        return all;
    }

    Json busy() const {
        Json all = Json::array();
        for (const double share : view_.busy) all.push_back(std::round(share * 1000.0) / 1000.0);
        return all;
    }

    Json importance() const {
        Json all = Json::array();
        for (const Importance& each : importance_of(view_))
            all.push_back({base::as_utf8(each.parameter), each.share ? rounded(*each.share) : Json(nullptr)});
        return all;
    }

    const PageStudy& study_;
    const StudyView& view_;
    const PageLimits& limits_;
    std::vector<ParameterColumn> columns_;
    TextTable texts_;
};

/// In JSON a "<" stands only in strings.
std::string without_less_than(const std::string& text) {
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        if (c == '<')
            safe += "\\u003c";
        else
            safe += c;
    }
    return safe;
}

} // namespace

std::vector<std::size_t> thinned(const std::vector<CurvePoint>& curve, std::size_t most, study::Mode mode) {
    std::vector<std::size_t> kept;
    if (curve.size() <= most) {
        kept.resize(curve.size());
        std::iota(kept.begin(), kept.end(), std::size_t{0});
        return kept;
    }
    const auto best = std::ranges::max_element(
        curve, {}, [mode](const CurvePoint& point) { return study::score(point.value, mode); });
    kept.push_back(static_cast<std::size_t>(best - curve.begin()));
    const std::size_t even = most - 1; // the best one takes a place
    for (std::size_t i = 0; i < even; ++i) kept.push_back(i * (curve.size() - 1) / (even - 1));
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    return kept;
}

std::string page_data(std::span<const PageStudy> studies, const std::string& made, const PageLimits& limits) {
    Json phases = Json::array();
    for (std::size_t i = 0; i < study::phase_count; ++i)
        phases.push_back(std::string(study::name(static_cast<study::TrialPhase>(i))));
    Json json = {{"schema", 1}, {"made", made}, {"phases", phases}, {"studies", Json::array()}};
    for (const PageStudy& study : studies) json["studies"].push_back(StudyJson(study, limits).make());
    return without_less_than(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

} // namespace ranktune::report
