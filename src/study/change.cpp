// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/change.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "ranktune/study/parse.hpp"
#include "study/algorithm_options.hpp"
#include "study/parse/key_rows.hpp"

namespace ranktune::study {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

/// Keys and values of a resolved file, which has one line per key.
Lines lines_of(const StudySpec& spec) {
    Lines lines;
    const std::string text = resolved_toml(spec);
    std::string table;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (line.starts_with('[')) {
            table = line.substr(1, line.size() - 2) + ".";
        } else if (const std::size_t at = line.find(" = "); at != std::string::npos) {
            lines.emplace_back(table + line.substr(0, at), line.substr(at + 3));
        }
    }
    return lines;
}

bool starts(std::string_view key, std::string_view table) { return key.starts_with(table); }

/// The name of the file of [data] that `data.NAME`, or `inputs."data.NAME"`, is about.
std::optional<std::string_view> data_name(std::string_view key) {
    constexpr std::string_view table = "data.";
    constexpr std::string_view input = "inputs.\"data.";
    if (key.starts_with(table)) return key.substr(table.size());
    if (key.starts_with(input)) return key.substr(input.size(), key.size() - input.size() - 1);
    return std::nullopt;
}

/// The same of a file of [data]; null: it is not there. A study may get another file.
bool may_move(const DataFile* was, const DataFile* is) {
    if (was == nullptr) return true;
    if (is == nullptr) return false;
    DataFile moved = *was;
    if (was->content.empty()) moved.content = is->content;
    if (!was->content.empty() && !is->content.empty()) moved.path = is->path;
    return moved == *is;
}

/// A file may move if its content is known to be the same. Content that was unknown before may be added.
bool may_move(std::string_view key, const StudySpec& before, const StudySpec& after) {
    if (const auto name = data_name(key)) return may_move(before.data_file(*name), after.data_file(*name));
    const std::string option(key.substr(key.find('.') + 1));
    const std::string* was = before.trainable.content_of(option);
    const std::string* is = after.trainable.content_of(option);
    if (starts(key, "inputs.")) return was == nullptr;
    return was != nullptr && is != nullptr && *was == *is;
}

template <class Spec>
bool option_may_change(std::string_view name, const Spec& spec) {
    const AlgorithmOption* option = find_option(*spec.algorithm, name);
    return option != nullptr && option->may_change && applies(*spec.algorithm, spec.options, *option);
}

/// Whether the algorithm of the study has this option, and it may change. (If the algorithm changes, `type` differs,
/// too.)
bool option_may_change(std::string_view key, const StudySpec& spec) {
    const std::string_view name = key.substr(key.find('.') + 1);
    return key.starts_with("scheduler.") ? option_may_change(name, spec.scheduler)
                                         : option_may_change(name, spec.searcher);
}

template <class Spec>
void take_over_options(Spec& spec, const Spec& later) {
    for (const AlgorithmOption& option : spec.algorithm->options)
        if (const space::Value* value = later.options.find(option.name); option.may_change && value != nullptr)
            spec.options.set(option.name, *value);
}

bool may_change(std::string_view key, const StudySpec& before, const StudySpec& after) {
    if (key.starts_with("scheduler.") || key.starts_with("searcher."))
        return option_may_change(key, before) && option_may_change(key, after);
    // The number of slots determines the order of a deterministic study.
    if (before.deterministic && key == "study.max_concurrent") return false;
    if ((starts(key, "trainable.") || starts(key, "inputs.") || starts(key, "data.")) && may_move(key, before, after))
        return true;
    if (starts(key, "space.")) return true; // where every configuration so far lies in the new space
    const KeyRow* row = find_row(key);
    return row != nullptr && row->later != Later::fixed;
}

const std::string* find(const Lines& lines, const std::string& key) {
    const auto found = std::ranges::find(lines, key, &Lines::value_type::first);
    return found == lines.end() ? nullptr : &found->second;
}

} // namespace

bool may_change_later(std::string_view key, const StudySpec& spec) { return may_change(key, spec, spec); }

std::vector<std::string> changeable_keys() {
    const auto table_of = [](const KeyRow& row) { return row.key.substr(0, row.key.find('.') + 1); };
    std::vector<std::string> keys;
    for (const KeyRow& row : key_rows()) {
        if (row.later == Later::fixed) continue;
        const bool whole = std::ranges::none_of(key_rows(), [&](const KeyRow& other) {
            return table_of(other) == table_of(row) && other.later == Later::fixed;
        });
        const std::string_view entry = whole ? table_of(row) : row.key;
        if (std::ranges::find(keys, entry) == keys.end()) keys.emplace_back(entry);
    }
    return keys;
}

std::vector<KeyChange> differences(const StudySpec& before, const StudySpec& after) {
    const Lines old_lines = lines_of(before);
    const Lines new_lines = lines_of(after);
    std::vector<KeyChange> changes;
    for (const auto& [key, value] : old_lines) {
        const std::string* now = find(new_lines, key);
        if (now == nullptr || *now != value)
            changes.push_back({key, value, now == nullptr ? std::string() : *now, may_change(key, before, after)});
    }
    for (const auto& [key, value] : new_lines)
        if (find(old_lines, key) == nullptr) changes.push_back({key, {}, value, may_change(key, before, after)});
    return changes;
}

bool changes_what_is_decided(const std::vector<KeyChange>& changes) {
    return std::ranges::any_of(changes, [](const KeyChange& change) {
        if (const KeyRow* row = find_row(change.key)) return row->later != Later::aside;
        // (Of the options of the trainable and of [data], only the path of a file can have changed.)
        return !starts(change.key, "inputs.") && !starts(change.key, "trainable.") && !starts(change.key, "data.");
    });
}

void take_over(StudySpec& spec, const StudySpec& later) {
    for (const KeyRow& row : key_rows())
        if (row.copy != nullptr && may_change(row.key, spec, later)) row.copy(spec, later);
    spec.name = later.name;
    spec.num_trials = later.num_trials;
    spec.stop = later.stop;
    spec.checkpoint = later.checkpoint;
    if (!(spec.space == later.space)) spec.space = later.space; // searchers point into it
    // A wrong command line can be corrected.
    if (spec.trainable.program && later.trainable.program) {
        spec.trainable.program->command = later.trainable.program->command;
        spec.trainable.program->function = later.trainable.program->function;
        spec.trainable.program->restart_growth = later.trainable.program->restart_growth;
        spec.trainable.program->flags = later.trainable.program->flags;
        spec.trainable.program->report = later.trainable.program->report;
        spec.trainable.program->result = later.trainable.program->result;
        spec.trainable.program->directory = later.trainable.program->directory;
    }
    take_over_options(spec.scheduler, later.scheduler);
    take_over_options(spec.searcher, later.searcher);
    for (const InputFile& input : later.trainable.inputs) {
        const std::string* known = spec.trainable.content_of(input.option);
        if (known != nullptr && *known == input.content)
            for (const auto& option : later.trainable.options.entries())
                if (option.name == input.option) spec.trainable.options.set(option.name, option.value);
        if (known == nullptr) spec.trainable.inputs.push_back(input);
    }
    for (const DataFile& file : later.data) {
        const auto known = std::ranges::find(spec.data, file.name, &DataFile::name);
        if (known == spec.data.end())
            spec.data.push_back(file);
        else if (may_move(&*known, &file))
            *known = file;
    }
}

} // namespace ranktune::study
