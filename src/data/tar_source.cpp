// SPDX-License-Identifier: Apache-2.0
// Members of a tar (POSIX ustar and pax, GNU's long names), mapped.

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/number_in.hpp"
#include "data/formats.hpp"
#include "data/mapped_file.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::data {

namespace {

constexpr std::size_t tar_block = 512;
using Bytes = std::span<const std::byte>;

/// A text that ends at a zero byte, or with its field.
std::string text_field(Bytes block, std::size_t begin, std::size_t length) {
    const auto* const text = reinterpret_cast<const char*>(block.data() + begin);
    return {text, std::find(text, text + length, '\0')};
}

/// Octal digits, or GNU's big-endian bytes of a large number.
std::optional<std::uint64_t> number_field(Bytes block, std::size_t begin, std::size_t length) {
    if ((block[begin] & std::byte{0x80}) != std::byte{0}) {
        std::uint64_t value = 0;
        for (std::size_t i = length - 8; i < length; ++i)
            value = value << 8U | static_cast<std::uint64_t>(block[begin + i]);
        return value;
    }
    std::string text = text_field(block, begin, length);
    std::erase(text, ' ');
    return base::number_in<std::uint64_t>(text, 8);
}

bool has_checksum(Bytes block) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < tar_block; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<std::uint64_t>(block[i]);
    return number_field(block, 148, 8) == sum;
}

/// "27 path=images/0001.jpg\n", in pax's records.
std::string pax_entry(Bytes record, const std::string& key) {
    const std::string text(reinterpret_cast<const char*>(record.data()), record.size());
    for (std::size_t at = 0; at < text.size();) {
        std::size_t length = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), length);
        if (error != std::errc() || length == 0 || length > text.size() - at) return {};
        const std::size_t begin = static_cast<std::size_t>(end - text.data()) + 1;
        const std::size_t equals = text.find('=', begin);
        if (equals + 1 < at + length && text.substr(begin, equals - begin) == key)
            return text.substr(equals + 1, at + length - equals - 2);
        at += length;
    }
    return {};
}

enum class Holds : std::uint8_t { bytes, nothing, elsewhere };

/// Of a member, by its letter. Directories, devices, pipes, labels and access lists hold no sample. Others may.
Holds what_holds(char kind) {
    constexpr std::string_view files("0\0007", 3);
    constexpr std::string_view others = "3456DVA";
    if (files.find(kind) != std::string_view::npos) return Holds::bytes;
    return others.find(kind) != std::string_view::npos ? Holds::nothing : Holds::elsewhere;
}

[[noreturn]] void refuse_member(const std::string& path, const std::string& name, char kind) {
    const bool is_link = kind == '1' || kind == '2';
    refuse_file(path, "member '" + name + "' is " +
                          (is_link ? "a link: its bytes are not in it"
                                   : "sparse, or of a type that is not read ('" + std::string(1, kind) + "')") +
                          "; make the archive anew: " + tar_command("OUT.tar", "FOLDER"));
}

/// What headers say of the member that follows.
struct Announced {
    std::string name{};
    std::optional<std::uint64_t> size{};
    bool sparse = false;
};

bool is_header(char kind) { return kind == 'L' || kind == 'K' || kind == 'x' || kind == 'X' || kind == 'g'; }

void read_header(char kind, Bytes content, Announced& next) {
    if (kind == 'L') next.name = text_field(content, 0, content.size());
    if (kind != 'x' && kind != 'X') return; // of all members, or the name that a link leads to
    next.name = pax_entry(content, "path");
    std::uint64_t value = 0;
    const std::string text = pax_entry(content, "size");
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) next.size = value;
    next.sparse = !pax_entry(content, "GNU.sparse.size").empty() || !pax_entry(content, "GNU.sparse.realsize").empty();
    if (next.sparse && next.name.empty()) next.name = pax_entry(content, "GNU.sparse.name");
}

struct Member {
    std::string name;
    Bytes bytes;
};

/// All files of the archive, in its order.
std::vector<Member> members_of(const std::string& path, Bytes archive) {
    std::vector<Member> members;
    Announced next;
    for (std::size_t at = 0; archive.size() - at >= tar_block;) {
        const Bytes block = archive.subspan(at, tar_block);
        if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) return members;
        const std::string where = "member at byte " + std::to_string(at);
        if (!has_checksum(block)) refuse_file(path, where + ": this is no tar, or damaged (checksum)");
        const auto kind = static_cast<char>(block[156]);
        const auto size = next.size && !is_header(kind) ? next.size : number_field(block, 124, 12);
        if (!size || *size > archive.size() - at - tar_block) refuse_file(path, where + ": the archive is cut off");
        const Bytes content = archive.subspan(at + tar_block, *size);
        const std::uint64_t padded = (*size + tar_block - 1) / tar_block * tar_block;
        at += std::min<std::uint64_t>(tar_block + padded, archive.size() - at);
        if (is_header(kind)) {
            read_header(kind, content, next);
            continue;
        }
        const bool posix = text_field(block, 257, 5) == "ustar" && block[262] == std::byte{0};
        const std::string prefix = posix ? text_field(block, 345, 155) : std::string();
        const std::string short_name = (prefix.empty() ? "" : prefix + "/") + text_field(block, 0, 100);
        const Announced told = std::exchange(next, {});
        const std::string& name = told.name.empty() ? short_name : told.name;
        if (told.sparse || what_holds(kind) == Holds::elsewhere) refuse_member(path, name, kind);
        if (what_holds(kind) == Holds::bytes) members.push_back({name, content});
    }
    refuse_file(path, "the archive is cut off: its end is missing");
}

class TarSource final : public Source {
  public:
    TarSource(const std::string& path, std::unique_ptr<MappedFile> file, std::vector<Field> fields,
              std::vector<Bytes> parts)
        : Source(path, fields,
                 {parts.size() / fields.size(), file->bytes().size() / (parts.size() / fields.size()), 1}),
          file_(std::move(file)),
          parts_(std::move(parts)) {}
    void gather(std::size_t field, std::span<const std::uint64_t>, std::span<std::byte>) const override {
        throw base::UsageError("data file '" + path() + "': members '" + fields()[field].name +
                               "' have different lengths; read them with bytes(), and decode them in a map");
    }
    [[nodiscard]] Bytes bytes(std::size_t field, std::uint64_t sample) const override {
        return parts_.at(sample * fields().size() + field);
    }

  private:
    std::unique_ptr<MappedFile> file_;
    std::vector<Bytes> parts_; ///< [samples, fields]
};

} // namespace

SourcePointer open_tar(const std::string& path) {
    auto file = std::make_unique<MappedFile>(path);
    std::vector<Field> fields;
    std::map<std::string, std::size_t> field_of;
    std::vector<std::map<std::size_t, Bytes>> samples;
    std::string last;
    for (const Member& member : members_of(path, file->bytes())) {
        const std::size_t base = member.name.rfind('/') + 1; // 0: no folder
        const std::size_t point = member.name.find('.', base + 1);
        if (point == std::string::npos || member.name[base] == '.') continue; // no data, as in WebDataset
        const std::string key = member.name.substr(0, point);
        const auto [field, is_new] = field_of.try_emplace(member.name.substr(point + 1), fields.size());
        if (is_new) fields.push_back({field->first, ElementType::uint8, {}, true});
        if (samples.empty() || key != last) samples.emplace_back();
        last = key;
        if (!samples.back().emplace(field->second, member.bytes).second)
            refuse_file(path, "member '" + member.name + "' is there twice");
    }
    if (samples.empty()) refuse_file(path, "holds no files of the form NAME.FIELD");
    std::vector<Bytes> parts(samples.size() * fields.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
        for (const auto& [field, bytes] : samples[i]) parts[i * fields.size() + field] = bytes;
    return std::make_shared<TarSource>(path, std::move(file), std::move(fields), std::move(parts));
}

} // namespace ranktune::data
