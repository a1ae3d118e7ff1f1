// SPDX-License-Identifier: Apache-2.0
#pragma once
// How each format is opened. All throw as Source::open.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "ranktune/data/source.hpp"

namespace ranktune::data {

using SourcePointer = std::shared_ptr<const Source>;

[[nodiscard]] SourcePointer open_npy(const std::string& path);
[[nodiscard]] SourcePointer open_raw(const std::string& path, const SourceOptions& options);
[[nodiscard]] SourcePointer open_safetensors(const std::string& path);
[[nodiscard]] SourcePointer open_tokens(const std::string& path, const SourceOptions& options);
[[nodiscard]] SourcePointer open_hdf5(const std::string& path, const SourceOptions& options);
[[nodiscard]] SourcePointer open_tar(const std::string& path);

/// Bytes of the rows that decode_rows writes; nullopt: of a table, which would have to be read; its first rows are
/// looked at. Throws as decode_rows.
[[nodiscard]] std::optional<std::uint64_t> decoded_bytes(const std::string& path, const SourceOptions& options);

/// The types of .safetensors: "F32". Of "BOOL", uint8.
[[nodiscard]] std::string_view safetensors_name(ElementType type);
[[nodiscard]] std::optional<ElementType> safetensors_type(std::string_view name);

/// How [data] says that the file is read.
[[nodiscard]] SourceOptions options_of(const study::DataFile& file);
/// Throws base::UsageError when one of dtype, shape, tokens and group is given and not among `read`. `format`: ".npy".
void refuse_unread(const std::string& path, const SourceOptions& options, std::string_view format,
                   std::initializer_list<std::string_view> read = {});

/// Throws base::FormatError "data file 'PATH': WHAT".
[[noreturn]] void refuse_file(const std::string& path, const std::string& what);

/// The command that makes one tar of a folder. A link would be packed without its bytes, and is refused here.
[[nodiscard]] inline std::string tar_command(const std::string& out, const std::string& folder) {
    return "tar --sort=name --dereference --hard-dereference -cf " + out + " -C " + folder + " .";
}

/// a * b; the largest number if the product is larger: no file has as many bytes.
[[nodiscard]] constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return b != 0 && a > most / b ? most : a * b;
}

} // namespace ranktune::data
