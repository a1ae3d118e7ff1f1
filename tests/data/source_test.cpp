// SPDX-License-Identifier: Apache-2.0
// Damaged headers: an error, never a crash or a row from outside of the file. (formats_test.py reads whole files.)
#include "ranktune/data/source.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "data/chunk_filters.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace source_test {

using namespace ranktune;
using namespace ranktune::data;

namespace {

/// A folder that is removed at the end.
class Folder {
  public:
    Folder() : path_(std::filesystem::temp_directory_path() / ("ranktune-source-" + std::to_string(getpid()))) {
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string write(const std::string& name, const std::string& content) const {
        std::ofstream(path_ / name, std::ios::binary) << content;
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

template <class T>
std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string npy() {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (6, 2), }";
    header.resize(117, ' ');
    header += '\n';
    return "\x93NUMPY" + std::string("\1\0", 2) + raw(static_cast<std::uint16_t>(header.size())) + header +
           std::string(48, 'x');
}

std::string safetensors(const std::string& header, std::size_t data) {
    return raw(static_cast<std::uint64_t>(header.size())) + header + std::string(data, 'x');
}

std::string tar() {
    std::string block(512, '\0');
    block.replace(0, 5, "a.cls");
    block.replace(124, 11, "00000000003");
    block[156] = '0';
    block.replace(257, 5, "ustar");
    unsigned sum = 8 * ' ';
    for (const char c : block) sum += static_cast<unsigned char>(c);
    char digits[9];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    block.replace(148, 7, digits, 7);
    block[155] = ' ';
    return block + "yes" + std::string(509 + 1024, '\0');
}

std::string index() {
    return std::string("MMIDIDX\0\0", 9) + raw(std::uint64_t{1}) + '\x08' + raw(std::uint64_t{2}) +
           raw(std::uint64_t{3}) + raw(std::int32_t{3}) + raw(std::int32_t{4}) + raw(std::uint64_t{0}) +
           raw(std::uint64_t{6}) + raw(std::uint64_t{0}) + raw(std::uint64_t{1}) + raw(std::uint64_t{2});
}

/// Reads all that there is; an error is as good.
void read_all(const std::string& path) {
    try {
        const auto source = Source::open(path);
        const std::uint64_t last = source->samples() - 1;
        for (std::size_t field = 0; field < source->fields().size(); ++field) {
            std::vector<std::byte> row(source->fields()[field].bytes());
            if (source->fields()[field].varying) {
                const auto bytes = source->bytes(field, last);
                row.assign(bytes.begin(), bytes.end());
            } else if (row.size() < 1000) {
                source->gather(field, std::span(&last, 1), row);
            }
        }
    } catch (const base::FormatError&) {
    } catch (const base::UsageError&) {
    }
}

std::string message_of(const std::string& path) {
    return ranktune::testing::error_of<base::FormatError>([&] { return Source::open(path); });
}

} // namespace

TEST_CASE("whole examples of the damaged files are read", "[data]") {
    const Folder folder;
    CHECK(Source::open(folder.write("x.npy", npy()))->samples() == 6);
    const auto archive = Source::open(folder.write("x.tar", tar()));
    CHECK(archive->samples() == 1);
    CHECK(archive->bytes(archive->field("cls"), 0).size() == 3);
    static_cast<void>(folder.write("x.idx", index()));
    const auto tokens = Source::open(folder.write("x.bin", std::string(14, 'x')));
    CHECK(tokens->samples() == 2);
    CHECK(tokens->bytes(0, 1).size() == 8);
}

TEST_CASE("an option that a format does not read is refused", "[data]") {
    const Folder folder;
    const auto mistake = [&](const std::string& name, const std::string& content, const SourceOptions& options) {
        const std::string path = folder.write(name, content);
        const std::string text =
            ranktune::testing::error_of<base::UsageError>([&] { return Source::open(path, options); });
        return text.substr(std::min(text.size(), text.find(path) + path.size() + 3));
    };
    for (const char* name : {"x.npy", "x.tar", "x.safetensors"}) {
        const std::string ending = std::filesystem::path(name).extension();
        CHECK(mistake(name, "", {.dtype = "uint8"}) == "`dtype` says nothing about " + ending + "; remove it");
        CHECK(mistake(name, "", {.shape = {2}}) == "`shape` says nothing about " + ending + "; remove it");
        CHECK(mistake(name, "", {.tokens = 2}) == "`tokens` says nothing about " + ending + "; remove it");
        CHECK(mistake(name, "", {.group = "g"}) == "`group` says nothing about " + ending + "; remove it");
    }
    CHECK(mistake("x.h5", "", {.group = "g", .tokens = 2}) == "`tokens` says nothing about HDF5; remove it");
    CHECK(mistake("x.bin", "", {.dtype = "uint8", .shape = {2}, .tokens = 2}) ==
          "`tokens` says nothing about raw numbers, which have a `shape`; remove it");
    CHECK(mistake("x.bin", "", {.group = "g", .tokens = 2}) == "`group` says nothing about tokens; remove it");
    CHECK(mistake("x.bin", std::string(14, 'x'), {.dtype = "uint16", .tokens = 2}).empty());
    const std::string indexed = folder.write("x.idx", index());
    CHECK(mistake("x.bin", std::string(14, 'x'), {.dtype = "uint8", .tokens = 2}) ==
          "dtype is 'uint8', and '" + indexed + "' says uint16; remove `dtype`");
    CHECK(mistake("x.bin", std::string(14, 'x'), {.dtype = "uint16", .tokens = 2}).empty());
}

TEST_CASE("files with any byte changed, or cut off anywhere, give an error or rows within the file", "[data]") {
    const Folder folder;
    static_cast<void>(folder.write("x.bin", std::string(14, 'x')));
    const std::string tensors = safetensors(R"({"x":{"dtype":"F32","shape":[6,2],"data_offsets":[0,48]}})", 48);
    const std::pair<std::string, std::string> files[] = {
        {"y.npy", npy()}, {"y.safetensors", tensors}, {"y.tar", tar()}, {"x.idx", index()}};
    base::RngStream random(1, base::user_purpose(0));
    for (const auto& [name, content] : files) {
        const std::string read = name == "x.idx" ? "x.bin" : name;
        for (std::size_t at = 0; at < std::min<std::size_t>(content.size(), 600); ++at) {
            for (const int value : {0, 0xFF, static_cast<int>(random.below(256))}) {
                std::string changed = content;
                changed[at] = static_cast<char>(value);
                const std::string path = folder.write(name, changed);
                read_all(std::filesystem::path(path).replace_filename(read).string());
            }
            const std::string path = folder.write(name, content.substr(0, at));
            read_all(std::filesystem::path(path).replace_filename(read).string());
        }
    }
}

TEST_CASE("sizes that overflow are refused, and the message names the tensor", "[data]") {
    const Folder folder;
    const auto tensor = [&](const std::string& shape, const std::string& offsets) {
        return message_of(folder.write(
            "x.safetensors",
            safetensors(R"({"weight":{"dtype":"F64","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 64)));
    };
    CHECK(tensor("[8]", "[0,64]").empty());
    for (const char* shape : {"[2305843009213693953]", "[4294967296,4294967296]", "[18446744073709551615,2]"})
        CHECK(tensor(shape, "[0,8]").find("x.safetensors': tensor 'weight' ") != std::string::npos);
    CHECK(tensor("[8]", "[18446744073709551608,56]").find("weight") != std::string::npos);
    CHECK(tensor("[8]", "[8,72]").find("weight") != std::string::npos);
    CHECK(tensor("[0]", "[0,0]").find("weight") != std::string::npos);
    CHECK(tensor("\"8\"", "[0,64]").find("header") != std::string::npos);
    CHECK(tensor("[8]", "[0]").find("header") != std::string::npos);
}

TEST_CASE("filters of a chunk are undone in reverse, without those that were skipped", "[data]") {
    const auto bytes = [](std::initializer_list<int> values) {
        std::vector<std::byte> result;
        for (const int value : values) result.push_back(static_cast<std::byte>(value));
        return result;
    };
    constexpr ChunkFilter shuffle[] = {ChunkFilter::shuffle};
    CHECK(undo_filters(bytes({1, 3, 5, 2, 4, 6, 7}), shuffle, 0, 2, 7) == bytes({1, 2, 3, 4, 5, 6, 7}));
    CHECK(undo_filters(bytes({1, 3, 2, 4}), shuffle, 1, 2, 4) == bytes({1, 3, 2, 4}));
    constexpr ChunkFilter checked[] = {ChunkFilter::shuffle, ChunkFilter::fletcher32};
    // Words 0x0102, 0x0300: sums 0x0402 and 0x0504.
    CHECK(undo_filters(bytes({1, 2, 3, 0x02, 0x04, 0x04, 0x05}), checked, 0, 1, 3) == bytes({1, 2, 3}));
    CHECK_THROWS_AS(undo_filters(bytes({1, 2, 4, 0x02, 0x04, 0x04, 0x05}), checked, 0, 1, 3), base::FormatError);
    CHECK_THROWS_AS(undo_filters(bytes({1, 2}), checked, 0, 1, 3), base::FormatError);
    constexpr ChunkFilter deflate[] = {ChunkFilter::deflate};
    CHECK_THROWS_AS(undo_filters(bytes({1, 2, 3}), deflate, 0, 1, 3), base::FormatError);
}

TEST_CASE("joined sources are one, and have to have the same fields", "[data]") {
    const Folder folder;
    const auto make = [&](const std::string& name, char value, const std::string& field = "x") {
        std::string content =
            safetensors(R"({")" + field + R"(":{"dtype":"U8","shape":[3,2],"data_offsets":[0,6]}})", 0);
        return Source::open(folder.write(name, content + std::string(6, value)));
    };
    const JoinedSource joined({make("a.safetensors", 'a'), make("b.safetensors", 'b')});
    CHECK(joined.samples() == 6);
    CHECK(joined.begin(1) == 3);
    const std::uint64_t samples[] = {5, 0, 2, 3};
    std::string rows(8, ' ');
    joined.gather(0, samples, std::as_writable_bytes(std::span(rows)));
    CHECK(rows == "bbaaaabb");
    CHECK_THROWS_AS(JoinedSource({make("a.safetensors", 'a'), make("c.safetensors", 'c', "y")}), base::UsageError);
}

} // namespace source_test
