// SPDX-License-Identifier: Apache-2.0
#include "storage/results.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "ranktune/base/utf8.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/shell.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::storage {
namespace {

const char* text_of(Column::Role role) {
    switch (role) {
        case Column::Role::metric:
            return "metric";
        case Column::Role::parameter:
            return "parameter";
        case Column::Role::field:
            break;
    }
    return "field";
}

/// Names in the file, one per column.
std::vector<std::string> link_names(const ResultTable& table) {
    std::set<std::string> fields;
    std::vector<ChosenName> chosen;
    for (const Column& column : table.columns) {
        if (column.role != Column::Role::field)
            chosen.push_back({column.name, text_of(column.role)});
        else if (!fields.insert(column.name).second)
            throw std::invalid_argument("two columns of table '" + table.name + "' are called '" + column.name + "'");
        if (column.size() != table.columns.front().size())
            throw std::invalid_argument("columns of table '" + table.name + "' differ in length");
    }
    const std::vector<std::string> names = column_names(fields, chosen);
    std::vector<std::string> links;
    auto next = names.begin();
    for (const Column& column : table.columns)
        links.push_back(hdf5::link_name(column.role == Column::Role::field ? column.name : *next++));
    return links;
}

void describe(hid_t dataset, const Column& column) {
    hdf5::put_attribute(dataset, "units", column.units.empty() ? "1" : column.units);
    const std::string& long_name = column.long_name.empty() ? column.name : column.long_name;
    hdf5::put_attribute(dataset, "long_name", base::as_utf8(long_name));
    hdf5::put_attribute(dataset, "role", text_of(column.role));
    hdf5::put_attribute(dataset, "name", base::as_utf8(column.name));
}

/// Bytes of a column of numbers; empty for texts.
std::span<const std::byte> number_bytes(const Column& column) {
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&column.values))
        return std::as_bytes(std::span(*integers));
    if (const auto* floats = std::get_if<std::vector<double>>(&column.values)) return std::as_bytes(std::span(*floats));
    return {};
}

void add_column(hdf5::ShellBuilder& builder, hid_t group, const std::string& name, const Column& column) {
    if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values)) {
        std::vector<std::string> cells;
        std::transform(texts->begin(), texts->end(), std::back_inserter(cells), base::as_utf8);
        const hdf5::DatasetHandle dataset = hdf5::put_strings(group, name, cells);
        describe(dataset.get(), column);
        return;
    }
    const bool integers = std::holds_alternative<std::vector<std::int64_t>>(column.values);
    describe(builder.add_bulk(group, name, integers ? H5T_STD_I64LE : H5T_IEEE_F64LE, {column.size()}), column);
}

hdf5::Shell build(const Results& results) {
    const hdf5::QuietErrors quiet;
    hdf5::ShellBuilder builder(0);
    hdf5::put_attribute(builder.file(), "schema_version", results_schema);
    hdf5::put_attribute(builder.file(), "format", "ranktune results");
    hdf5::put_attribute(builder.file(), "study", base::as_utf8(results.study));
    hdf5::put_attribute(builder.file(), "uuid", results.uuid);
    hdf5::put_attribute(builder.file(), "metric", base::as_utf8(results.metric));
    hdf5::put_attribute(builder.file(), "mode", results.mode);
    if (!results.objectives.empty())
        hdf5::put_attribute(builder.file(), "objectives", base::as_utf8(results.objectives));
    hdf5::put_attribute(builder.file(), "version", results.version);
    hdf5::put_attribute(builder.file(), "written", results.written);
    for (const ResultTable& table : results.tables) {
        const std::vector<std::string> names = link_names(table);
        const hdf5::GroupHandle group = hdf5::create_group(builder.file(), table.name);
        hdf5::put_attribute(group.get(), "long_name", table.long_name.empty() ? table.name : table.long_name);
        for (std::size_t i = 0; i < names.size(); ++i) add_column(builder, group.get(), names[i], table.columns[i]);
    }
    return builder.finish();
}

} // namespace

std::vector<std::string> column_names(std::set<std::string> taken, std::vector<ChosenName> chosen) {
    for (ChosenName& one : chosen) one.name = base::as_utf8(one.name);
    std::vector<std::string> names(chosen.size());
    for (std::size_t i = 0; i < names.size(); ++i)
        if (taken.insert(chosen[i].name).second) names[i] = chosen[i].name;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!names[i].empty() || chosen[i].name.empty()) continue;
        names[i] = chosen[i].name;
        do {
            names[i].insert(0, chosen[i].role + ".");
        } while (!taken.insert(names[i]).second);
    }
    return names;
}

std::size_t Column::size() const {
    return std::visit([](const auto& list) { return list.size(); }, values);
}

void publish_results(FileSystem& files, const std::string& path, const Results& results) {
    const hdf5::Shell shell = hdf5_call([&] { return build(results); });
    files.write_whole(path, [&](File& file) {
        file.write_at(0, shell.metadata);
        file.truncate(shell.size);
        std::size_t bulk = 0;
        for (const ResultTable& table : results.tables) {
            for (const Column& column : table.columns) {
                if (std::holds_alternative<std::vector<std::string>>(column.values)) continue;
                file.write_at(shell.offsets.at(bulk++), number_bytes(column));
            }
        }
    });
}

} // namespace ranktune::storage
