// SPDX-License-Identifier: Apache-2.0
#include "storage/hdf5/hdf5.hpp"

#include <cstddef>
#include <stdexcept>

#include "ranktune/base/error.hpp"

namespace ranktune::storage::hdf5 {
namespace {

/// The innermost entry of the error stack names the cause.
herr_t innermost(unsigned, const H5E_error2_t* entry, void* out) {
    auto& text = *static_cast<std::string*>(out);
    if (text.empty() && entry->desc != nullptr) text = entry->desc;
    return 0;
}

/// A binary floating-point type of 16 bits with `exponent` bits between the sign and the fraction; HDF5 has no name for
/// these before version 1.14. Any HDF5 converts them to float when it reads.
TypeHandle float16_type(std::size_t exponent) {
    const std::size_t fraction = 15 - exponent;
    TypeHandle type(check(H5Tcopy(H5T_IEEE_F32LE), "type"));
    check(H5Tset_fields(type.get(), 15, fraction, exponent, 0, fraction), "type");
    check(H5Tset_size(type.get(), 2), "type");
    check(H5Tset_ebias(type.get(), (std::size_t{1} << (exponent - 1)) - 1), "type");
    return type;
}

} // namespace

QuietErrors::QuietErrors() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietErrors::~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

void fail(const std::string& what) {
    std::string reason;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &reason);
    throw base::FormatError("HDF5: " + what + (reason.empty() ? "" : " (" + reason + ")"));
}

FileHandle open_unlocked(const std::string& path) {
    const PropertiesHandle access(H5Pcreate(H5P_FILE_ACCESS));
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access.get(), false, true);
#endif
    return FileHandle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
}

TypeHandle string_type() {
    TypeHandle type(check(H5Tcopy(H5T_C_S1), "string type"));
    check(H5Tset_size(type.get(), H5T_VARIABLE), "string type");
    check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "string type");
    return type;
}

TypeHandle stored_type(base::DType type) {
    const auto copy = [](hid_t known) { return TypeHandle(check(H5Tcopy(known), "type")); };
    switch (type) {
        case base::DType::float32:
            return copy(H5T_IEEE_F32LE);
        case base::DType::float64:
            return copy(H5T_IEEE_F64LE);
        case base::DType::int32:
            return copy(H5T_STD_I32LE);
        case base::DType::int64:
            return copy(H5T_STD_I64LE);
        case base::DType::uint8:
            return copy(H5T_STD_U8LE);
        case base::DType::uint64:
            return copy(H5T_STD_U64LE);
        case base::DType::float16:
            return float16_type(5);
        case base::DType::bfloat16:
            return float16_type(8);
    }
    throw std::logic_error("unknown type of numbers");
}

void put_attribute(hid_t object, const char* name, const std::string& value) {
    const TypeHandle type = string_type();
    const SpaceHandle space(check(H5Screate(H5S_SCALAR), "scalar"));
    const AttributeHandle attribute(
        check(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), name));
    const char* text = value.c_str();
    check(H5Awrite(attribute.get(), type.get(), &text), name);
}

void put_attribute(hid_t object, const char* name, std::uint64_t value) {
    const SpaceHandle space(check(H5Screate(H5S_SCALAR), "scalar"));
    const AttributeHandle attribute(
        check(H5Acreate2(object, name, H5T_STD_U64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), name));
    check(H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &value), name);
}

void set_attribute(hid_t object, const char* name, std::uint64_t value) {
    const AttributeHandle attribute(check(H5Aopen(object, name, H5P_DEFAULT), name));
    check(H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &value), name);
}

std::string get_string(hid_t object, const char* name) {
    const AttributeHandle attribute(check(H5Aopen(object, name, H5P_DEFAULT), name));
    const TypeHandle stored(check(H5Aget_type(attribute.get()), name));
    if (H5Tget_class(stored.get()) != H5T_STRING || H5Tis_variable_str(stored.get()) <= 0) fail(name);
    const TypeHandle type = string_type();
    char* text = nullptr;
    check(H5Aread(attribute.get(), type.get(), &text), name);
    std::string value = text != nullptr ? text : "";
    H5free_memory(text);
    return value;
}

std::uint64_t get_uint(hid_t object, const char* name) {
    const AttributeHandle attribute(check(H5Aopen(object, name, H5P_DEFAULT), name));
    const TypeHandle stored(check(H5Aget_type(attribute.get()), name));
    if (H5Tget_class(stored.get()) != H5T_INTEGER) fail(name);
    std::uint64_t value = 0;
    check(H5Aread(attribute.get(), H5T_NATIVE_UINT64, &value), name);
    return value;
}

std::string link_name(std::string_view text) {
    if (text.empty()) return "%";
    if (text == ".") return "%2E";
    std::string name;
    for (const char c : text) {
        switch (c) {
            case '%':
                name += "%25";
                break;
            case '/':
                name += "%2F";
                break;
            case '\0':
                name += "%00";
                break;
            default:
                name += c;
        }
    }
    return name;
}

GroupHandle create_group(hid_t where, const std::string& name) {
    return GroupHandle(check(H5Gcreate2(where, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), name.c_str()));
}

DatasetHandle put_strings(hid_t where, const std::string& name, const std::vector<std::string>& values) {
    const TypeHandle type = string_type();
    const hsize_t size = values.size();
    const SpaceHandle space(check(H5Screate_simple(1, &size, nullptr), "extent"));
    DatasetHandle dataset(check(
        H5Dcreate2(where, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), name.c_str()));
    if (values.empty()) return dataset;
    std::vector<const char*> pointers;
    pointers.reserve(values.size());
    for (const std::string& value : values) pointers.push_back(value.c_str());
    check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), name.c_str());
    return dataset;
}

} // namespace ranktune::storage::hdf5
