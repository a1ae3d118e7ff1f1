// SPDX-License-Identifier: Apache-2.0
#include "simulate/tables.hpp"

#include "ranktune/study/parse.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/toml_tree.hpp"

namespace ranktune::simulate {

void read_tables(const std::string& text, const std::string& file, const std::vector<std::string>& keys,
                 const std::function<void(const TableNamed&)>& read) {
    study::Mistakes mistakes;
    study::Node root;
    try {
        root = study::parse_toml(text);
    } catch (const study::TomlError& error) {
        mistakes.add(error.at(), "", "not valid TOML: " + std::string(error.what()));
        throw study::StudyFileError(file, mistakes.sorted());
    }
    const study::KeyTable known(keys);
    for (const auto& [name, node] : root.members)
        if (!known.has_table(name)) mistakes.key(node, name, known.explain_unknown_table(name));
    read([&](const char* name) { return study::TableReader(root.find(name), name, known, mistakes); });
    if (!mistakes.empty()) throw study::StudyFileError(file, mistakes.sorted());
}

} // namespace ranktune::simulate
