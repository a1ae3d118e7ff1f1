// SPDX-License-Identifier: Apache-2.0
// [before], [after_trial], [after]: programs beside the trials.
#include <algorithm>

#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "study/options.hpp"
#include "study/outside.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/side_tasks.hpp"

namespace ranktune::study {
namespace {

SideSpec& part_for(StudySpec& spec, SideTask::Kind kind) {
    if (kind == SideTask::Kind::after_trial) return spec.after_trial;
    return kind == SideTask::Kind::before ? spec.before : spec.after;
}

/// What stands for something in a command without a trial, and beyond that in one for a trial.
std::vector<std::string> known_placeholders(const ParseContext& context, bool of_trial) {
    std::vector<std::string> known = {"iterations"};
    for (const DataFile& file : context.spec.data) known.push_back(data_placeholder(file));
    if (!of_trial) return known;
    known.insert(known.end(), {"checkpoint", "trial", "config", "args", "args:py", "args_hydra", "args_plain"});
    for (std::string& name : names_of(context.entries)) known.push_back(std::move(name));
    return known;
}

void check_placeholders_of(const ParseContext& context, const Node& node, SideTask::Kind kind,
                           const std::vector<std::string>& placeholders) {
    const bool of_trial = kind == SideTask::Kind::after_trial;
    const auto known = known_placeholders(context, of_trial);
    const bool has_columns = context.spec.trainable.options.contains(table_option);
    for (const std::string& name : placeholders) {
        if (std::ranges::find(known, name) != known.end()) continue;
        if (of_trial && (has_columns || may_name_parameter(context.entries, name))) continue;
        context.mistakes.value(node, std::string(study::name(kind)) + ".command",
                               "unknown placeholder {" + name + "}" + base::suggestion(name, known) + "; known: {" +
                                   base::join(known, "}, {") + "}; a brace is written '{{'");
    }
}

void check_side_command(const ParseContext& context, const Node& node, SideTask::Kind kind, const SideSpec& side) {
    const std::string key = std::string(name(kind)) + ".command";
    std::vector<std::string> found;
    const auto command = CommandTemplate::read(side.command, true, found);
    for (const std::string& mistake : found) context.mistakes.value(node, key, mistake);
    if (!found.empty()) return;
    const auto placeholders = command.placeholders();
    if (context.names_are_known) check_placeholders_of(context, node, kind, placeholders);
    if (kind == SideTask::Kind::after_trial && context.spec.evaluates_checkpoints() &&
        !context.spec.checkpoint.supported)
        context.mistakes.value(node, key,
                               "has {checkpoint}, and the trainable saves no checkpoints; leave the placeholder out");
}

void parse_side_task(ParseContext& context, SideTask::Kind kind) {
    TableReader table = context.reader(std::string(name(kind)));
    if (table.table() == nullptr) return;
    read_members(table, context.spec, context.trust_trainable);
    table.require("command", "what sh -c runs");
    if (is_outside(context.spec))
        table.complain("command", "needs ranks, and the trials of this study are asked for and told; leave it out");
    SideSpec& side = part_for(context.spec, kind);
    side.directory = absolute_path(side.directory.empty() ? "." : side.directory, context.directory);
    if (!context.trust_trainable) {
        if (context.paths.directory)
            if (const std::string why = context.paths.directory(side.directory); !why.empty())
                table.complain("directory", why);
        if (const Node* command = table.take("command"); command != nullptr && command->is(Node::Kind::string))
            check_side_command(context, *command, kind, side);
    }
    table.finish();
}

} // namespace

void parse_side_tasks(ParseContext& context) {
    using Kind = SideTask::Kind;
    for (const Kind kind : {Kind::before, Kind::after_trial, Kind::after}) parse_side_task(context, kind);
    if (context.spec.resources.helpers > 0 && !has_side_tasks(context.spec))
        context.mistakes.value(*context.root.find("resources")->find("helpers"), "resources.helpers",
                               "keeps workers for [before], [after_trial] and [after], and the study has none of them; "
                               "leave it out");
}

} // namespace ranktune::study
