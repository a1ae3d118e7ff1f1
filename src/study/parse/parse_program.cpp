// SPDX-License-Identifier: Apache-2.0
// [trainable] with `command`: a program of the user as a trial.
#include <algorithm>
#include <cctype>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "study/options.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/printed_values.hpp"

namespace ranktune::study {
namespace {

/// The text of a variable: a string, or anything else but tables and lists as it is written (3.10 stays 3.10).
std::optional<std::string> variable_text(const Node& node, const std::string& key, Mistakes& mistakes) {
    if (node.is(Node::Kind::table) || node.is(Node::Kind::array)) {
        mistakes.value(node, key, "needs a string, number or boolean, not " + std::string(kind_text(node)));
        return std::nullopt;
    }
    if (node.is_number() && node.text.find_first_of("_xob") != std::string::npos) { // few programs read 1_000 or 0x10
        const auto value = to_value(node, key, mistakes);
        mistakes.value(node, key,
                       "is a number that programs may not read as written; put it in quotes: \"" + node.text + "\"" +
                           (value ? " or \"" + value->text() + "\"" : ""));
        return std::nullopt;
    }
    if (node.text.find('\0') == std::string::npos) return node.text;
    mistakes.value(node, key, "a variable cannot hold a zero byte");
    return std::nullopt;
}

void parse_env(TableReader& table, ProgramSpec& program) {
    const Node* env = table.take("env");
    if (env == nullptr) return;
    Mistakes& mistakes = table.mistakes();
    if (!env->is(Node::Kind::table))
        return mistakes.value(*env, table.dotted("env"),
                              "needs a table, as in { NAME = \"value\" }, not " + std::string(kind_text(*env)));
    for (const auto& [name, node] : env->members) {
        const std::string key = table.dotted("env." + name);
        if (!is_variable_name(name)) {
            mistakes.key(node, key, "a variable's name has letters, digits and '_', and begins with no digit");
        } else if (name.starts_with("RANKTUNE_")) {
            mistakes.key(node, key, "names that begin with RANKTUNE_ are ranktune's own");
        } else if (auto text = variable_text(node, key, mistakes)) {
            program.env.push_back({name, std::move(*text)});
        }
    }
}

void parse_keep_env(TableReader& table, ProgramSpec& program) {
    const Node* keep = table.take("keep_env");
    if (keep == nullptr) return;
    const std::string wanted = "needs a list of names of variables, such as [\"SLURM_JOB_ID\", \"PMI_*\"]";
    if (!keep->is(Node::Kind::array)) return table.mistakes().value(*keep, table.dotted("keep_env"), wanted);
    for (const Node& item : keep->items) {
        const bool text = item.is(Node::Kind::string);
        const std::string name =
            text && item.text.ends_with('*') ? item.text.substr(0, item.text.size() - 1) : item.text;
        if (text && is_variable_name(name)) {
            program.keep_env.push_back(item.text);
        } else {
            table.mistakes().value(item, table.dotted("keep_env"),
                                   wanted + (text ? ", not " + in_quotes(item.text) : ""));
        }
    }
}

void parse_flags(TableReader& table, ProgramSpec& program) {
    const Node* flags = table.take("flags");
    if (flags == nullptr) return;
    if (flags->is(Node::Kind::boolean)) {
        program.flags = flags->boolean ? Flags::set : Flags::off;
    } else if (flags->is(Node::Kind::string) && flags->text == "both") {
        program.flags = Flags::both;
    } else {
        const std::string found = text_or_kind(*flags);
        table.complain("flags", "needs true, false or \"both\" (--amp and --no-amp), not " + found);
    }
}

/// `python = "train.py:train"`, with the path made absolute.
void parse_function(const ParseContext& context, TableReader& table, ProgramSpec& program) {
    for (const char* other : {"command", "flags"})
        table.refuse(other, "does not go with python, which names a function; give one of them");
    if (program.shell) table.refuse("shell", "does not go with python, which names a function");
    try {
        program.function = python_target(table.string("python").value_or(""), context.directory);
    } catch (const base::UsageError& error) {
        return table.complain("python", error.what());
    }
    program.interpreter = interpreter_path(program.interpreter, context.directory);
    if (program.fresh && program.kept)
        table.complain("kept", "keeps the interpreter, and fresh = true starts one for each attempt; give one of them");
}

void parse_command(TableReader& table, ProgramSpec& program) {
    if (!program.interpreter.empty()) table.refuse("interpreter", "is for python = \"FILE:FUNCTION\"");
    if (program.fresh) table.refuse("fresh", "is for python = \"FILE:FUNCTION\"");
    if (program.restart_growth > 0) table.complain("restart_growth", "is for python = \"FILE:FUNCTION\"");
    if (table.table()->find("command")->is(Node::Kind::array))
        table.complain("command", "needs one string, as in \"python3 train.py {args}\", not a list of words");
    else
        program.command = table.string("command").value_or("");
}

constexpr Word<PrintedResult> results[] = {{name(PrintedResult::last_number), PrintedResult::last_number},
                                           {name(PrintedResult::exit_code), PrintedResult::exit_code},
                                           {name(PrintedResult::success), PrintedResult::success}};

/// `report` and `result`: of a program that prints its values.
void parse_printed(const ParseContext& context, TableReader& table, ProgramSpec& program) {
    if (const Node* report = table.take("report"); report != nullptr && report->is(Node::Kind::array))
        program.report = texts_of(context, *report, "trainable.report");
    else if (const auto pattern = table.string("report"))
        program.report = {*pattern};
    program.result = table.word("result", results).value_or(PrintedResult::none);
    if (!program.report.empty() && program.result != PrintedResult::none)
        table.complain("result", "does not go with report, which finds the values of each iteration; give one of them");
    if (!program.prints()) return;
    if (!program.function.empty())
        table.complain(program.report.empty() ? "result" : "report",
                       "is for a command; a function reports itself, or returns the value");
    if (program.result != PrintedResult::none && context.spec.objective.several())
        table.complain("result",
                       "is one value, and the study has several metrics; use report with a named group for each");
    if (table.has("checkpoints") && program.checkpoints)
        table.complain("checkpoints",
                       "true does not go with report and result: a program that only prints cannot be told to save");
    program.checkpoints = false;
}

/// After parse_constraints: they need values, too.
void check_report(const ParseContext& context) {
    const ProgramSpec& program = *context.spec.trainable.program;
    try {
        if (!program.report.empty()) PrintedValues(program.report, context.spec.objective);
    } catch (const base::UsageError& error) {
        context.mistakes.value(*context.root.find("trainable")->find("report"), "trainable.report", error.what());
    }
}

/// `kept` and its limits: the process knows its first trial only by the message, as all others. After parse_env.
void check_kept(TableReader& table, ProgramSpec& program) {
    if (!program.kept) {
        if (program.restart_after > 0) table.complain("restart_after", "is for a program with kept = true");
        if (program.restart_growth > 0 && !program.function.empty())
            table.complain("restart_growth", "is for a function with kept = true");
        return;
    }
    if (!program.function.empty()) return;
    if (!program.has_tasks())
        return table.complain("kept",
                              "is for a Python function (python = \"FILE:FUNCTION\"), and for trials that only have to "
                              "succeed: say result = \"success\", too");
    if (works_apart(program))
        table.complain("kept", "does not go with a folder for each trial (cwd, or {trial} or {folder} in directory)");
    for (const auto& [name, value] : program.env)
        if (differs_by_trial(value, nullptr))
            table.complain("env", "a kept program has the same variables for all trials, and " + name +
                                      " would differ; it finds values in the rows of ranktune.tasks()");
    const std::pair<const char*, bool> of_groups[] = {
        {"tf_config", program.tf_config},
        {"jax", program.jax},
        {"launcher_variables", table.has("launcher_variables") && program.launcher_variables}};
    for (const auto& [key, is_set] : of_groups)
        if (is_set) table.complain(key, "true does not go with kept, which is for trials of one rank");
    program.launcher_variables = false;
}

/// `table`: kept as the one option of a program, so that its content is known and the file may move.
void parse_rows(ParseContext& context, TableReader& table, ProgramSpec& program) {
    const auto given = table.string(table_option);
    if (!given) return;
    if (!program.function.empty()) return table.refuse(table_option, "is for a command");
    const std::string path = absolute_path(*given, context.directory);
    if (const std::string why = context.paths.file ? context.paths.file(path) : ""; !why.empty())
        return table.complain(table_option, why);
    context.spec.trainable.options.set(table_option, space::Value(path));
    if (context.paths.content) note_content(context, table_option, context.paths.content(path));
    parse_inputs(context);
}

/// After parse_space. The columns, which are placeholders, too; nothing: they are not known here.
std::optional<std::vector<std::string>> columns_of(const ParseContext& context) {
    const space::Value* path = context.spec.trainable.options.find(table_option);
    if (path == nullptr) return std::vector<std::string>();
    const Node& node = *context.root.find("trainable")->find(table_option);
    const std::string key = std::string("trainable.") + table_option;
    if (context.space_is_valid) {
        const auto& parameters = context.spec.space.parameters();
        const auto row = std::ranges::find(parameters, row_parameter, &space::Parameter::name);
        if (row == parameters.end())
            context.mistakes.value(node, key,
                                   "needs a hyper-parameter row in [space], as in row = \"randint(0, 100)\"");
    }
    if (!context.paths.columns) return std::nullopt;
    try {
        return context.paths.columns(path->as_string());
    } catch (const base::Error& error) {
        context.mistakes.value(node, key, error.what());
        return std::nullopt;
    }
}

void parse_directory(ParseContext& context, TableReader& table, ProgramSpec& program) {
    const std::string given = table.string("directory").value_or(".");
    if (given.empty())
        return table.complain("directory",
                              "needs a directory, not \"\"; \".\" is that of the study file, as without the key");
    program.directory = absolute_path(given, context.directory);
    if (const auto cwd = table.string("cwd")) {
        if (*cwd != "trial")
            return table.complain("cwd",
                                  "needs \"trial\", not " + in_quotes(*cwd) + "; for another folder say directory");
        if (works_apart(program))
            return table.complain("cwd", "directory gives each trial a folder already; give one of them");
        program.directory += "/{folder}";
    }
    if (!context.paths.directory || works_apart(program)) return;
    if (const std::string why = context.paths.directory(program.directory); !why.empty())
        table.complain("directory", why);
}

void refuse_unknown_keys(const ParseContext& context, TableReader& table) {
    if (table.table() == nullptr) return;
    for (const auto& [key, node] : table.table()->members) {
        if (find_row(table.dotted(key)) != nullptr) continue;
        std::string text = context.keys.guess_unknown_key("trainable", key);
        if (text.empty()) text = "unknown key; the hyper-parameters of a program belong in [space]";
        table.mistakes().key(node, table.dotted(key), text);
    }
}

void check_launcher_variables(const ParseContext& context) {
    const ResourceSpec& resources = context.spec.resources;
    const bool one_rank = resources.ranks == 1 && resources.ranks_parameter.empty();
    const Node& table = *context.root.find("trainable");
    const ProgramSpec& program = *context.spec.trainable.program;
    if (program.keeps_for_tasks()) {
        if (!one_rank)
            context.mistakes.value(*table.find("kept"), "trainable.kept",
                                   "is for trials of one rank; leave it out, or say resources.ranks = 1");
        return;
    }
    if (!context.spec.trainable.program->launcher_variables && !one_rank)
        context.mistakes.value(*table.find("launcher_variables"), "trainable.launcher_variables",
                               "false is for trials of one rank: without RANK and WORLD_SIZE the processes of a trial "
                               "cannot find each other; leave it out, or say resources.ranks = 1");
}

/// The command of a kept program is the same for all trials.
void check_kept_command(const ParseContext& context, const Node& node, const std::vector<std::string>& placeholders) {
    for (const std::string& name : placeholders)
        if (name != "iterations" && !name.starts_with("data."))
            context.mistakes.value(node, "trainable.command",
                                   "a kept program is started once for many trials, so its command has no {" + name +
                                       "}: it finds values in the rows of ranktune.tasks()");
}

/// Each means something, and only one thing. `columns`: of the table.
void check_placeholders(const ParseContext& context, const Node& node, const std::vector<std::string>& placeholders,
                        const std::vector<std::string>& columns) {
    const std::string key = "trainable.command";
    const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
        return std::ranges::find(names, name) != names.end();
    };
    std::vector<std::string> reserved = CommandTemplate::reserved();
    for (const DataFile& file : context.spec.data)
        if (!file.is_mixture()) reserved.push_back(data_placeholder(file));
    std::vector<std::string> known = reserved;
    for (std::string& name : names_of(context.entries)) known.push_back(std::move(name));
    known.insert(known.end(), columns.begin(), columns.end());
    for (const std::string& name : placeholders) {
        const bool is_column = is_in(columns, name);
        const bool is_parameter = may_name_parameter(context.entries, name);
        if (is_in(reserved, name)) {
            if (is_column)
                context.mistakes.value(node, key,
                                       "{" + name +
                                           "} means something else than the column of that name; "
                                           "give the column another name");
            else if (is_parameter)
                context.mistakes.value(node, key,
                                       "{" + name +
                                           "} means something else than the hyper-parameter of that name; "
                                           "give that another name in [space]");
        } else if (!is_parameter && !is_column) {
            context.mistakes.value(node, key,
                                   "unknown placeholder {" + name + "}" + base::suggestion(name, known) +
                                       "; known: " + base::join(known) + "; a brace is written '{{'");
        }
    }
}

} // namespace

void parse_program(ParseContext& context, TableReader& table) {
    ProgramSpec& program = context.spec.trainable.program.emplace();
    read_members(table, context.spec, context.trust_trainable);
    program.restart_growth = table.bytes("restart_growth").value_or(0);
    for (const char* other : {"builtin", "name"}) table.refuse(other, "is given beside command; give one of them");
    if (table.has("python"))
        parse_function(context, table, program);
    else
        parse_command(table, program);
    parse_flags(table, program);
    parse_printed(context, table, program);
    parse_rows(context, table, program);
    parse_directory(context, table, program);
    parse_env(table, program);
    parse_keep_env(table, program);
    check_kept(table, program);
    refuse_unknown_keys(context, table);

    context.program_info = {.name = program_name,
                            .description = "",
                            .options = {},
                            .can_checkpoint = program.checkpoints,
                            .any_option = true,
                            .metrics = {}};
    context.info = &context.program_info;
    context.spec.trainable.name = program_name;
}

void check_retry_on(const ParseContext& context, TableReader& failure) {
    const FailureSpec& spec = context.spec.failure;
    if (context.info != nullptr && !context.spec.trainable.program)
        failure.complain("retry_on", "is for programs (command, python), which have exit codes");
    else if (!spec.retry_on.empty() && spec.max_failures == 0)
        failure.complain("retry_on", "says what failure.max_failures is for, and that is 0: no failure is tried again");
}

/// Call after parse_space: the placeholders of the command are hyper-parameters.
void check_command(ParseContext& context) {
    if (!context.spec.trainable.program || context.trust_trainable) return;
    check_report(context);
    const Node* table = context.root.find("trainable");
    const bool is_function = !context.spec.trainable.program->function.empty();
    const Node* node = table == nullptr ? nullptr : table->find(is_function ? "python" : "command");
    if (is_function && context.paths.command)
        if (const std::string why = context.paths.command(*context.spec.trainable.program); !why.empty())
            context.mistakes.value(*node, "trainable.python", why);
    if (is_function) return check_launcher_variables(context);
    if (node == nullptr || !node->is(Node::Kind::string)) return;
    const std::string key = "trainable.command";
    std::vector<std::string> found;
    const auto command = CommandTemplate::read(node->text, context.spec.trainable.program->shell, found);
    for (const std::string& mistake : found) context.mistakes.value(*node, key, mistake);
    if (context.paths.command && found.empty())
        if (const std::string why = context.paths.command(*context.spec.trainable.program); !why.empty())
            context.mistakes.value(*node, key, why);
    const std::vector<std::string> placeholders = command.placeholders();
    if (context.spec.trainable.program->flags != Flags::off &&
        std::ranges::find(placeholders, "args") == placeholders.end())
        context.mistakes.value(*table->find("flags"), "trainable.flags",
                               "says how {args} writes booleans, but the command has no {args}");
    check_launcher_variables(context);
    if (context.spec.trainable.program->kept) check_kept_command(context, *node, placeholders);
    const auto columns = columns_of(context);
    if (context.names_are_known && columns) check_placeholders(context, *node, placeholders, *columns);
}

} // namespace ranktune::study
