// SPDX-License-Identifier: Apache-2.0
// [predict]: the program in which trained models predict.
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "study/options.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/printed_values.hpp"

namespace ranktune::study {

namespace {

/// False: there is a mistake, which has been reported.
bool read_python(const ParseContext& context, TableReader& table) {
    PredictSpec& predict = context.spec.predict;
    const auto& trains = context.spec.trainable.program;
    if (predict.interpreter.empty() && trains) predict.interpreter = trains->interpreter;
    predict.interpreter = interpreter_path(predict.interpreter, context.directory);
    try {
        predict.function = python_target(predict.function, context.directory);
    } catch (const base::UsageError& error) {
        table.complain("python", error.what());
        return false;
    }
    return true;
}

} // namespace

void parse_predict(ParseContext& context) {
    TableReader table = context.reader("predict");
    read_members(table, context.spec, context.trust_trainable);
    table.finish();
    PredictSpec& predict = context.spec.predict;
    if (table.table() == nullptr || context.trust_trainable) return;
    const bool calls = table.has("python");
    if (calls) {
        table.refuse("command", "does not go with python, which names a class or function; give one of them");
    } else {
        table.require("command",
                      "a program that predicts, as in \"python3 predict.py {checkpoint}\", or a class or "
                      "function: python = \"predict.py:predict\"");
        table.refuse("interpreter", "is for python = \"FILE:FUNCTION\"");
    }
    const Node* given = table.table()->find(calls ? "python" : "command");
    if (given == nullptr || !given->is(Node::Kind::string)) return;
    const auto& program = context.spec.trainable.program;
    const std::string beside = program ? common_directory(*program) : context.directory.string();
    predict.directory =
        predict.directory.empty() ? absolute_path(".", beside) : absolute_path(predict.directory, context.directory);
    if (context.paths.directory)
        if (const std::string why = context.paths.directory(predict.directory); !why.empty())
            table.complain("directory", why);
    if (calls && !read_python(context, table)) return;
    if (context.paths.command)
        if (const std::string why = context.paths.command(program_of(predict)); !why.empty())
            table.complain(calls ? "python" : "command", why);
    if (calls) return;
    // Of a study of predictions, `ranktune predict` has checked it against the study whose models predict.
    if (!context.space_is_valid || context.info == nullptr || context.info->name == predict_trainable) return;
    try {
        check_predict_command(context.spec, predict.command);
    } catch (const base::UsageError& error) {
        table.complain("command", error.what());
    }
}

} // namespace ranktune::study
