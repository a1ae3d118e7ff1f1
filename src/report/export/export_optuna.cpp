// SPDX-License-Identifier: Apache-2.0
// Operations: optuna/storages/_journal/storage.py; distributions: optuna/distributions.py, of Optuna 3.1.
#include "report/export/export.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ranktune/base/utf8.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::report {
namespace {

using Json = nlohmann::ordered_json;
using study::TrialPhase;
using tuner::Trial;

enum Operation : int {
    create_study = 0,
    set_study_attribute = 2,
    create_trial = 4,
    set_parameter = 5,
    set_state = 6,
    set_intermediate = 7,
    set_attribute = 8
};
enum OptunaState : int { running = 0, complete = 1, pruned = 2, fail = 3 };

/// A number as Python's json writes and reads it: JSON has no NaN.
std::string python_number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return Json(value).dump();
}

/// "2026-11-20T14:02:11.250000", local to nobody: UTC, without a zone, as Optuna compares times without zones.
std::string optuna_time(double unix_seconds) {
    std::string text = wall_time_text(std::floor(unix_seconds));
    text.pop_back(); // Z
    return text + fmt::format(".{:06d}", static_cast<int>((unix_seconds - std::floor(unix_seconds)) * 1e6));
}

/// A value that Optuna's categorical distribution can hold.
Json category(const space::Value& value) {
    return value.is_list() ? Json(base::as_utf8(value.text())) : json_of(value);
}

/// How one parameter is told to Optuna.
class OptunaParameter {
  public:
    explicit OptunaParameter(const space::Parameter& parameter) : name_(parameter.name), domain_(&parameter.domain) {
        if (const auto* choice = std::get_if<space::Choice>(domain_)) values_ = choice->values;
        if (const auto* grid = std::get_if<space::Grid>(domain_)) values_ = grid->values;
        const auto* floats = std::get_if<space::FloatRange>(domain_);
        if (floats != nullptr && floats->quantum == 0.0) {
            widen(floats->lower);
            widen(floats->upper);
        } else if (floats != nullptr || std::holds_alternative<space::IntRange>(*domain_)) {
            // Optuna counts steps from the lower bound, which is therefore the least value.
            widen(space::value_at(*domain_, 0).as_double());
            widen(space::value_at(*domain_, *space::cardinality(*domain_) - 1).as_double());
        }
    }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] bool is_constant() const { return std::holds_alternative<space::Constant>(*domain_); }

    /// Makes room for a value that the trials have: takeovers may leave the domain, a normal has no bounds.
    void hold(const space::Value& value) {
        if (is_categorical()) {
            if (std::ranges::find(values_, value) == values_.end()) values_.push_back(value);
        } else if (value.is_number()) {
            widen(value.as_double());
        }
    }
    [[nodiscard]] Json internal(const space::Value& value) const {
        if (!is_categorical()) return value.is_number() ? json_of(value) : Json(nullptr);
        return std::ranges::find(values_, value) - values_.begin();
    }
    /// JSON in a string, as Optuna stores it.
    [[nodiscard]] std::string distribution() const {
        Json attributes;
        if (is_categorical()) {
            attributes["choices"] = Json::array();
            for (const space::Value& value : values_) attributes["choices"].push_back(category(value));
            return Json{{"name", "CategoricalDistribution"}, {"attributes", attributes}}.dump(
                -1, ' ', false, Json::error_handler_t::replace);
        }
        if (const auto* ints = std::get_if<space::IntRange>(domain_)) {
            attributes = {{"log", ints->log},
                          {"step", ints->log ? std::int64_t{1} : ints->quantum}, // Optuna has no steps on a log scale
                          {"low", static_cast<std::int64_t>(low_)},
                          {"high", static_cast<std::int64_t>(high_)}};
            return Json{{"name", "IntDistribution"}, {"attributes", attributes}}.dump();
        }
        const auto* floats = std::get_if<space::FloatRange>(domain_);
        const bool log = floats != nullptr && floats->log;
        const bool stepped = floats != nullptr && floats->quantum > 0.0 && !log;
        attributes = {
            {"step", stepped ? Json(floats->quantum) : Json(nullptr)}, {"low", low_}, {"high", high_}, {"log", log}};
        return Json{{"name", "FloatDistribution"}, {"attributes", attributes}}.dump();
    }

  private:
    [[nodiscard]] bool is_categorical() const {
        return std::holds_alternative<space::Choice>(*domain_) || std::holds_alternative<space::Grid>(*domain_);
    }
    void widen(double value) {
        low_ = empty_ ? value : std::min(low_, value);
        high_ = empty_ ? value : std::max(high_, value);
        empty_ = false;
    }

    std::string name_;
    const space::Domain* domain_;
    std::vector<space::Value> values_;
    double low_ = 0.0;
    double high_ = 0.0;
    bool empty_ = true;
};

class OptunaWriter {
  public:
    OptunaWriter(const LoadedStudy& study, const History& history, std::ostream& out)
        : tuner_(*study.tuner), history_(history), out_(out), worker_("ranktune-" + tuner_.state().uuid) {
        for (const auto& parameter : tuner_.spec().space.parameters()) parameters_.emplace_back(parameter);
        const auto& trials = tuner_.state().trials;
        for (std::uint32_t i = 0; i < trials.size(); ++i)
            for (OptunaParameter& parameter : parameters_)
                if (const auto* value = tuner::best_configuration(trials[i]).find(parameter.name()))
                    parameter.hold(*value);
    }

    void write_study() {
        const auto& objective = tuner_.spec().objective;
        Json directions = Json::array();
        Json metrics = Json::array();
        for (const study::Goal& goal : objective.goals()) {
            directions.push_back(goal.mode == study::Mode::min ? 1 : 2);
            metrics.push_back(base::as_utf8(goal.metric));
        }
        write(create_study, {{"study_name", base::as_utf8(tuner_.spec().name)}, {"directions", directions}});
        write(set_study_attribute,
              {{"study_id", 0}, {"user_attr", {{"ranktune_metric", objective.several() ? metrics : metrics[0]}}}});
        write(set_study_attribute, {{"study_id", 0}, {"user_attr", {{"ranktune_uuid", tuner_.state().uuid}}}});
    }

    void write_trial(study::TrialId id) {
        const Trial& trial = tuner_.state().trial(id);
        write(create_trial,
              {{"study_id", 0},
               {"datetime_start", time_of(trial.attempt.id.value() > 0 ? trial.started : trial.created)}});
        const auto& configuration = tuner::best_configuration(trial);
        for (const OptunaParameter& parameter : parameters_) {
            const auto* value = configuration.find(parameter.name());
            if (value == nullptr) continue; // switched off by a condition
            if (parameter.is_constant()) {
                write_attribute(id, parameter.name(), category(*value));
                continue;
            }
            write(set_parameter, {{"trial_id", id.value()},
                                  {"param_name", base::as_utf8(parameter.name())},
                                  {"param_value_internal", parameter.internal(*value)},
                                  {"distribution", parameter.distribution()}});
        }
    }

    void write_report(study::TrialId id, study::Iteration iteration, double value) {
        // By hand for the sake of NaN.
        out_ << fmt::format(
                    R"({{"op_code": {}, "worker_id": "{}", "trial_id": {}, "step": {}, "intermediate_value": {}}})",
                    static_cast<int>(set_intermediate), worker_, id.value(), iteration, python_number(value))
             << "\n";
    }

    void write_end(study::TrialId id) {
        const Trial& trial = tuner_.state().trial(id);
        const OptunaState state = state_of(trial);
        if (state == running) return;
        const bool closed = study::is_final(trial.phase);
        Json values = Json::array({trial.best});
        for (const double value : trial.others) values.push_back(value);
        if (closed) write_attribute(id, "reason", study::describe(trial.closed_by, trial.closed_a, trial.closed_b));
        if (!trial.failure.empty()) write_attribute(id, "message", base::as_utf8(study::describe(trial.failure)));
        write(set_state, {{"trial_id", id.value()},
                          {"state", static_cast<int>(state)},
                          {"values", state == fail ? Json(nullptr) : values},
                          {"datetime_complete", time_of(closed ? trial.ended : trial.attempt.since)}});
    }

  private:
    [[nodiscard]] OptunaState state_of(const Trial& trial) const {
        const bool over = tuner::is_over(tuner_.state()) && trial.phase == TrialPhase::paused;
        if (!study::is_final(trial.phase) && !over) return running;
        if (trial.phase == TrialPhase::failed || !trial.reported || !std::isfinite(trial.best)) return fail;
        return trial.phase == TrialPhase::finished ? complete : pruned;
    }
    [[nodiscard]] std::string time_of(study::StudyTime at) const {
        return optuna_time(unix_at(history_.starts(), base::to_seconds(at)));
    }
    void write_attribute(study::TrialId id, const std::string& name, Json value) {
        write(set_attribute, {{"trial_id", id.value()}, {"user_attr", {{base::as_utf8(name), std::move(value)}}}});
    }
    void write(Operation operation, const Json& fields) {
        Json line = {{"op_code", static_cast<int>(operation)}, {"worker_id", worker_}};
        line.update(fields);
        out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    }

    const tuner::Tuner& tuner_;
    const History& history_;
    std::ostream& out_;
    std::string worker_;
    std::vector<OptunaParameter> parameters_;
};

} // namespace

void export_optuna(const LoadedStudy& study, const History& history, const EachReport& each_report, std::ostream& out) {
    const tuner::State& state = study.tuner->state();
    const auto objective =
        std::ranges::find(state.metrics, study.tuner->spec().objective.metric) - state.metrics.begin();
    OptunaWriter writer(study, history, out);
    writer.write_study();
    const auto count = static_cast<std::uint32_t>(state.trials.size());
    for (std::uint32_t i = 0; i < count; ++i) writer.write_trial(study::TrialId{i});
    if (study.tuner->spec().objective.several()) { // Optuna has intermediate values only with one objective
        for (std::uint32_t i = 0; i < count; ++i) writer.write_end(study::TrialId{i});
        return;
    }
    each_report([&](const study::Reported& report) {
        for (const auto& metric : report.metrics)
            if (std::cmp_equal(metric.id.value(), objective))
                writer.write_report(report.trial, report.iteration, metric.value);
    });
    for (std::uint32_t i = 0; i < count; ++i) writer.write_end(study::TrialId{i});
}

} // namespace ranktune::report
