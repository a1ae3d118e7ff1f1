// SPDX-License-Identifier: Apache-2.0
// [predict]: the program in which trained models predict.
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "study/options.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/printed_values.hpp"

namespace ranktune::study {

void parse_predict(ParseContext& context) {
    TableReader table = context.reader("predict");
    read_members(table, context.spec, context.trust_trainable);
    table.finish();
    PredictSpec& predict = context.spec.predict;
    if (table.table() == nullptr || context.trust_trainable) return;
    table.require("command", "a program that predicts, as in \"python3 predict.py {checkpoint}\"");
    const Node* command = table.table()->find("command");
    if (command == nullptr || !command->is(Node::Kind::string)) return;
    const auto& program = context.spec.trainable.program;
    const std::string beside = program ? common_directory(*program) : context.directory.string();
    const OptionInfo path{.name = "directory", .kind = OptionInfo::Kind::path, .description = ""};
    predict.directory = resolved(path, space::Value(predict.directory.empty() ? "." : predict.directory),
                                 predict.directory.empty() ? beside : context.directory.string())
                            .as_string();
    if (context.paths.directory)
        if (const std::string why = context.paths.directory(predict.directory); !why.empty())
            table.complain("directory", why);
    if (context.paths.command) {
        ProgramSpec predicting;
        predicting.command = predict.command;
        predicting.directory = predict.directory;
        if (const std::string why = context.paths.command(predicting); !why.empty()) table.complain("command", why);
    }
    // Of a study of predictions, `ranktune predict` has checked it against the study whose models predict.
    if (!context.space_is_valid || context.info == nullptr || context.info->name == predict_trainable) return;
    try {
        check_predict_command(context.spec, predict.command);
    } catch (const base::UsageError& error) {
        table.complain("command", error.what());
    }
}

} // namespace ranktune::study
