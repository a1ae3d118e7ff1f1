// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/change.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "ranktune/study/parse.hpp"

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

/// What take_over() takes over: a key, or a table with everything in it.
constexpr std::string_view changeable[] = {
    "study.name",
    "study.num_trials",
    "study.max_concurrent",
    "study.time_budget",
    "trainable.command",
    "resources.cpus_per_rank",
    "resources.bind",
    "stop.",
    "failure.",
    "checkpoint.",
    "journal.",
    "run.",
    "slurm.",
};

bool may_change(std::string_view key, const StudySpec& before) {
    // The slots are what orders a deterministic study.
    if (before.deterministic && key == "study.max_concurrent") return false;
    return std::ranges::any_of(changeable, [&](std::string_view entry) {
        return entry.ends_with('.') ? key.starts_with(entry) : key == entry;
    });
}

const std::string* find(const Lines& lines, const std::string& key) {
    const auto found = std::ranges::find(lines, key, &Lines::value_type::first);
    return found == lines.end() ? nullptr : &found->second;
}

} // namespace

std::vector<KeyChange> differences(const StudySpec& before, const StudySpec& after) {
    const Lines old_lines = lines_of(before);
    const Lines new_lines = lines_of(after);
    std::vector<KeyChange> changes;
    for (const auto& [key, value] : old_lines) {
        const std::string* now = find(new_lines, key);
        if (now == nullptr || *now != value)
            changes.push_back({key, value, now == nullptr ? std::string() : *now, may_change(key, before)});
    }
    for (const auto& [key, value] : new_lines)
        if (find(old_lines, key) == nullptr) changes.push_back({key, {}, value, may_change(key, before)});
    return changes;
}

bool changes_what_is_decided(const std::vector<KeyChange>& changes) {
    return std::ranges::any_of(changes, [](const KeyChange& change) {
        return change.key != "study.name" && !change.key.starts_with("checkpoint.") &&
               !change.key.starts_with("journal.") && !change.key.starts_with("run.");
    });
}

void take_over(StudySpec& spec, const StudySpec& later) {
    spec.name = later.name;
    spec.num_trials = later.num_trials;
    if (!spec.deterministic) spec.max_concurrent = later.max_concurrent;
    spec.time_budget = later.time_budget;
    // A program whose command line was wrong is mended by changing it.
    if (spec.trainable.program && later.trainable.program)
        spec.trainable.program->command = later.trainable.program->command;
    spec.resources.cpus_per_rank = later.resources.cpus_per_rank;
    spec.resources.bind = later.resources.bind;
    spec.stop = later.stop;
    spec.failure = later.failure;
    spec.checkpoint = later.checkpoint;
    spec.output = later.output;
    spec.slurm = later.slurm;
}

} // namespace ranktune::study
