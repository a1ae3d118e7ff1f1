// SPDX-License-Identifier: Apache-2.0
#include "head/external/protocol.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "process/program/json_input.hpp"
#include "process/program/json_value.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "space/foreign_value.hpp"

namespace ranktune::head {
namespace {

using Json = nlohmann::ordered_json;
using searchers::Observation;

std::string as_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

using process::json_of;

Json json_of(const std::vector<space::Value>& values) { return json_of(space::Value(values)); }

/// The smallest and the largest value of a range with a quantum.
void put_bounds(const space::Domain& domain, Json& out) {
    out["low"] = json_of(space::value_at(domain, 0));
    out["high"] = json_of(space::value_at(domain, *space::cardinality(domain) - 1));
}

struct DomainWriter {
    const space::Domain& domain;
    Json& out;

    void operator()(const space::FloatRange& range) const {
        out["type"] = "float";
        out["low"] = range.lower;
        out["high"] = range.upper;
        if (range.quantum > 0.0) put_bounds(domain, out);
        out["log"] = range.log;
        if (range.quantum > 0.0) out["step"] = range.quantum;
    }
    void operator()(const space::IntRange& range) const {
        out["type"] = "int";
        put_bounds(domain, out);
        out["log"] = range.log;
        out["step"] = range.quantum;
    }
    void operator()(const space::Normal& normal) const {
        out["type"] = "normal";
        out["mean"] = normal.mean;
        out["sd"] = normal.sd;
        if (normal.quantum > 0.0) out["step"] = normal.quantum;
    }
    void operator()(const space::Choice& choice) const {
        out["type"] = "choice";
        out["values"] = json_of(choice.values);
        out["ordered"] = choice.ordered;
    }
    void operator()(const space::Grid& grid) const {
        out["type"] = "grid";
        out["values"] = json_of(grid.values);
    }
    void operator()(const space::Constant& constant) const {
        out["type"] = "constant";
        out["value"] = json_of(constant.value);
    }
};

Json json_of(const space::Configuration& configuration) {
    Json json = Json::object();
    for (const auto& [name, value] : configuration.entries()) json[name] = json_of(value);
    return json;
}

/// In the direction of the metric; null: not finite, or none.
Json value_of(double score, study::Mode mode) {
    if (!std::isfinite(score)) return nullptr;
    return mode == study::Mode::max ? score : -score;
}

/// `value`: the first objective, null where a constraint is violated. With several objectives or constraints also
/// `values`, all objectives as reported; with constraints `violation`.
void put_score(const study::Score& score, const study::Objective& objective, Json& tell) {
    tell["value"] = value_of(score.rank(), objective.mode);
    if (!objective.several() && objective.constraints.empty()) return;
    const std::vector<study::Goal> goals = objective.goals();
    const bool has_values = score.values().size() == goals.size();
    tell["values"] = Json::array();
    for (std::size_t i = 0; i < goals.size(); ++i)
        tell["values"].push_back(has_values ? value_of(score.values()[i], goals[i].mode) : Json(nullptr));
    if (objective.constraints.empty()) return;
    const bool known = has_values && std::isfinite(score.violation);
    tell["violation"] = known ? Json(score.violation) : Json(nullptr);
}

// ---- answers

/// At most 200 bytes of what the program wrote.
std::string beginning_of(std::string_view text) {
    constexpr std::size_t most = 200;
    if (text.size() <= most) return std::string(text);
    return std::string(text.substr(0, most)) + " ...";
}

space::Value value_from(const Json& json) {
    if (json.is_null()) return space::Value::none();
    if (json.is_boolean()) return json.get<bool>();
    if (json.is_number_integer()) {
        if (json.is_number_unsigned() &&
            json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return json.get<double>();
        return json.get<std::int64_t>();
    }
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) return json.get<std::string>();
    if (!json.is_array()) throw base::FormatError("is " + beginning_of(json.dump()) + ", which is no value");
    space::Value::List list;
    for (const Json& item : json) list.push_back(value_from(item));
    return list;
}

Json json_in(std::string_view line) {
    try {
        return process::read_json(line);
    } catch (const base::FormatError& error) {
        throw base::FormatError(std::string("wrote a line in which ") + error.what());
    }
}

const Json& member(const Json& object, const char* key, std::string_view line) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end())
        throw base::FormatError("wrote '" + beginning_of(line) + R"(', where {"ask": N, "config": {...}} is expected)");
    return *found;
}

/// "; it has 'lrr', which is no hyper-parameter of [space]": other names are ignored, but one of them may be meant.
std::string name_misspelt(const std::string& wanted, const Json& config, const space::SearchSpace& space) {
    std::vector<std::string> others;
    for (const auto& [name, value] : config.items())
        if (space.find(name) == nullptr) others.push_back(name);
    const std::string_view found = base::nearest(wanted, others);
    return found.empty() ? "" : "; it has '" + beginning_of(found) + "', which is no hyper-parameter of [space]";
}

/// The value of a parameter that the answer leaves out.
space::Value value_left_out(const space::Parameter& parameter, const space::Configuration& standard, const Json& config,
                            const space::SearchSpace& space) {
    if (space::has_coordinate(parameter.domain))
        throw base::FormatError("gives no value for '" + parameter.name + "'" +
                                name_misspelt(parameter.name, config, space));
    if (const space::Value* value = standard.find(parameter.name)) return *value;
    return space::decode(parameter.domain, 0.5);
}

} // namespace

std::string study_line(const searchers::ExternalSetting& setting) {
    Json study = Json::object();
    study["name"] = setting.study;
    study["seed"] = setting.seed;
    study["metric"] = setting.objective.metric;
    study["mode"] = study::name(setting.objective.mode);
    study["objectives"] = Json::array();
    for (const study::Goal& goal : setting.objective.goals())
        study["objectives"].push_back({{"metric", goal.metric}, {"mode", study::name(goal.mode)}});
    study["num_trials"] = setting.num_trials;
    study["max_iterations"] = setting.max_iterations;
    study["space"] = Json::array();
    for (const space::Parameter& parameter : setting.space.parameters()) {
        Json one = Json::object();
        one["name"] = parameter.name;
        std::visit(DomainWriter{parameter.domain, one}, parameter.domain);
        if (parameter.condition) one["when"] = parameter.condition->text();
        study["space"].push_back(std::move(one));
    }
    for (const space::Rule& rule : setting.space.rules())
        study[rule.forbids ? "forbid" : "require"].push_back(rule.condition.text());
    Json line = Json::object();
    line["protocol"] = 1;
    line["study"] = std::move(study);
    return as_line(line);
}

std::string Teller::next(const searchers::ExternalQuestion& question, std::size_t line) {
    const Observation& seen = question.seen[line];
    const std::size_t trial = seen.trial.value();
    if (trial >= last_.size()) last_.resize(trial + 1);
    Json tell = Json::object();
    tell["trial"] = trial;
    switch (seen.kind) {
        case Observation::Kind::asked:
            tell["state"] = "running";
            if (const auto& ticket = question.trials[trial].ticket) tell["ask"] = *ticket;
            tell["config"] = json_of(question.configuration_at(line));
            return as_line(Json{{"tell", std::move(tell)}});
        case Observation::Kind::reported:
            tell["state"] = "reported";
            last_[trial] = seen.score;
            break;
        case Observation::Kind::paused:
            tell["state"] = "paused";
            break;
        case Observation::Kind::over:
            tell["state"] = study::name(seen.phase);
            break;
    }
    tell["iteration"] = seen.iteration;
    put_score(last_[trial], question.setting->objective, tell);
    return as_line(Json{{"tell", std::move(tell)}});
}

std::string ask_line(std::uint64_t ticket) { return as_line(Json{{"ask", ticket}}); }

space::Configuration read_answer(std::string_view line, std::uint64_t ticket, const space::SearchSpace& space) {
    const Json answer = json_in(line);
    const Json& number = member(answer, "ask", line);
    const Json& config = member(answer, "config", line);
    if (!number.is_number_integer() || number != ticket)
        throw base::FormatError("answers ask " + beginning_of(number.dump()) + ", where ask " + std::to_string(ticket) +
                                " was to be answered");
    if (!config.is_object()) throw base::FormatError("has a \"config\" that is no object");
    const space::Configuration standard =
        space.decode(std::vector<double>(space.dimensions(), 0.5), ticket); // for grids and constants
    space::Configuration answered = space.assemble([&](std::size_t i) -> space::Value {
        const space::Parameter& parameter = space.parameters()[i];
        const auto given = config.find(parameter.name);
        if (given == config.end()) return value_left_out(parameter, standard, config, space);
        space::Value value = space::as_meant(parameter.domain, value_from(*given));
        if (!space::contains(parameter.domain, value))
            throw base::FormatError("suggests " + parameter.name + " = " + beginning_of(value.literal()) +
                                    ", which is no value of " + space::text(parameter.domain));
        return value;
    });
    if (const space::Rule* broken = space.broken_by(answered))
        throw base::FormatError("suggests " + answered.text() + ", which breaks " + broken->text());
    return answered;
}

} // namespace ranktune::head
