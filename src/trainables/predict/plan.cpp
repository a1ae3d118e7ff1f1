// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/plan.hpp"

#include <charconv>
#include <iterator>
#include <utility>

#include "base/joined.hpp"
#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "study/printed_values.hpp"
#include "study/toml_text.hpp"

namespace ranktune::trainables {

namespace {

/// The keys of trial i begin with it.
std::string trial_table(std::size_t i) { return "model" + std::to_string(i); }

/// Values as TOML, one line each.
class Lines {
  public:
    void table(const std::string& name) { text_ += "\n[trainable" + (name.empty() ? "" : "." + name) + "]\n"; }
    void text(const std::string& key, const std::string& value) { line(key, study::text_of(value)); }
    void line(const std::string& key, const std::string& value) { text_ += key + " = " + value + "\n"; }
    [[nodiscard]] std::string take() { return std::move(text_).substr(1); }

  private:
    std::string text_;
};

/// Reads keys under a prefix.
class Keys {
  public:
    Keys(const space::Configuration& all, std::string prefix) : all_(all), prefix_(std::move(prefix)) {}
    [[nodiscard]] std::string text(const std::string& key) const { return value(key).as_string(); }
    [[nodiscard]] std::string text_or_none(const std::string& key) const {
        const space::Value* found = all_.find(prefix_ + key);
        return found == nullptr ? std::string() : found->as_string();
    }
    [[nodiscard]] std::uint64_t number(const std::string& key, std::int64_t least = 0) const {
        const std::int64_t number = value(key).as_int();
        if (number < least) refuse(key, "needs to be " + std::to_string(least) + " at least");
        return static_cast<std::uint64_t>(number);
    }
    [[nodiscard]] std::uint64_t gigabytes(const std::string& key) const {
        return static_cast<std::uint64_t>(value(key).as_double() * static_cast<double>(std::uint64_t{1} << 30U));
    }
    [[nodiscard]] std::uint64_t digest(const std::string& key) const { return digest_in(key, text(key)); }
    [[nodiscard]] std::vector<std::uint64_t> digests(const std::string& key) const {
        std::vector<std::uint64_t> all;
        for (const space::Value& each : value(key).as_list()) all.push_back(digest_in(key, each.as_string()));
        return all;
    }
    [[nodiscard]] bool has(const std::string& key) const { return all_.contains(prefix_ + key); }
    /// All entries below `table`.
    [[nodiscard]] space::Configuration entries(const std::string& table) const {
        const std::string begin = prefix_ + table + ".";
        space::Configuration found;
        for (const auto& [name, value] : all_.entries())
            if (name.starts_with(begin)) found.set(name.substr(begin.size()), value);
        return found;
    }

  private:
    [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
        throw base::UsageError("trainable." + prefix_ + key + " " + why + ": `ranktune predict` writes it");
    }
    [[nodiscard]] const space::Value& value(const std::string& key) const {
        const space::Value* found = all_.find(prefix_ + key);
        if (found == nullptr) refuse(key, "is missing");
        return *found;
    }
    [[nodiscard]] std::uint64_t digest_in(const std::string& key, const std::string& text) const {
        const auto digest = base::number_in<std::uint64_t>(text, 16);
        if (!digest) refuse(key, "is no digest");
        return *digest;
    }

    const space::Configuration& all_;
    std::string prefix_;
};

void write_trial(const PredictingTrial& trial, const std::string& table, Lines& out) {
    out.table(table);
    out.line("trial", std::to_string(trial.trial.value()));
    out.line("seed", std::to_string(trial.seed));
    out.line("iteration", std::to_string(trial.checkpoint.iteration));
    out.text("checkpoint", trial.checkpoint.path);
    out.text("digest", digest_text(trial.checkpoint.digest));
    out.line("bytes", std::to_string(trial.checkpoint.bytes));
    if (!trial.checkpoint.shards.empty()) {
        const auto text = [](std::uint64_t each) { return study::text_of(digest_text(each)); };
        out.line("shards", "[" + base::joined(trial.checkpoint.shards, text) + "]");
    }
    out.table(table + ".configuration");
    for (const auto& [name, value] : trial.configuration.entries())
        if (!value.is_none()) out.line(name, study::text_of(value)); // none: as if it were not there
}

PredictingTrial trial_of(const Keys& keys) {
    PredictingTrial trial;
    trial.trial = base::TrialId(static_cast<std::uint32_t>(keys.number("trial")));
    trial.seed = keys.number("seed");
    trial.checkpoint.iteration = static_cast<base::Iteration>(keys.number("iteration"));
    trial.checkpoint.path = keys.text("checkpoint");
    trial.checkpoint.digest = keys.digest("digest");
    trial.checkpoint.bytes = keys.number("bytes");
    if (keys.has("shards")) trial.checkpoint.shards = keys.digests("shards");
    trial.configuration = keys.entries("configuration");
    return trial;
}

} // namespace

std::uint64_t digest_of_range(const base::Digest& y, const base::Digest& classes) {
    return base::Digest().add(y.value()).add(classes.value()).value();
}

std::string digest_text(std::uint64_t digest) {
    char digits[16];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), digest, 16).ptr;
    const std::string text(digits, end);
    return std::string(std::size(digits) - text.size(), '0') + text;
}

std::string text_of(const PredictPlan& plan) {
    Lines out;
    out.table("");
    out.text("builtin", study::predict_trainable);
    out.text("input", plan.input);
    out.text("input_content", plan.input_content);
    if (!plan.group.empty()) out.text("group", plan.group);
    if (!plan.field.empty()) out.text("field", plan.field);
    out.text("output", plan.output);
    out.line("samples", std::to_string(plan.samples));
    out.line("samples_per_range", std::to_string(plan.range));
    out.line("batch_size", std::to_string(plan.batch));
    out.text("combine", plan.combine);
    out.text("version", plan.version);
    out.table("study");
    out.text("name", plan.study);
    out.text("directory", plan.directory);
    out.text("trainable", plan.trainable);
    out.line("max_iterations", std::to_string(plan.max_iterations));
    for (std::size_t i = 0; i < plan.trials.size(); ++i) write_trial(plan.trials[i], trial_table(i), out);
    return out.take();
}

PredictPlan predict_plan_of(const space::Configuration& configuration) {
    const Keys keys(configuration, "");
    const Keys study(configuration, "study.");
    PredictPlan plan;
    plan.input = keys.text("input");
    plan.input_content = keys.text("input_content");
    plan.group = keys.text_or_none("group");
    plan.field = keys.text_or_none("field");
    plan.output = keys.text("output");
    plan.samples = keys.number("samples", 1);
    plan.range = keys.number("samples_per_range", 1);
    plan.batch = keys.number("batch_size", 1);
    plan.combine = keys.text("combine");
    if (keys.has(memory_option)) plan.memory = keys.gigabytes(memory_option);
    plan.version = keys.text("version");
    plan.study = study.text("name");
    plan.directory = study.text("directory");
    plan.trainable = study.text("trainable");
    plan.max_iterations = static_cast<base::Iteration>(study.number("max_iterations", 1));
    for (std::size_t i = 0; keys.has(trial_table(i) + ".trial"); ++i)
        plan.trials.push_back(trial_of(Keys(configuration, trial_table(i) + ".")));
    if (plan.trials.empty()) throw base::UsageError("trainable." + trial_table(0) + " is missing: no trial predicts");
    return plan;
}

} // namespace ranktune::trainables
