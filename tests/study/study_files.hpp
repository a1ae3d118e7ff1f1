// SPDX-License-Identifier: Apache-2.0
#pragma once
// Study files for the tests of the parser, and short ways to parse them.

#include <string>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "support/files.hpp"
#include "support/known.hpp"

namespace ranktune::study::testing {

using ranktune::testing::read_file;

/// `mlp` has options of every kind; `curve` takes anything; `sleeper` cannot save checkpoints.
inline std::vector<TrainableInfo> known_trainables() {
    using Kind = OptionInfo::Kind;
    TrainableInfo mlp{
        .name = "mlp",
        .description = "multi-layer perceptron",
        .options = {{.name = "data", .kind = Kind::path, .required = true, .description = "HDF5 file"},
                    {.name = "lr", .kind = Kind::number, .description = "", .low = 0.0, .may_change = true},
                    {.name = "batch_size", .kind = Kind::integer, .description = "", .low = 1.0, .may_change = true},
                    {.name = "hidden", .kind = Kind::integer_list, .description = "", .low = 1.0},
                    {.name = "optimizer", .kind = Kind::string, .description = "", .accepted = {"sgd", "adam"}},
                    {.name = "momentum", .kind = Kind::number, .description = "", .low = 0.0, .high = 1.0},
                    {.name = "dropout", .kind = Kind::number, .description = "", .low = 0.0, .high = 1.0},
                    {.name = "nesterov", .kind = Kind::boolean, .description = ""},
                    {.name = "tag", .kind = Kind::string, .description = ""},
                    {.name = "sgd.decay", .kind = Kind::number, .description = ""}},
        .metrics = {"train_loss", "val_loss", "val_accuracy"}};
    TrainableInfo curve{.name = "curve", .description = "synthetic", .options = {}, .any_option = true, .metrics = {}};
    TrainableInfo sleeper{.name = "sleeper",
                          .description = "sleeps",
                          .options = {},
                          .can_checkpoint = false,
                          .any_option = true,
                          .metrics = {}};
    return {mlp, curve, sleeper};
}

/// These, and the algorithms of the library.
inline Known known() { return ranktune::testing::known(known_trainables()); }

/// The tables of a correct study; a test replaces what it is about.
struct Parts {
    std::string study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nnum_trials = 10\nmax_iterations = 27\n";
    std::string trainable = "builtin = \"mlp\"\ndata = \"d.h5\"\n";
    std::string space = "lr = \"loguniform(1e-4, 1.0)\"\n";
    std::string rest;

    [[nodiscard]] std::string text() const {
        return "[study]\n" + study + "[trainable]\n" + trainable + "[space]\n" + space + rest;
    }
};

/// The same with a trainable that takes any option.
inline Parts free_parts() {
    Parts parts;
    parts.trainable = "name = \"curve\"\n";
    return parts;
}

inline StudySpec parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return parse_study(text, "/studies/s.toml", overrides, known());
}

inline StudySpec parse_resolved(const std::string& text, const std::string& file = "/studies/resolved.toml") {
    return parse_resolved_study(text, file, ranktune::testing::built_in_algorithms());
}

/// The mistakes as lines `line:column key: message`; empty when there are none.
inline std::vector<std::string> mistakes(const std::string& text, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> lines;
    try {
        static_cast<void>(parse(text, overrides));
    } catch (const StudyFileError& error) {
        for (const Mistake& mistake : error.mistakes())
            lines.push_back(std::to_string(mistake.line) + ":" + std::to_string(mistake.column) + " " + mistake.key +
                            ": " + mistake.message);
    }
    return lines;
}

/// All of them in one string, for messages of failing tests and for studies with exactly one mistake.
inline std::string mistake(const std::string& text, const std::vector<std::string>& overrides = {}) {
    std::string all;
    for (const std::string& line : mistakes(text, overrides)) all += (all.empty() ? "" : "\n") + line;
    return all;
}

} // namespace ranktune::study::testing
