// SPDX-License-Identifier: Apache-2.0
// [data]: files and folders by name.
#include <algorithm>
#include <limits>

#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/key_rows.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

constexpr std::string_view data_forms =
    R"(needs a path, as in "train.h5", a table, as in { path = "train.bin", dtype = "uint16", tokens = 2048 }, )"
    R"(or a mixture, as in [{ source = "web", weight = 3 }, { source = "code" }])";

constexpr std::string_view orders[] = {"full", "lanes", "none"};
constexpr std::int64_t most_samples = std::numeric_limits<std::int64_t>::max();

std::vector<std::uint64_t> sample_shape(TableReader& table) {
    const Node* shape = table.take("shape");
    if (shape == nullptr) return {};
    std::vector<std::uint64_t> extents;
    for (const Node& item : shape->items)
        if (item.is(Node::Kind::integer) && item.integer > 0)
            extents.push_back(static_cast<std::uint64_t>(item.integer));
    if (extents.empty() || extents.size() != shape->items.size()) {
        table.complain("shape", "needs the extents of a sample, integers >= 1, as in [28, 28]");
        return {};
    }
    return extents;
}

KeyTable keys_of(const std::string& entry, std::initializer_list<const char*> names) {
    std::vector<std::string> known;
    for (const char* name : names) known.push_back(entry + "." + name);
    return KeyTable(std::move(known));
}

void read_order(TableReader& table, DataFile& file) {
    if (const auto order = table.one_of("shuffle", orders)) file.shuffle = orders[*order];
    file.shuffle_memory = table.bytes("shuffle_memory").value_or(0);
    file.drop_last = table.boolean("drop_last").value_or(false);
    if (file.shuffle_memory > 0 && (file.shuffle == "none" || file.shuffle == "full"))
        table.complain("shuffle_memory", "only goes with shuffle = \"lanes\", or with the order that the file gets");
}

/// `{ path = ..., dtype = ... }`. Reports every mistake.
DataFile file_in_table(ParseContext& context, const Node& node, const std::string& name) {
    const std::string entry = "data." + name;
    const KeyTable keys = keys_of(
        entry, {"path", "dtype", "shape", "tokens", "group", "decode", "shuffle", "shuffle_memory", "drop_last"});
    TableReader table(&node, entry, keys, context.mistakes);
    table.require("path", "the file or folder, relative to this file");
    DataFile file{.name = name, .path = table.string("path").value_or("")};
    file.dtype = table.string("dtype").value_or("");
    file.shape = sample_shape(table);
    file.tokens = static_cast<std::uint64_t>(table.integer("tokens", 1, most_samples).value_or(0));
    file.group = table.string("group").value_or("");
    file.decode = table.boolean("decode").value_or(false);
    read_order(table, file);
    const std::filesystem::path ending = std::filesystem::path(file.path).extension();
    if (file.decode && ending != ".csv" && ending != ".h5" && ending != ".hdf5")
        table.complain("decode",
                       "makes plain rows of tables (.csv) and of HDF5 (.h5, .hdf5); others are mapped as they are");
    if (file.decode && !context.spec.staging.stage)
        table.complain("decode", "is done while a file is copied: set data.stage = true");
    table.finish();
    return file;
}

/// `[{ source = ..., weight = ... }, ...]`. Reports every mistake.
DataFile mixture_in_list(ParseContext& context, const Node& node, const std::string& name) {
    const std::string entry = "data." + name;
    const KeyTable keys = keys_of(entry, {"source", "weight", "from"});
    DataFile mixture{.name = name};
    for (const Node& item : node.items) {
        TableReader table(&item, entry, keys, context.mistakes);
        table.require("source", "the name of a file of [data]");
        DataPart part{.source = table.string("source").value_or("")};
        if (const auto weight = table.number("weight", 0.0, std::numeric_limits<double>::infinity()))
            part.weight = *weight;
        if (part.weight == 0.0) table.complain("weight", "needs a number above 0; leave the source out instead");
        part.from = static_cast<std::uint64_t>(table.integer("from", 0, most_samples).value_or(0));
        table.finish();
        mixture.parts.push_back(std::move(part));
    }
    if (std::ranges::all_of(mixture.parts, [](const DataPart& part) { return part.from > 0; }))
        context.mistakes.value(node, entry, "needs a source that takes part from position 0 on");
    return mixture;
}

/// The sources of mixtures are files.
void check_parts(ParseContext& context, const Node& data) {
    std::vector<std::string> files;
    for (const DataFile& file : context.spec.data)
        if (!file.is_mixture()) files.push_back(file.name);
    for (const DataFile& mixture : context.spec.data)
        for (const DataPart& part : mixture.parts)
            if (!part.source.empty() && std::ranges::find(files, part.source) == files.end())
                context.mistakes.value(*data.find(mixture.name), "data." + mixture.name,
                                       "has the source " + in_quotes(part.source) + ", which is no file of [data]" +
                                           base::suggestion(part.source, std::span<const std::string>(files)) +
                                           (files.empty() ? "" : "; it has " + base::join(files)));
}

/// Reports every mistake.
DataFile file_of_entry(ParseContext& context, const Node& node, const std::string& name) {
    if (node.is(Node::Kind::table)) return file_in_table(context, node, name);
    if (node.is(Node::Kind::array) && !node.items.empty()) return mixture_in_list(context, node, name);
    const bool is_text = node.is(Node::Kind::string);
    if (!is_text || node.text.empty())
        context.mistakes.value(node, "data." + name,
                               std::string(data_forms) + ", not " + (is_text ? "\"\"" : std::string(kind_text(node))));
    return {.name = name, .path = node.text};
}

/// Why it cannot be used, or an empty string.
std::string data_problem(const PathChecks& paths, const DataFile& file) {
    std::string why = paths.file ? paths.file(file.path) : "";
    return why.empty() && paths.data && (file.has_options() || file.decode) ? paths.data(file) : why;
}

/// What [inputs] of a resolved file says of a file that is not read now.
std::string noted_content(const ParseContext& context, const DataFile& file) {
    const Node* inputs = context.root.find("inputs");
    const Node* content = inputs == nullptr ? nullptr : inputs->find("data." + file.name);
    return content != nullptr && content->is(Node::Kind::string) ? content->text : "";
}

/// `data=x.h5` on the command line may mean the option of the trainable.
void refuse_data(ParseContext& context, const Node& data) {
    const Node* trainable = context.root.find("trainable");
    const bool is_option = trainable != nullptr && trainable->find("data") != nullptr;
    context.mistakes.value(data, "data",
                           "needs a table, not " + std::string(kind_text(data)) +
                               (is_option ? "; did you mean the key trainable.data?" : ""));
}

/// Copies that would never be made. `stage = false` in the file or on the command line is a choice.
void check_staging(ParseContext& context, const Node& data) {
    const auto& files = context.spec.data;
    const Node* stage = data.find("stage");
    if (stage != nullptr && context.spec.staging.stage && std::ranges::all_of(files, &DataFile::is_mixture))
        context.mistakes.value(*stage, "data.stage",
                               "copies the files of [data], and there is none: name one, as in train = \"train.h5\", "
                               "whose path is then \"{data.train}\"");
    for (const char* key : {"directory", "must_fit"})
        if (const Node* node = data.find(key); node != nullptr && stage == nullptr)
            context.mistakes.value(*node, std::string("data.") + key, "is about copies; they need stage = true");
}

/// A node's own folder is no neighbour of the study file, which all nodes see.
void check_directory(ParseContext& context, const Node& data) {
    const std::string& directory = context.spec.staging.directory;
    if (const Node* node = data.find("directory"); node != nullptr && !directory.empty() && directory.front() != '/')
        context.mistakes.value(*node, "data.directory",
                               "needs an absolute path, as in \"/local/scratch\", not \"" + directory + "\"");
}

} // namespace

void parse_data(ParseContext& context) {
    const Node* data = context.root.find("data");
    if (data == nullptr) return;
    if (!data->is(Node::Kind::table)) return refuse_data(context, *data);
    TableReader keys = context.reader("data");
    read_members(keys, context.spec, context.trust_trainable);
    check_directory(context, *data);
    for (const auto& [name, node] : data->members) {
        const std::string key = "data." + name;
        if (const KeyRow* row = find_row(key); row != nullptr && row->read != nullptr) continue;
        if (!check_name(node, key, name, context.mistakes)) continue;
        const std::size_t before = context.mistakes.size();
        DataFile file = file_of_entry(context, node, name);
        if (file.is_mixture()) {
            if (context.paths.data && context.mistakes.size() == before)
                if (const std::string why = context.paths.data(file); !why.empty())
                    context.mistakes.value(node, key, why);
            context.spec.data.push_back(std::move(file));
            continue;
        }
        file.path = absolute_path(file.path, context.directory);
        if (context.mistakes.size() == before && !context.may_be_made(file.path))
            if (const std::string why = data_problem(context.paths, file); !why.empty())
                context.mistakes.value(node, key, why);
        if (context.paths.content && context.mistakes.size() == before) file.content = context.paths.content(file.path);
        if (file.content.empty()) file.content = noted_content(context, file);
        context.spec.data.push_back(std::move(file));
    }
    check_parts(context, *data);
    if (!context.trust_trainable) check_staging(context, *data); // a resolved file has what its study needs
}

} // namespace ranktune::study
