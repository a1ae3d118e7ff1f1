// SPDX-License-Identifier: Apache-2.0
// Earlier results from a journal file of Optuna: one JSON object per line, as optuna/storages/_journal/storage.py
// writes them (3.1 and later). Studies and trials are numbered in the order in which the journal creates them.
#include <algorithm>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "process/program/json_input.hpp"
#include "process/program/messages.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "studydir/earlier/found.hpp"

namespace ranktune::studydir {
namespace {

using Json = nlohmann::ordered_json;

/// Optuna's JournalOperation, as far as results depend on it.
enum Operation : std::int64_t {
    create_study = 0,
    delete_study = 1,
    create_trial = 4,
    set_param = 5,
    set_state = 6,
    set_intermediate = 7
};
/// Its Trial and StudyDirection.
enum State : std::int64_t { running = 0, complete = 1, pruned = 2, failed = 3, waiting = 4 };
enum Direction : std::int64_t { minimize = 1, maximize = 2 };

struct OptunaStudy {
    std::string name;
    std::vector<std::int64_t> directions;
    bool deleted = false;
};

struct OptunaTrial {
    std::size_t study = 0;
    std::int64_t state = running;
    space::Configuration values;
    std::vector<double> objectives;
    std::map<std::int64_t, double> intermediate;
    [[nodiscard]] bool is_finished() const { return state == complete || state == pruned || state == failed; }
};

/// NaN for what process::quote_non_finite made a text, too.
double number_of(const Json& json) {
    return json.is_number() ? json.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

class OptunaReader {
  public:
    OptunaReader(const study::WarmSource& source, const study::StudySpec& spec) : source_(source), spec_(spec) {}

    void read(const std::string& text) {
        for (std::size_t begin = 0; begin < text.size();) {
            const std::size_t end = text.find('\n', begin);
            ++line_;
            if (end == std::string::npos) return; // a line that is being written, or was cut
            if (const auto line = std::string_view(text).substr(begin, end - begin); !base::trimmed(line).empty())
                read_line(line);
            begin = end + 1;
        }
    }

    Found found() {
        const std::size_t study = chosen_study();
        const std::size_t value = chosen_value(studies_[study]);
        Found found;
        for (const auto& [id, trial] : trials_) {
            if (trial.study != study) continue;
            for (const auto& entry : trial.values.entries()) found.names.insert(std::string(entry.name));
            found.trials.push_back(as_found(trial, value));
        }
        return found;
    }

  private:
    [[noreturn]] void fail(const std::string& what) const { refuse(source_, line_, what); }

    void read_line(std::string_view line) {
        try {
            const Json log = process::read_json(process::quote_non_finite(line));
            if (log.is_discarded() || !log.is_object() || !log.contains("op_code"))
                fail("is no line of a journal of Optuna: there is no op_code");
            apply(log);
        } catch (const Json::exception& error) {
            fail(std::string("is no line of a journal of Optuna that this version reads: ") + error.what());
        } catch (const base::FormatError& error) {
            fail(error.what());
        }
    }

    void apply(const Json& log) {
        switch (log.at("op_code").get<std::int64_t>()) {
            case create_study: {
                const auto name = log.at("study_name").get<std::string>();
                const bool exists = std::ranges::any_of(
                    studies_, [&](const OptunaStudy& study) { return study.name == name && !study.deleted; });
                if (!exists) studies_.push_back({name, log.at("directions").get<std::vector<std::int64_t>>()});
                break;
            }
            case delete_study:
                if (const auto id = log.at("study_id").get<std::size_t>(); id < studies_.size())
                    studies_[id].deleted = true;
                break;
            case create_trial:
                create(log);
                break;
            case set_param:
                if (OptunaTrial* trial = open_trial(log))
                    set(*trial, log.at("param_name").get<std::string>(), log.at("param_value_internal"),
                        log.at("distribution").get<std::string>());
                break;
            case set_state:
                if (OptunaTrial* trial = open_trial(log)) {
                    trial->state = log.at("state").get<std::int64_t>();
                    take_values(*trial, log.at("values"));
                }
                break;
            case set_intermediate:
                if (OptunaTrial* trial = open_trial(log))
                    trial->intermediate[log.at("step").get<std::int64_t>()] = number_of(log.at("intermediate_value"));
                break;
            default:
                break; // attributes
        }
    }

    void create(const Json& log) {
        const auto study = log.at("study_id").get<std::size_t>();
        if (study >= studies_.size() || studies_[study].deleted) return;
        OptunaTrial trial;
        trial.study = study;
        trial.state = log.value("state", std::int64_t{running});
        if (const auto params = log.find("params"); params != log.end())
            for (const auto& [name, value] : params->items())
                set(trial, name, value, log.at("distributions").at(name).get<std::string>());
        if (const auto value = log.find("value"); value != log.end() && value->is_number())
            trial.objectives = {number_of(*value)};
        if (const auto values = log.find("values"); values != log.end()) take_values(trial, *values);
        if (const auto steps = log.find("intermediate_values"); steps != log.end())
            for (const auto& [step, value] : steps->items()) trial.intermediate[std::stoll(step)] = number_of(value);
        trials_.emplace(trials_.size(), std::move(trial));
    }

    /// Null: it does not exist, or is over.
    OptunaTrial* open_trial(const Json& log) {
        const auto trial = trials_.find(log.at("trial_id").get<std::size_t>());
        return trial == trials_.end() || trial->second.is_finished() ? nullptr : &trial->second;
    }

    static void take_values(OptunaTrial& trial, const Json& values) {
        if (values.is_null()) return;
        trial.objectives.clear();
        for (const Json& value : values) trial.objectives.push_back(number_of(value));
    }

    /// A category is stored as its position.
    void set(OptunaTrial& trial, const std::string& name, const Json& internal, const std::string& distribution) {
        const Json about = process::read_json(process::quote_non_finite(distribution));
        if (about.is_discarded()) fail("the distribution of '" + name + "' is no JSON");
        if (about.at("name").get<std::string>() != "CategoricalDistribution") {
            trial.values.set(name, space::Value(internal.get<double>()));
            return;
        }
        const Json& choices = about.at("attributes").at("choices");
        const Json& value = choices.at(static_cast<std::size_t>(internal.get<double>()));
        if (value.is_boolean())
            trial.values.set(name, value.get<bool>());
        else if (value.is_number_integer())
            trial.values.set(name, value.get<std::int64_t>());
        else if (value.is_number())
            trial.values.set(name, value.get<double>());
        else
            trial.values.set(name, value.is_string() ? value.get<std::string>() : value.dump());
    }

    [[nodiscard]] std::size_t chosen_study() const {
        std::vector<std::string> names;
        std::vector<std::size_t> positions;
        for (std::size_t i = 0; i < studies_.size(); ++i) {
            if (studies_[i].deleted || (!source_.study.empty() && studies_[i].name != source_.study)) continue;
            positions.push_back(i);
        }
        for (const OptunaStudy& study : studies_)
            if (!study.deleted) names.push_back(study.name);
        if (names.empty()) refuse(source_, "there is no study in this journal");
        if (positions.empty())
            refuse(source_, "has no study '" + source_.study + "'" + base::suggestion(source_.study, names) +
                                "; it has " + base::join(names));
        if (positions.size() > 1)
            refuse(source_,
                   "has several studies: " + base::join(names) + "; choose one: { path = ..., study = \"NAME\" }");
        return positions.front();
    }

    /// The position of the value that stands for this study's metric.
    [[nodiscard]] std::size_t chosen_value(const OptunaStudy& study) const {
        const std::size_t count = study.directions.size();
        std::size_t position = 0;
        if (count > 1 || !source_.metric.empty()) {
            while (position < count && source_.metric != std::to_string(position)) ++position;
            if (position == count)
                refuse(source_, "study '" + study.name + "' has " + base::counted(count, "value") +
                                    " without names; choose one by its position: { path = ..., metric = \"0\" }");
        }
        const bool max = study.directions.at(position) == maximize;
        if (max != (spec_.objective.mode == study::Mode::max))
            refuse(source_, "study '" + study.name + "' " + (max ? "maximises" : "minimises") +
                                ", and this one does the opposite with " + spec_.objective.metric +
                                "; the values cannot mean the same");
        return position;
    }

    [[nodiscard]] FoundTrial as_found(const OptunaTrial& trial, std::size_t value) const {
        FoundTrial found{trial.values, {}, trial.state == failed};
        if (trial.state == complete && value < trial.objectives.size())
            found.results.push_back({spec_.max_iterations, trial.objectives[value]});
        for (const auto& [step, each] : trial.intermediate) {
            const bool final_too =
                trial.state == complete && static_cast<base::Iteration>(step) >= spec_.max_iterations;
            if (step >= 1 && !final_too) found.results.push_back({static_cast<base::Iteration>(step), each});
        }
        return found;
    }

    const study::WarmSource& source_;
    const study::StudySpec& spec_;
    std::vector<OptunaStudy> studies_;
    std::map<std::size_t, OptunaTrial> trials_;
    std::size_t line_ = 0;
};

} // namespace

Found read_optuna_journal(const std::string& text, const study::WarmSource& source, const study::StudySpec& spec) {
    OptunaReader reader(source, spec);
    reader.read(text);
    return reader.found();
}

} // namespace ranktune::studydir
