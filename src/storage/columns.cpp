// SPDX-License-Identifier: Apache-2.0
#include "storage/results.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "ranktune/base/error.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::storage {
namespace {

std::vector<std::string> variable_texts(hid_t dataset, hid_t space, std::size_t count) {
    const hdf5::TypeHandle type = hdf5::string_type();
    std::vector<char*> raw(count);
    hdf5::check(H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()), "a column of strings");
    std::vector<std::string> texts;
    for (const char* text : raw) texts.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(type.get(), space, H5P_DEFAULT, raw.data());
    return texts;
}

std::vector<std::string> fixed_texts(hid_t dataset, hid_t stored, std::size_t count) {
    const std::size_t width = H5Tget_size(stored);
    std::vector<char> raw(count * width);
    hdf5::check(H5Dread(dataset, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()), "a column of strings");
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text(raw.data() + i * width, width);
        texts.emplace_back(text.substr(0, text.find('\0')));
    }
    return texts;
}

template <class T>
std::vector<T> numbers(hid_t dataset, hid_t memory_type, std::size_t count) {
    std::vector<T> values(count);
    hdf5::check(H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "a column of numbers");
    return values;
}

/// nullopt: this is no column.
std::optional<Column::Values> values_of(hid_t dataset) {
    const hdf5::SpaceHandle space(hdf5::check(H5Dget_space(dataset), "the extent of a column"));
    if (H5Sget_simple_extent_ndims(space.get()) != 1) return std::nullopt;
    const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
    const hdf5::TypeHandle type(hdf5::check(H5Dget_type(dataset), "the type of a column"));
    switch (H5Tget_class(type.get())) {
        case H5T_INTEGER:
            return numbers<std::int64_t>(dataset, H5T_NATIVE_INT64, count);
        case H5T_FLOAT:
            return numbers<double>(dataset, H5T_NATIVE_DOUBLE, count);
        case H5T_STRING:
            if (H5Tis_variable_str(type.get()) > 0) return variable_texts(dataset, space.get(), count);
            return fixed_texts(dataset, type.get(), count);
        default:
            return std::nullopt;
    }
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* names) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
}

} // namespace

std::vector<Column> read_columns(const std::string& path) {
    return hdf5_call([&] {
        const hdf5::QuietErrors quiet;
        try {
            const hdf5::FileHandle file(hdf5::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "the file"));
            std::vector<std::string> names;
            hdf5::check(H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names), "the root");
            std::vector<Column> columns;
            for (const std::string& name : names) {
                hdf5::DatasetHandle dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
                if (!dataset) continue; // a group
                if (auto values = values_of(dataset.get()))
                    columns.push_back({name, Column::Role::field, {}, {}, std::move(*values)});
            }
            return columns;
        } catch (const base::FormatError& error) {
            throw base::FormatError("'" + path + "' cannot be read as HDF5: " + error.what());
        }
    });
}

} // namespace ranktune::storage
