// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owned HDF5 handles and checked calls. Everything here runs on the HDF5 thread (storage/hdf5/thread.hpp).

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/dtype.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::storage::hdf5 {

template <herr_t (*Close)(hid_t)>
struct HandleTraits {
    using Value = hid_t;
    static constexpr hid_t null() noexcept { return H5I_INVALID_HID; }
    static void close(hid_t id) noexcept { static_cast<void>(Close(id)); }
};
template <herr_t (*Close)(hid_t)>
using Handle = UniqueHandle<HandleTraits<Close>>;

using FileHandle = Handle<H5Fclose>;
using GroupHandle = Handle<H5Gclose>;
using DatasetHandle = Handle<H5Dclose>;
using SpaceHandle = Handle<H5Sclose>;
using TypeHandle = Handle<H5Tclose>;
using AttributeHandle = Handle<H5Aclose>;
using PropertiesHandle = Handle<H5Pclose>;

/// Suppresses HDF5's error printing during its lifetime (errors are thrown instead); restores the previous setting.
class QuietErrors {
  public:
    QuietErrors();
    ~QuietErrors();
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

  private:
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

/// Throws base::FormatError with `what` and the innermost reason of the library's error stack.
[[noreturn]] void fail(const std::string& what);
/// Returns a result of the library, or throws (see fail) when it is negative.
template <class T>
T check(T result, const char* what) {
    if (result < 0) fail(what);
    return result;
}

/// For reading a file that nobody writes: some parallel file systems refuse locks. Empty: it cannot be opened.
[[nodiscard]] FileHandle open_unlocked(const std::string& path);

/// Variable-length UTF-8 string.
[[nodiscard]] TypeHandle string_type();
/// Little-endian, as in memory (base/digest.cpp asserts it).
[[nodiscard]] TypeHandle stored_type(base::DType type);

void put_attribute(hid_t object, const char* name, const std::string& value);
void put_attribute(hid_t object, const char* name, std::uint64_t value);
/// Overwrites an existing attribute.
void set_attribute(hid_t object, const char* name, std::uint64_t value);
/// Throw base::FormatError when the attribute is missing or has another type.
[[nodiscard]] std::string get_string(hid_t object, const char* name);
[[nodiscard]] std::uint64_t get_uint(hid_t object, const char* name);

/// A link name for any text, as HDF5 gives a meaning to "/" and to a lone ".": "%", "/" and zero bytes become %25, %2F
/// and %00, a lone "." becomes %2E, the empty text becomes "%". Different texts have different link names.
[[nodiscard]] std::string link_name(std::string_view text);

[[nodiscard]] GroupHandle create_group(hid_t where, const std::string& name);
/// A one-dimensional data set of strings, written whole.
[[nodiscard]] DatasetHandle put_strings(hid_t where, const std::string& name, const std::vector<std::string>& values);

} // namespace ranktune::storage::hdf5
