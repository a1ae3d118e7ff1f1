// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_data.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "report/explain/next_steps.hpp"
#include "report/export/export.hpp"
#include "report/screens/text.hpp"
#include "report/view/importance.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int digits = 6; // enough for a picture, and half of the bytes of a double

/// Not finite: null.
Json rounded(double value) {
    if (!std::isfinite(value)) return nullptr;
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
    double near = 0.0;
    std::from_chars(text, end, near);
    if (near == std::trunc(near) && std::abs(near) < 1e15) return static_cast<std::int64_t>(near); // "3", not "3.0"
    return near;
}

std::int64_t hundredths(double seconds) { return std::llround(seconds * 100.0); }

/// In JSON a "<" stands only in strings.
void add_without_less_than(std::string& out, std::string_view text) {
    for (auto at = text.find('<'); at != std::string_view::npos; at = text.find('<')) {
        out.append(text.substr(0, at)).append("\\u003c");
        text.remove_prefix(at + 1);
    }
    out.append(text);
}

std::string dumped(const Json& json, bool ascii) { return json.dump(-1, ' ', ascii, Json::error_handler_t::replace); }

/// What a browser would obey or hide is shown, as by base::escaped.
std::string text_of(const Json& json) {
    const std::string text = dumped(json, false);
    std::string out;
    for (std::string_view left = text; !left.empty();) {
        const base::Rune rune = base::first_rune(left);
        const std::string_view character = left.substr(0, rune.bytes);
        if (base::is_unseen(rune))
            for (const char byte : character) base::append_escaped(byte, out += '\\');
        else
            out += character;
        left.remove_prefix(rune.bytes);
    }
    return out;
}

/// To be copied: the same value, nothing of it unseen.
std::string copied(const Json& json) {
    const std::string text = dumped(json, false);
    return base::printable(text) == text ? text : dumped(json, true);
}

/// A column of JSON, made as text: of millions of values a tree takes ten times the memory.
class Column {
  public:
    void add(std::integral auto value) { print(value); }
    void add(double value) { add_number(value, std::chars_format::general, digits); }
    void add_all_digits(double value) { add_number(value); } ///< for values that are compared
    void add(const Json& value) { raw(text_of(value)); }
    void raw(std::string_view json) { text_.append(std::exchange(separator_, ",")).append(json); }
    [[nodiscard]] std::string take() { return std::move(text_) + "]"; }

  private:
    void add_number(double value, auto... format) {
        if (std::isfinite(value))
            print(value, format...);
        else
            raw("null");
    }
    void print(auto... value) {
        char text[32];
        const auto end = std::to_chars(text, text + sizeof text, value...).ptr;
        raw({text, static_cast<std::size_t>(end - text)});
    }

    std::string text_ = "[";
    std::string_view separator_;
};

/// A column of integers as differences.
class Differences {
  public:
    void add(std::int64_t value) { column_.add(value - std::exchange(last_, value)); }
    void restart() { last_ = 0; }
    [[nodiscard]] std::string take() { return column_.take(); }

  private:
    Column column_;
    std::int64_t last_ = 0;
};

/// An object of JSON, made as text.
class Object {
  public:
    Object& add(std::string_view key, const Json& value) { return raw(key, text_of(value)); }
    Object& add(std::string_view key, auto& column) requires requires { column.take(); }
    { return raw(key, column.take()); }
    Object& raw(std::string_view key, std::string_view json) {
        text_.append(text_.size() > 1 ? ",\"" : "\"").append(key).append("\":");
        add_without_less_than(text_, json);
        return *this;
    }
    /// Members of `json`.
    Object& add_all(const Json& json) {
        for (const auto& [key, value] : json.items()) add(key, value);
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(text_) + "}"; }

  private:
    std::string text_ = "{";
};

/// `[[1,2],[3]]`
std::string listed(std::vector<Column>& columns) {
    Column all;
    for (Column& column : columns) all.raw(column.take());
    return all.take();
}

/// Texts that occur often, each once.
class TextTable {
  public:
    std::size_t number(const std::string& text) {
        const auto [at, is_new] = numbers_.emplace(text, numbers_.size());
        if (is_new) texts_.push_back(base::escaped(text));
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
    void add_cell(Column& column, const space::Configuration& configuration) {
        const space::Value* value = configuration.find(parameter_->name);
        if (value != nullptr && listed_)
            column.add(number(*value));
        else if (value != nullptr && value->is_number())
            column.add(value->as_double());
        else
            column.raw("null");
    }
    [[nodiscard]] Json description() const {
        Json json = {{"name", base::escaped(parameter_->name)},
                     {"domain", base::escaped(space::text(parameter_->domain))}};
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

    [[nodiscard]] std::string make() {
        Object object;
        object.add_all(facts());
        object.raw("trials", trials()).raw("curves", curves()).raw("generations", generations());
        object.raw("lineage", lineage_of_best()).raw("best_steps", best_steps()).raw("decisions", decisions());
        object.raw("rungs", rungs()).raw("attempts", attempts()).add("starts", starts());
        object.add("incidents", incidents()).add("busy", busy()).add("importance", importance());
        Json parameters = Json::array(); // after the trials: columns find values that are in no list
        for (const ParameterColumn& column : columns_) parameters.push_back(column.description());
        object.add("parameters", parameters).add("texts", texts_.take());
        return object.take();
    }

  private:
    Json facts() const {
        const Training& training = view_.training;
        const CostView& cost = view_.cost;
        Json hosts = Json::array();
        for (const HostView& host : view_.hosts) hosts.push_back({base::escaped(host.name), host.ranks, host.gpus});
        Json versions = Json::array();
        for (const std::string& version : view_.versions) versions.push_back(base::escaped(version));
        Json json = {{"name", base::escaped(view_.name)},
                     {"directory", base::escaped(study_.directory)},
                     {"state", base::escaped(study_.state)},
                     {"uuid", view_.uuid},
                     {"metric", base::escaped(view_.metric)},
                     {"mode", study::name(view_.mode)},
                     {"simulated", base::escaped(view_.simulated)},
                     {"searcher", view_.searcher},
                     {"scheduler", view_.scheduler},
                     {"trainable", base::escaped(view_.trainable)},
                     {"num_trials", view_.num_trials},
                     {"max_iterations", view_.max_iterations},
                     {"seed", view_.seed},
                     {"ended", view_.ended},
                     {"end", base::escaped(view_.end)},
                     {"now", hundredths(view_.now_s)},
                     {"as_of", view_.as_of},
                     {"best", view_.best ? Json(view_.best->value()) : Json(nullptr)},
                     {"ranks", view_.ranks},
                     {"hosts", hosts},
                     {"versions", versions},
                     {"progress", progress()},
                     {"training",
                      {{"iterations", training.iterations},
                       {"again", training.again},
                       {"full", training.full},
                       {"seconds", rounded(training.seconds)},
                       {"full_seconds", rounded(training.full_seconds)}}},
                     {"cost",
                      {{"core_hours", rounded(cost.core_hours())},
                       {"gpu_hours", rounded(cost.gpu_s / 3600.0)},
                       {"held", rounded(cost.utilisation())},
                       {"training", rounded(cost.share(cost.training_s))},
                       {"starting", rounded(cost.share(cost.spent_s[static_cast<std::size_t>(Spent::starting)]))}}}};
        if (view_.repeats > 1) {
            json["repeats"] = view_.repeats;
            json["configurations"] =
                Json::array(); // first trial, trials that count, mean and deviation of their values
            for (const tuner::Repetitions& each : view_.configurations)
                json["configurations"].push_back(
                    {each.first.value(), each.counted(), rounded(each.mean), rounded(each.deviation)});
        }
        if (view_.compares_nothing) json["compares_nothing"] = true;
        if (!view_.limits.empty()) json["limits"] = base::escaped(view_.limits);
        if (!view_.nearest.empty()) json["nearest"] = base::escaped(view_.nearest);
        if (!view_.best_mean.empty()) json["best_mean"] = view_.best_mean;
        if (!view_.by_mean.empty()) json["by_mean"] = base::escaped(view_.by_mean);
        if (!view_.other_weights.empty()) json["other_weights"] = base::escaped(view_.other_weights);
        for (const std::string& each : view_.failures) json["failures"].push_back(base::escaped(each));
        if (!view_.others.empty()) add_objectives(json);
        if (view_.best) json["copies"] = copies();
        add_notes(json);
        return json;
    }

    Json progress() const {
        return {{"done", view_.training.iterations + view_.training.again},
                {"expected", view_.expected},
                {"left", view_.left_s ? rounded(*view_.left_s) : Json(nullptr)}};
    }

    /// [trial, tags, notes] of those that have some.
    void add_notes(Json& json) const {
        for (std::size_t i = 0; i < view_.trials.size(); ++i) {
            const TrialView& trial = view_.trials[i];
            if (trial.tags.empty() && trial.notes.empty() && trial.after.empty()) continue;
            Json notes = Json::array();
            if (!trial.after.empty()) notes.push_back(base::escaped("after the trial: " + trial.after));
            for (const std::string& note : trial.notes) notes.push_back(base::escaped(note));
            json["notes"].push_back({i, base::join(trial.tags), std::move(notes)});
        }
    }

    void add_objectives(Json& json) const {
        json["objectives"] = Json::array({goal({view_.metric, view_.mode})});
        for (const study::Goal& each : view_.others) json["objectives"].push_back(goal(each));
        json["front"] = Json::array();
        for (const study::TrialId trial : view_.front) json["front"].push_back(trial.value());
    }

    static Json goal(const study::Goal& of) {
        return {{"metric", base::escaped(of.metric)}, {"mode", study::name(of.mode)}};
    }

    /// The best configuration in the forms in which people take it elsewhere.
    Json copies() const {
        std::string configuration; // a line for each, lists in one line
        for (const auto& entry : view_.trials.at(view_.best->value()).configuration.entries())
            configuration +=
                (configuration.empty() ? "{\n  " : ",\n  ") + copied(entry.name) + ": " + copied(json_of(entry.value));
        const std::string again = command_text({"replay", study_.directory, "--schedule", "best"}) + " > again.toml";
        return {{"toml", base::escaped(view_.again)},
                {"json", configuration.empty() ? "{}" : configuration + "\n}"},
                {"command", base::escaped(view_.command.empty() ? again : view_.command)}};
    }

    std::string trials() {
        Column phase, why, message, iterations, best, best_iteration, last, seconds, attempts, ranks, bracket, origin;
        Differences created;
        std::vector<Column> values(columns_.size());
        for (const TrialView& trial : view_.trials) {
            phase.add(static_cast<int>(trial.phase));
            why.add(texts_.number(trial.why));
            message.add(texts_.number(trial.message));
            iterations.add(trial.iterations);
            best.add_all_digits(trial.best);
            best_iteration.add(trial.best_iteration);
            last.add(trial.last);
            seconds.add(trial.seconds);
            attempts.add(trial.attempts);
            ranks.add(trial.ranks);
            bracket.add(trial.bracket);
            origin.add(texts_.number(std::string(study::name(trial.origin.kind))));
            created.add(hundredths(trial.created_s));
            for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].add_cell(values[i], trial.configuration);
        }
        Object all;
        all.add("phase", phase).add("why", why).add("message", message).add("iterations", iterations);
        all.add("best", best).add("best_iteration", best_iteration).add("last", last).add("seconds", seconds);
        all.add("attempts", attempts).add("ranks", ranks).add("bracket", bracket).add("origin", origin);
        all.add("created", created).raw("values", listed(values));
        if (!view_.others.empty()) all.raw("others", others_columns());
        return all.take();
    }

    /// The further objectives, a column for each.
    std::string others_columns() const {
        std::vector<Column> columns(view_.others.size());
        for (const TrialView& trial : view_.trials)
            for (std::size_t k = 0; k < columns.size(); ++k)
                columns[k].add(k < trial.others.size() ? trial.others[k] : std::nan(""));
        return listed(columns);
    }

    /// Points of all curves one after the other, and how many each trial has.
    std::string curves() const {
        std::size_t all = 0;
        for (const TrialView& trial : view_.trials) all += trial.curve.size();
        const std::size_t most = std::max<std::size_t>(
            3,
            all <= limits_.curve_points ? all : limits_.curve_points / std::max<std::size_t>(1, view_.trials.size()));
        Column count;
        Column value;
        Differences iteration;
        Differences at;
        for (const TrialView& trial : view_.trials) {
            const auto kept = thinned(trial.curve, most, view_.mode);
            count.add(kept.size());
            iteration.restart();
            at.restart();
            for (const std::size_t position : kept) {
                const CurvePoint& point = trial.curve[position];
                value.add(point.value);
                iteration.add(static_cast<std::int64_t>(point.iteration));
                at.add(hundredths(point.at_s));
            }
        }
        Object object;
        object.add("reports", Json(all)).add("thinned", Json(all > limits_.curve_points)).add("count", count);
        return object.add("value", value).add("iteration", iteration).add("at", at).take();
    }

    /// The configurations of trials that took over a state. Other trials have one configuration, listed in `trials`.
    std::string generations() {
        Column trial, from, donor, donor_iteration;
        std::vector<Column> values(columns_.size());
        for (std::size_t t = 0; t < view_.trials.size(); ++t) {
            if (view_.trials[t].generations.size() < 2) continue;
            for (const GenerationView& each : view_.trials[t].generations) {
                trial.add(t);
                from.add(each.from);
                donor.add(each.donor ? Json(each.donor->value()) : Json(nullptr));
                donor_iteration.add(each.donor_iteration);
                for (std::size_t i = 0; i < columns_.size(); ++i) columns_[i].add_cell(values[i], each.configuration);
            }
        }
        Object all;
        all.add("trial", trial).add("from", from).add("donor", donor).add("donor_iteration", donor_iteration);
        return all.raw("values", listed(values)).take();
    }

    /// How the weights of the best result were trained, where trials took over states.
    std::string lineage_of_best() {
        Column all;
        for (const StretchView& stretch : view_.lineage) {
            Column values;
            for (ParameterColumn& column : columns_) column.add_cell(values, stretch.configuration);
            Object one;
            one.add("trial", Json(stretch.trial.value())).add("from", Json(stretch.from)).add("to", Json(stretch.to));
            all.raw(one.add("values", values).take());
        }
        return all.take();
    }

    std::string best_steps() const {
        Differences at;
        Differences iterations;
        Column trial;
        Column value;
        for (const BestStep& step : view_.best_steps) {
            at.add(hundredths(step.at_s));
            iterations.add(static_cast<std::int64_t>(step.iterations));
            trial.add(step.trial.value());
            value.add(step.value);
        }
        Object all;
        return all.add("at", at).add("iterations", iterations).add("trial", trial).add("value", value).take();
    }

    std::string decisions() {
        const std::size_t all = view_.decisions.size();
        Column trial, iteration, why;
        Differences at;
        for (std::size_t i = all - std::min(all, limits_.decisions); i < all; ++i) {
            const Decision& decision = view_.decisions[i];
            trial.add(decision.trial.value());
            iteration.add(decision.iteration);
            why.add(texts_.number(study::describe(decision.reason, decision.a, decision.b)));
            at.add(hundredths(decision.at_s));
        }
        Object object;
        object.add("all", Json(all)).add("trial", trial).add("iteration", iteration).add("at", at).add("why", why);
        return object.take();
    }

    std::string rungs() const {
        Column all;
        for (const RungView& rung : view_.rungs) {
            Column trial, value, went_on;
            for (const RungView::Entry& entry : rung.entries) {
                trial.add(entry.trial.value());
                value.add(entry.value);
                went_on.add(entry.went_on ? 1 : 0);
            }
            Object one;
            one.add("bracket", Json(rung.bracket)).add("iteration", Json(rung.iteration));
            all.raw(one.add("trial", trial).add("value", value).add("on", went_on).take());
        }
        return all.take();
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

    std::string attempts() {
        Column trial, number, length, outcome, message, ranks, from, whose;
        Differences begin;
        for (const std::size_t i : shown_attempts()) {
            const AttemptView& attempt = view_.attempts[i];
            trial.add(attempt.trial.value());
            number.add(attempt.attempt);
            from.add(attempt.from);
            whose.add(attempt.whose.value());
            begin.add(hundredths(attempt.begin_s));
            length.add(hundredths(attempt.end_s) - hundredths(attempt.begin_s));
            outcome.add(texts_.number(attempt.outcome ? std::string(study::name(*attempt.outcome))
                                      : attempt.runs  ? "running"
                                                      : "interrupted"));
            message.add(texts_.number(attempt.message));
            ranks.raw(rank_ranges(attempt.ranks));
        }
        Object all;
        all.add("all", Json(view_.attempts.size())).add("trial", trial).add("number", number).add("from", from);
        all.add("whose", whose).add("begin", begin).add("length", length).add("outcome", outcome);
        return all.add("message", message).add("ranks", ranks).take();
    }

    /// First rank and number of ranks, for each run of neighbours.
    static std::string rank_ranges(const std::vector<study::Rank>& ranks) {
        Column ranges;
        for (std::size_t i = 0; i < ranks.size();) {
            std::size_t end = i + 1;
            while (end < ranks.size() && ranks[end].value() == ranks[end - 1].value() + 1) ++end;
            ranges.add(ranks[i].value());
            ranges.add(end - i);
            i = end;
        }
        return ranges.take();
    }

    Json starts() const {
        Json all = Json::array();
        for (std::size_t i = 0; i < view_.starts.size(); ++i) {
            const StartOfHead& start = view_.starts[i];
            all.push_back({{"at", hundredths(start.at_s)},
                           {"end", hundredths(start.end_s)},
                           {"time", base::escaped(start.wall_time)},
                           {"ranks", start.ranks}});
            const auto known = std::ranges::find(study_.surroundings, i + 1, &Surroundings::start);
            if (known == study_.surroundings.end()) continue;
            all.back()["host"] = base::escaped(known->host);
            all.back()["job"] = base::escaped(known->job);
            all.back()["software"] = base::escaped(known->software);
            all.back()["code"] = base::escaped(known->code);
        }
        return all;
    }

    Json incidents() const {
        Json all = Json::array();
        for (const Incident& incident : view_.incidents)
            all.push_back({{"at", hundredths(incident.at_s)}, {"text", base::escaped(incident.text)}});
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
            all.push_back({base::escaped(each.parameter), each.share ? rounded(*each.share) : Json(nullptr)});
        return all;
    }

    const PageStudy& study_;
    const StudyView& view_;
    const PageLimits& limits_;
    std::vector<ParameterColumn> columns_;
    TextTable texts_;
};

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
    Column all;
    for (const PageStudy& study : studies) all.raw(StudyJson(study, limits).make());
    Object page;
    page.add("schema", Json(1)).add("made", Json(made)).add("phases", phases).add("studies", all);
    return page.take();
}

} // namespace ranktune::report
