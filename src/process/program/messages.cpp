// SPDX-License-Identifier: Apache-2.0
#include "process/program/messages.hpp"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "process/program/json_input.hpp"
#include "process/program/json_value.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::process {
namespace {

using Json = nlohmann::ordered_json;

/// The printable beginning of a line, for error messages.
std::string shown(std::string_view line) {
    constexpr std::size_t longest = 80;
    return "'" + base::printable(line.substr(0, longest)) + (line.size() > longest ? "...'" : "'");
}

/// Of a ProgramReport or a ProgramResult.
void take_value(const std::string& name, const Json& value, auto& report) {
    const auto number = [&](double metric) { report.metrics.emplace_back(name, metric); };
    if (value.is_number()) return number(value.get<double>());
    if (value.is_boolean()) return number(value.get<bool>() ? 1.0 : 0.0);
    if (value.is_null()) return number(std::numeric_limits<double>::quiet_NaN());
    if (!value.is_string())
        throw base::FormatError("the metric '" + name +
                                "' of a report is neither a number, a boolean nor a text: " + shown(value.dump()));
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return number(std::numeric_limits<double>::quiet_NaN());
    if (text == "Infinity") return number(std::numeric_limits<double>::infinity());
    if (text == "-Infinity") return number(-std::numeric_limits<double>::infinity());
    report.texts.emplace_back(name, text);
}

std::string text_of(const Json& value, const char* what) {
    if (value.is_string()) return value.get<std::string>();
    throw base::FormatError(std::string("'") + what + "' is not a string: " + shown(value.dump()));
}

std::uint64_t number_of(const Json& value, const char* what) {
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    throw base::FormatError(std::string("'") + what + "' is not a number from 0: " + shown(value.dump()));
}

void take_values(const Json& message, const char* key, auto& report) {
    const Json& values = message[key];
    if (!values.is_object())
        throw base::FormatError("'" + std::string(key) + "' is not an object: " + shown(values.dump()));
    for (const auto& [name, value] : values.items()) take_value(name, value, report);
}

ProgramReport parse_report(const Json& message, std::vector<std::string>& unknown) {
    ProgramReport report;
    for (const auto& [key, value] : message.items()) {
        if (key == "report") {
            take_values(message, "report", report);
        } else if (key == "checkpoint") {
            if (!value.is_null()) report.checkpoint = text_of(value, "checkpoint");
        } else if (key == "pending") {
            report.pending = number_of(value, "pending");
        } else if (key == "can_save") {
            report.can_save = value.is_boolean() && value.get<bool>();
        } else if (key == "can_go_on") {
            report.can_go_on = value.is_boolean() && value.get<bool>();
        } else if (key == "exploits") {
            report.exploits = value.is_boolean() && value.get<bool>();
        } else if (key == "iteration") {
            if (value.is_number_unsigned()) report.iteration = value.get<base::Iteration>();
        } else {
            unknown.push_back(key);
        }
    }
    return report;
}

ProgramPredicted parse_predicted(const Json& message, std::string_view line) {
    ProgramPredicted predicted{.batch = number_of(message["predicted"], "predicted"), .type = {}, .shape = {}};
    if (!message.contains("dtype") || !message.contains("shape") || !message["shape"].is_array())
        throw base::FormatError("predictions without 'dtype' and 'shape', a list: " + shown(line));
    predicted.type = text_of(message["dtype"], "dtype");
    for (const Json& extent : message["shape"]) predicted.shape.push_back(number_of(extent, "shape"));
    predicted.classifies = message.contains("class") && message["class"] == true;
    return predicted;
}

constexpr std::string_view known_keys[] = {
    "result",          "task",  "attempt",   "ready", "checkpoint", "log",  "failed",
    "checkpoint_done", "error", "predicted", "dtype", "shape",      "class"};

void add_nested(Json& at, std::string_view name, const Json& value) {
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) {
        at[std::string(name)] = value;
        return;
    }
    Json& inner = at[std::string(name.substr(0, dot))];
    if (!inner.is_object()) inner = Json::object();
    add_nested(inner, name.substr(dot + 1), value);
}

using process::json_of; // of a value

Json json_of(const space::Configuration& configuration) {
    Json json = Json::object();
    for (const auto& [name, value] : configuration.entries()) add_nested(json, name, json_of(value));
    return json;
}

/// Replaces invalid UTF-8 instead of throwing.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A message with this integer.
Json from_interpreter(std::string_view line, const char* key) {
    Json message = Json::parse(line, nullptr, false);
    if (!message.is_object() || !message.contains(key) || !message[key].is_number_integer())
        throw base::FormatError("the interpreter of the function sent " + shown(line) +
                                ", which is no message of ranktune");
    return message;
}

/// Returns a discarded value for a line that is not JSON.
Json read_line(std::string_view line) try {
    return read_json(quote_non_finite(line));
} catch (const base::FormatError& error) {
    throw base::FormatError("a line in which " + std::string(error.what()) +
                            " (send one number for each metric, and texts as strings): " + shown(line));
}

} // namespace

std::string quote_non_finite(std::string_view line) {
    constexpr std::string_view words[] = {"-Infinity", "Infinity", "NaN"};
    std::string out;
    bool in_string = false;
    for (std::size_t at = 0; at < line.size();) {
        const char c = line[at];
        if (in_string && c == '\\' && at + 1 < line.size()) {
            out += line.substr(at, 2);
            at += 2;
            continue;
        }
        if (c == '"') in_string = !in_string;
        const auto* word =
            in_string ? std::end(words)
                      : std::ranges::find_if(words, [&](std::string_view w) { return line.substr(at).starts_with(w); });
        if (word != std::end(words)) {
            (out += '"') += *word;
            out += '"';
            at += word->size();
        } else {
            out += c;
            ++at;
        }
    }
    return out;
}

ProgramReport values_on_last_line(std::string_view line) {
    ProgramReport report;
    if (!line.starts_with('{') || !line.ends_with('}')) return report;
    const Json values = Json::parse(quote_non_finite(line), nullptr, false);
    if (!values.is_object()) return report; // `{done}`: it was not meant
    for (const auto& [name, value] : values.items())
        if (value.is_primitive()) take_value(name, value, report);
    return report;
}

ProgramMessage parse_program_message(std::string_view line, std::vector<std::string>& unknown) {
    const Json message = read_line(line);
    if (!message.is_object()) throw base::FormatError("a line that is no message: " + shown(line));
    if (message.contains("report")) return parse_report(message, unknown);
    for (const auto& [key, value] : message.items())
        if (std::ranges::find(known_keys, key) == std::end(known_keys)) unknown.push_back(key);
    if (message.contains("result")) {
        ProgramResult result;
        take_values(message, "result", result);
        if (!message.contains("task") || !message.contains("attempt"))
            throw base::FormatError("a result without 'task' and 'attempt', as the message of the task has them: " +
                                    shown(line));
        result.task = number_of(message["task"], "task");
        result.attempt = number_of(message["attempt"], "attempt");
        return result;
    }
    if (message.contains("predicted")) return parse_predicted(message, line);
    if (message.contains("ready")) return ProgramReady{};
    if (message.contains("checkpoint_done"))
        return ProgramDone{number_of(message["checkpoint_done"], "checkpoint_done"),
                           message.contains("error") ? text_of(message["error"], "error") : std::string()};
    if (message.contains("checkpoint")) return ProgramSaved{text_of(message["checkpoint"], "checkpoint")};
    const auto log = [&] {
        const Json& text = message["log"];
        return text.is_string() ? text.get<std::string>() : text_of(text);
    };
    if (message.contains("failed")) {
        using What = ProgramFailed::What;
        const std::string what = text_of(message["failed"], "failed");
        return ProgramFailed{what == "device-memory" ? What::device_memory
                             : what == "saving"      ? What::saving
                             : what == "storage"     ? What::storage
                                                     : What::error,
                             message.contains("log") ? log() : std::string()};
    }
    if (message.contains("log")) return ProgramLog{log()};
    throw base::FormatError(
        "a message without 'report', 'result', 'predicted', 'checkpoint', 'checkpoint_done', 'failed' or 'log': " +
        shown(line));
}

std::string decision_line(study::Verb verb, base::Iteration iteration, const std::optional<std::string>& save_to) {
    Json line;
    line["decision"] = verb == study::Verb::go_on ? "continue" : verb == study::Verb::pause ? "pause" : "stop";
    line["iteration"] = iteration;
    if (save_to) line["save_to"] = *save_to;
    return text_of(line) + "\n";
}

std::string exploit_line(base::Iteration iteration, base::AttemptId attempt, const std::string& checkpoint,
                         const space::Configuration& configuration) {
    Json line;
    line["decision"] = "exploit";
    line["iteration"] = iteration;
    line["attempt"] = attempt.value();
    line["checkpoint"] = checkpoint;
    line["config"] = json_of(configuration);
    return text_of(line) + "\n";
}

std::string task_line(base::TrialId trial, base::AttemptId attempt, std::uint64_t seed,
                      const space::Configuration& configuration) {
    Json line;
    line["task"] = trial.value();
    line["attempt"] = attempt.value();
    line["seed"] = seed;
    line["config"] = json_of(configuration);
    return text_of(line) + "\n";
}

std::string batch_line(const ProgramBatch& batch) {
    Json columns = Json::array();
    for (const ProgramBatch::Column& column : batch.columns)
        columns.push_back(
            {{"name", column.name}, {"dtype", column.type}, {"shape", column.shape}, {"offset", column.offset}});
    const Json line{{"batch", batch.number}, {"memory", batch.memory}, {"first", batch.first},
                    {"rows", batch.rows},    {"columns", columns},     {"y", batch.y_offset}};
    return text_of(line) + "\n";
}

std::string start_request(const std::vector<std::string>& environment, const std::string& directory) {
    // Each byte as a code point: JSON has no other text than UTF-8, the environment may have any.
    const auto in_json = [](std::string_view bytes) {
        std::string text;
        for (const char c : bytes) {
            const auto byte = static_cast<unsigned char>(c);
            if (byte < 0x80) {
                text += c;
            } else {
                text += static_cast<char>(0xC0U | byte >> 6U);
                text += static_cast<char>(0x80U | (byte & 0x3FU));
            }
        }
        return text;
    };
    Json variables = Json::object();
    for (const std::string& entry : environment) {
        const auto equals = entry.find('=');
        if (equals != std::string::npos)
            variables[in_json(std::string_view(entry).substr(0, equals))] = in_json(entry.substr(equals + 1));
    }
    return Json{{"environment", variables}, {"directory", in_json(directory)}}.dump() + "\n";
}

Started parse_started(std::string_view line) {
    const Json answer = from_interpreter(line, "pid");
    return {answer["pid"].get<std::int64_t>(), answer.value("error", std::string())};
}

Returned parse_returned(std::string_view line) {
    const Json answer = from_interpreter(line, "returned");
    return {answer["returned"].get<int>(), answer.value("ends", false)};
}

bool is_ready_message(std::string_view line) {
    const Json message = Json::parse(line, nullptr, false);
    return message.is_object() && message.value("ready", false);
}

std::string configuration_json(const space::Configuration& configuration) {
    return text_of(json_of(configuration)) + "\n";
}

std::optional<std::string> LineBuffer::next() {
    const auto end = pending_.find('\n', begin_);
    const std::size_t size = (end == std::string::npos ? pending_.size() : end) - begin_;
    if (size > longest)
        throw base::FormatError("a line of more than " + std::to_string(longest) +
                                " bytes: " + shown(std::string_view(pending_).substr(begin_, 200)));
    if (end == std::string::npos) {
        pending_.erase(0, begin_);
        begin_ = 0;
        return std::nullopt;
    }
    std::string line = pending_.substr(begin_, size);
    begin_ = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    return line;
}

} // namespace ranktune::process
