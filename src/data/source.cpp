// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/formats.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::data {

namespace {

struct Known {
    ElementType type;
    std::string_view name;
    std::string_view in_safetensors;
    std::size_t size;
};
constexpr std::array<Known, 12> known_types{{{ElementType::int8, "int8", "I8", 1},
                                             {ElementType::uint8, "uint8", "U8", 1},
                                             {ElementType::int16, "int16", "I16", 2},
                                             {ElementType::uint16, "uint16", "U16", 2},
                                             {ElementType::int32, "int32", "I32", 4},
                                             {ElementType::uint32, "uint32", "U32", 4},
                                             {ElementType::int64, "int64", "I64", 8},
                                             {ElementType::uint64, "uint64", "U64", 8},
                                             {ElementType::float16, "float16", "F16", 2},
                                             {ElementType::bfloat16, "bfloat16", "BF16", 2},
                                             {ElementType::float32, "float32", "F32", 4},
                                             {ElementType::float64, "float64", "F64", 8}}};

const Known& known(ElementType type) { return known_types.at(static_cast<std::size_t>(type)); }

/// Other formats that are not read, and the Python function that reads them as columns.
struct ColumnReader {
    std::string_view ending;
    std::string_view module;
    std::string_view function;
};
constexpr std::array<ColumnReader, 5> column_readers{{{".parquet", "pandas", "read_parquet"},
                                                      {".arrow", "pandas", "read_feather"},
                                                      {".feather", "pandas", "read_feather"},
                                                      {".csv", "pandas", "read_csv"},
                                                      {".npz", "numpy", "load"}}};

/// Those that are packed, and what unpacks them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> packings{{
    {".tgz", "gunzip -c IN > OUT.tar"},
    {".gz", "gunzip IN"},
}};

/// How a file becomes one that is read. Empty: none is known.
std::string conversion(std::string_view ending) {
    for (const ColumnReader& reader : column_readers)
        if (ending == reader.ending)
            return "python3 -c 'import " + std::string(reader.module) + " as m, h5py; d = m." +
                   std::string(reader.function) +
                   "(\"IN\"); f = h5py.File(\"OUT.h5\", \"w\"); [f.create_dataset(c, data=d[c]) for c in d]'" +
                   (ending == ".csv" ? "; a file of [data] is decoded on the way: { path = \"IN\", decode = true } "
                                       "with stage = true"
                                     : "");
    for (const auto& [packed, line] : packings)
        if (ending == packed) return std::string(line);
    if (ending == ".tfrecord" || ending == ".mdb")
        return "unpack the records into a folder, then: " + tar_command("OUT.tar", "FOLDER");
    return {};
}

} // namespace

std::size_t size_of(ElementType type) { return known(type).size; }
std::string_view name(ElementType type) { return known(type).name; }
std::optional<ElementType> element_type(std::string_view name) {
    const auto found = std::ranges::find(known_types, name, &Known::name);
    return found == known_types.end() ? std::nullopt : std::optional(found->type);
}
std::string_view safetensors_name(ElementType type) { return known(type).in_safetensors; }
std::optional<ElementType> safetensors_type(std::string_view name) {
    if (name == "BOOL") return ElementType::uint8;
    const auto found = std::ranges::find(known_types, name, &Known::in_safetensors);
    return found == known_types.end() ? std::nullopt : std::optional(found->type);
}

std::size_t Field::bytes() const {
    if (varying) return 0;
    std::uint64_t bytes = size_of(type);
    for (const std::size_t extent : shape) bytes = product(bytes, extent);
    return bytes;
}

void refuse_unread(const std::string& path, const SourceOptions& options, std::string_view format,
                   std::initializer_list<std::string_view> read) {
    const std::pair<std::string_view, bool> given[] = {{"dtype", !options.dtype.empty()},
                                                       {"shape", !options.shape.empty()},
                                                       {"tokens", options.tokens > 0},
                                                       {"group", !options.group.empty()}};
    for (const auto& [name, is_given] : given)
        if (is_given && std::ranges::find(read, name) == read.end())
            throw base::UsageError("data file '" + path + "': `" + std::string(name) + "` says nothing about " +
                                   std::string(format) + "; remove it");
}

void refuse_file(const std::string& path, const std::string& what) {
    throw base::FormatError("data file '" + path + "': " + what);
}

Source::Source(std::string path, std::vector<Field> fields, Extent extent)
    : path_(std::move(path)), fields_(std::move(fields)), extent_(extent) {
    if (extent_.sample_bytes == 0)
        for (const Field& field : fields_) extent_.sample_bytes += field.bytes();
    extent_.chunk_samples = std::min(extent_.chunk_samples, std::max<std::uint64_t>(extent_.samples, 1));
}

std::size_t Source::field(std::string_view name) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        if (fields_[i].name == name) return i;
        names.push_back(fields_[i].name);
    }
    throw base::UsageError("data file '" + path_ + "' has no field '" + std::string(name) + "'" +
                           base::suggestion(name, std::span<const std::string>(names)) + "; it has " +
                           base::join_some(names, 10));
}

std::span<const std::byte> Source::bytes(std::size_t field, std::uint64_t) const {
    throw base::UsageError("data file '" + path_ + "': samples of the field '" + fields_.at(field).name +
                           "' are of one size: gather() reads them");
}

std::shared_ptr<const Source> Source::open(const std::string& path, const SourceOptions& options) {
    const std::string ending = std::filesystem::path(path).extension().string();
    if (std::error_code error; std::filesystem::is_directory(path, error))
        throw base::UsageError("data file '" + path +
                               "': is a folder; make one file of it: " + tar_command("OUT.tar", path));
    if (!options.dtype.empty() && !element_type(options.dtype)) {
        std::vector<std::string_view> names;
        for (const Known& type : known_types) names.push_back(type.name);
        throw base::UsageError("data file '" + path + "': dtype is '" + options.dtype + "', not one of " +
                               base::join(names));
    }
    if (ending == ".h5" || ending == ".hdf5" || ending == ".hdf") {
        refuse_unread(path, options, "HDF5", {"group"});
        return open_hdf5(path, options);
    }
    if (ending == ".npy" || ending == ".safetensors" || ending == ".tar") {
        refuse_unread(path, options, ending);
        return ending == ".npy" ? open_npy(path) : ending == ".tar" ? open_tar(path) : open_safetensors(path);
    }
    if (const std::string line = conversion(ending); !line.empty())
        throw base::UsageError("data file '" + path + "': " + ending + " is not read directly; convert it: " + line);
    if (!options.shape.empty()) {
        refuse_unread(path, options, "raw numbers, which have a `shape`", {"dtype", "shape"});
        return open_raw(path, options);
    }
    if (options.tokens > 0 || ending == ".bin") {
        refuse_unread(path, options, "tokens", {"dtype", "tokens"});
        return open_tokens(path, options);
    }
    throw base::UsageError("data file '" + path +
                           "': the format is unknown; .npy, .safetensors, .h5, .hdf5, .tar and .bin are read, and raw "
                           "numbers of a `dtype` and `shape`");
}

SourceOptions options_of(const study::DataFile& file) {
    SourceOptions options{.group = file.group,
                          .dtype = file.dtype,
                          .shape = {file.shape.begin(), file.shape.end()},
                          .tokens = file.tokens};
    if (file.shuffle_memory > 0) options.memory = file.shuffle_memory; // what is open at once has to stay
    return options;
}

std::shared_ptr<const Source> Source::open(const study::DataFile& file) {
    if (file.is_mixture())
        throw base::UsageError("data." + file.name + " is a mixture of files: open it by trainables::open_data");
    return open(file.path, options_of(file));
}

} // namespace ranktune::data
