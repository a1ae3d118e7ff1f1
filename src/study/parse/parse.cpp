// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/parse.hpp"

#include <algorithm>
#include <filesystem>

#include "study/parse/key_rows.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/parse_tables.hpp"
#include "study/parse/toml_tree.hpp"

namespace ranktune::study {
namespace {

std::string place(const Mistake& mistake) {
    if (mistake.line == 0) return "-";
    return std::to_string(mistake.line) + ":" + std::to_string(mistake.column);
}

/// A message that continues from the key ("... is Ray Tune's name") needs no colon.
std::string sentence(const Mistake& mistake) {
    if (mistake.key.empty()) return mistake.message;
    return mistake.key + (mistake.message.starts_with("is ") ? " " : ": ") + mistake.message;
}

std::string whole_message(const std::string& file, const std::vector<Mistake>& mistakes) {
    std::string text = std::to_string(mistakes.size()) + (mistakes.size() == 1 ? " mistake in " : " mistakes in ") +
                       file + ", nothing was started";
    std::size_t width = 0;
    for (const Mistake& mistake : mistakes) width = std::max(width, place(mistake).size());
    for (const Mistake& mistake : mistakes) {
        const std::string at = place(mistake);
        text += "\n  " + at + std::string(width - at.size() + 2, ' ') + sentence(mistake);
    }
    return text;
}

[[noreturn]] void refuse(const std::string& file, const Mistakes& mistakes) {
    throw StudyFileError(file, mistakes.sorted());
}

Node parse_tree(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                Mistakes& mistakes) {
    Node root;
    try {
        root = parse_toml(text);
    } catch (const TomlError& error) {
        mistakes.add(error.at(), "", "not valid TOML: " + std::string(error.what()));
        refuse(file, mistakes);
    }
    for (const std::string& override_text : overrides) {
        try {
            apply_override(root, override_text);
        } catch (const base::UsageError& error) {
            mistakes.add({}, "", error.what());
        }
    }
    return root;
}

/// A key outside all tables, as in `--set lr=0.1`: says where a key of this name is, or nothing.
std::string place_in_a_table(const Node& root, const std::string& name, const Node& node) {
    if (node.is(Node::Kind::table)) return "";
    for (const char* table : {"space", "trainable"})
        if (const Node* in = root.find(table); in != nullptr && in->find(name) != nullptr)
            return "unknown table; did you mean the key " + std::string(table) + "." + name + "?";
    return "";
}

void check_tables(const Node& root, const KeyTable& keys, Mistakes& mistakes) {
    const auto known = accepted_tables();
    for (const auto& [name, node] : root.members) {
        if (std::ranges::find(known, name) != known.end()) continue;
        const std::string place = place_in_a_table(root, name, node);
        mistakes.key(node, name, place.empty() ? keys.explain_unknown_table(name) : place);
    }
}

/// `mistakes`: those found before; all are reported together.
StudySpec parse_tables(const Node& root, const std::string& file, const Known& known, const PathChecks& paths,
                       const RankCheck& ranks, bool trust_trainable, Mistakes& mistakes) {
    StudySpec spec;
    const KeyTable keys(known.algorithms);
    check_tables(root, keys, mistakes);
    ParseContext context{.root = root,
                         .spec = spec,
                         .mistakes = mistakes,
                         .known = known,
                         .keys = keys,
                         .paths = paths,
                         .rank_check = ranks,
                         .directory = std::filesystem::path(file).parent_path(),
                         .trust_trainable = trust_trainable};
    parse_study_table(context);
    parse_data(context);
    parse_trainable(context);
    parse_constraints(context);
    parse_space(context);
    parse_resources(context);
    check_space_against_trainable(context);
    check_command(context);
    parse_searcher(context);
    parse_scheduler(context);
    check_repeats(context);
    check_kinds_of_workers(context);
    parse_stop(context);
    parse_checkpoint(context);
    parse_predict(context);
    for (const char* table : {"failure", "journal", "run", "slurm", "hooks"}) {
        TableReader reader = context.reader(table);
        read_members(reader, spec, trust_trainable);
        if (reader.has("retry_on")) check_retry_on(context, reader);
        reader.finish();
    }
    parse_side_tasks(context);
    if (!mistakes.empty()) refuse(file, mistakes);
    return spec;
}

} // namespace

StudyFileError::StudyFileError(const std::string& file, std::vector<Mistake> mistakes)
    : UsageError(whole_message(file, mistakes)), mistakes_(std::move(mistakes)) {}

StudySpec parse_study(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                      const Known& known, const PathChecks& paths, const RankCheck& ranks) {
    Mistakes mistakes;
    const Node root = parse_tree(text, file, overrides, mistakes);
    return parse_tables(root, file, known, paths, ranks, false, mistakes);
}

StudySpec parse_resolved_study(const std::string& text, const std::string& file, const Algorithms& algorithms,
                               const std::vector<std::string>& overrides) {
    Mistakes mistakes;
    const Node root = parse_tree(text, file, overrides, mistakes);
    return parse_tables(root, file, {{}, algorithms}, {}, {}, true, mistakes);
}

} // namespace ranktune::study
