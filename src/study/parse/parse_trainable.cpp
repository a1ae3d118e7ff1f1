// SPDX-License-Identifier: Apache-2.0
// [trainable]: what is trained, and its fixed options.
#include <algorithm>

#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

std::vector<std::string> names_of(const std::vector<TrainableInfo>& known) {
    std::vector<std::string> names;
    for (const TrainableInfo& info : known) names.push_back(info.name);
    return names;
}

std::vector<std::string> names_of(const std::vector<OptionInfo>& options) {
    std::vector<std::string> names;
    for (const OptionInfo& option : options) names.push_back(option.name);
    return names;
}

void find_trainable(ParseContext& context, const Node& node, const std::string& key) {
    if (context.trust_trainable) return;
    const std::string& name = context.spec.trainable.name;
    const auto found = std::ranges::find(context.known.trainables, name, &TrainableInfo::name);
    if (found != context.known.trainables.end()) {
        context.info = &*found;
        return;
    }
    const auto names = names_of(context.known.trainables);
    context.mistakes.value(
        node, key,
        "unknown trainable " + in_quotes(name) + base::suggestion(name, names) + "; known: " + base::join(names) +
            " (one that a program of yours registers is known to that program: start the study with it)");
}

std::string unknown_option(const ParseContext& context, const std::string& name) {
    if (means_max_iterations(name)) {
        std::string text = "unknown key; the ceiling is study.max_iterations";
        if (context.has_max_iterations) text += " (" + std::to_string(context.spec.max_iterations) + ")";
        return text;
    }
    const auto names = names_of(context.info->options);
    if (const std::string hint = base::suggestion(name, names); !hint.empty()) return "unknown key" + hint;
    return "unknown key; options of '" + context.info->name + "': " + base::join(names);
}

void parse_option(ParseContext& context, const Node& node, const std::string& name) {
    const std::string key = "trainable." + name;
    const OptionInfo* option = context.info == nullptr ? nullptr : find_option(*context.info, name);
    if (context.info != nullptr && option == nullptr && !context.info->any_option) {
        context.mistakes.key(node, key, unknown_option(context, name));
        return;
    }
    context.option_keys.push_back(name);
    const auto value = to_value(node, key, context.mistakes);
    if (!value) return;
    if (option == nullptr) {
        context.spec.trainable.options.set(name, *value);
        return;
    }
    std::string why = option_problem(*option, *value);
    if (why.empty()) why = file_problem(context, *option, *value);
    if (!why.empty()) context.mistakes.value(node, key, why);
    const space::Value given = resolved(*option, *value, context.directory);
    context.spec.trainable.options.set(name, given);
    if (why.empty() && option->kind == OptionInfo::Kind::path && context.paths.content && given.is_string() &&
        !data_reference(given))
        note_content(context, name, context.paths.content(given.as_string()));
}

/// Options in nested tables get dotted names, as hyper-parameters do.
void parse_options(ParseContext& context, const Node& table, const std::string& prefix) {
    for (const auto& [key, node] : table.members) {
        if (prefix.empty() && (key == "builtin" || key == "name")) continue;
        const std::string name = prefix + key;
        if (!check_name(node, "trainable." + name, key, context.mistakes)) continue;
        if (node.is(Node::Kind::table)) {
            parse_options(context, node, name + ".");
        } else {
            parse_option(context, node, name);
        }
    }
}

/// A key of [data] that says how samples of the file are read; empty: there is none.
std::string_view key_beside_path(const DataFile& file) {
    if (!file.dtype.empty()) return "dtype";
    if (!file.shape.empty()) return "shape";
    if (file.tokens > 0) return "tokens";
    if (!file.group.empty()) return "group";
    if (!file.shuffle.empty()) return "shuffle";
    if (file.shuffle_memory > 0) return "shuffle_memory";
    return file.drop_last ? "drop_last" : "";
}

/// A program under another key than `command`. Returns whether there is one.
bool refuse_other_command(TableReader& table) {
    constexpr std::string_view words[] = {"cmd",         "script",     "program", "run",  "exec",
                                          "executable",  "entrypoint", "main",    "file", "path",
                                          "entry_point", "target",     "args",    "argv"};
    if (table.table() == nullptr) return false;
    for (const auto& [key, node] : table.table()->members) {
        const bool known = std::ranges::find(words, key) != std::end(words);
        if (!known && base::edit_distance(key, "command") > 2) continue;
        table.mistakes().key(node, table.dotted(key),
                             "unknown key; a program is named by command, as in command = \"python3 train.py {args}\"");
        return true;
    }
    return false;
}

} // namespace

void note_content(ParseContext& context, const std::string& option, const std::string& content) {
    if (!content.empty()) context.spec.trainable.inputs.push_back({option, content});
}

void parse_inputs(ParseContext& context) {
    const Node* table = context.root.find("inputs");
    if (table == nullptr) return;
    if (!table->is(Node::Kind::table)) {
        context.mistakes.value(*table, "inputs", "needs to be a table, which ranktune writes");
        return;
    }
    for (const auto& [name, node] : table->members) {
        const bool is_option = context.spec.trainable.options.contains(name);
        if (node.is(Node::Kind::string) && is_option && context.spec.trainable.content_of(name) == nullptr)
            note_content(context, name, node.text);
    }
}

std::string file_problem(const ParseContext& context, const OptionInfo& option, const space::Value& value) {
    if (option.kind != OptionInfo::Kind::path || !context.paths.file || !value.is_string()) return "";
    std::string path;
    if (const auto name = data_reference(value)) {
        const DataFile* file = context.spec.data_file(*name);
        if (file == nullptr || file->is_mixture())
            return "stands for no file of [data]; add one there: " + *name + " = \"" + *name + ".h5\"";
        // Such an option reads files by rules of its own.
        if (const auto key = key_beside_path(*file); option.check && !key.empty())
            return "stands for the path of data." + *name + " alone; remove `" + std::string(key) + "` there";
        path = file->path;
    } else {
        path = absolute_path(value.as_string(), context.directory);
    }
    if (context.may_be_made(path)) return "";
    std::string why = context.paths.file(path);
    return why.empty() && option.check ? option.check(path) : why;
}

void parse_trainable(ParseContext& context) {
    TableReader table = context.reader("trainable");
    if (table.has("command") || table.has("python")) return parse_program(context, table);
    const bool has_builtin = table.has("builtin");
    const bool has_name = table.has("name");
    if (has_builtin && has_name) {
        table.refuse("name", "is given beside builtin; give one of them");
    } else if (!has_builtin && !has_name && !table.is_wrong()) {
        if (!refuse_other_command(table))
            context.mistakes.missing(table.table(), "trainable.builtin",
                                     "missing; builtin = \"...\", command = \"...\" of a program, python = "
                                     "\"FILE:FUNCTION\", or name = \"...\" of a "
                                     "trainable that this program registers; known: " +
                                         base::join(names_of(context.known.trainables)));
    }
    const std::string key = has_builtin ? "builtin" : "name";
    if (const auto name = table.string(key)) {
        context.spec.trainable.name = *name;
        find_trainable(context, *table.take(key), table.dotted(key));
    }
    if (table.table() != nullptr) parse_options(context, *table.table(), "");
    parse_inputs(context);

    if (const Node* study = context.root.find("study"); study != nullptr && study->is(Node::Kind::table)) {
        if (const Node* metric = study->find("metric"); metric != nullptr && metric->is(Node::Kind::string))
            check_metric(context, *metric, "study.metric", metric->text);
        else if (metric != nullptr && metric->is(Node::Kind::array))
            for (const Node& item : metric->items)
                if (item.is(Node::Kind::string)) check_metric(context, item, "study.metric", item.text);
    }
}

} // namespace ranktune::study
