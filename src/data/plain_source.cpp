// SPDX-License-Identifier: Apache-2.0
// Files whose rows lie one after the other: .npy, raw numbers, .safetensors, and tokens. They are mapped.

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/formats.hpp"
#include "data/plain_source.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::data {

namespace {

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// NumPy's "<f4".
std::optional<ElementType> numpy_type(const std::string& text) {
    if (text.size() < 3 || (text[0] != '<' && text[0] != '|')) return std::nullopt;
    const std::string kind = text.substr(1);
    if (kind == "b1") return ElementType::uint8;
    const std::string bits = std::to_string(8 * std::strtoul(kind.c_str() + 1, nullptr, 10));
    const std::string family = kind[0] == 'f' ? "float" : kind[0] == 'i' ? "int" : kind[0] == 'u' ? "uint" : "?";
    return element_type(family + bits);
}

/// What follows `'key':` in the header of a .npy file, a dictionary of Python, up to `end`.
std::string entry_of(const std::string& header, const std::string& key, char end) {
    const std::size_t at = header.find("'" + key + "':");
    if (at == std::string::npos) return {};
    const std::size_t begin = header.find_first_not_of(' ', at + key.size() + 3);
    const std::size_t stop = begin == std::string::npos ? begin : header.find(end, begin + 1);
    return stop == std::string::npos ? std::string() : header.substr(begin, stop + 1 - begin);
}

/// "(3, 4)"; nullopt: it is something else.
std::optional<std::vector<std::size_t>> numpy_shape(const std::string& text) {
    if (text.size() < 2 || text.front() != '(' || text.back() != ')') return std::nullopt;
    std::vector<std::size_t> shape;
    for (std::size_t at = 1; at + 1 < text.size();) {
        if (text[at] == ' ' || text[at] == ',') {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (text[end] >= '0' && text[end] <= '9') ++end;
        if (end == at || end - at > 18) return std::nullopt;
        shape.push_back(std::stoull(text.substr(at, end - at)));
        at = end;
    }
    return shape;
}

/// One tensor of the header. `data` is where the data begin, `samples` what the others have (0: the first one).
Placed tensor_of(const std::string& path, const std::string& name, const nlohmann::json& entry, std::uint64_t data,
                 std::uint64_t size, std::uint64_t& samples) {
    const auto refuse = [&](const std::string& what) { refuse_file(path, "tensor '" + name + "' " + what); };
    const auto type = safetensors_type(entry.at("dtype").get<std::string>());
    if (!type) refuse("has the type " + entry.at("dtype").get<std::string>() + ", which is not read");
    auto shape = entry.at("shape").get<std::vector<std::size_t>>();
    if (shape.empty() || shape[0] == 0) refuse("has no samples: its first extent counts them");
    if (samples != 0 && shape[0] != samples)
        refuse("has " + std::to_string(shape[0]) + " samples, and others have " + std::to_string(samples));
    samples = shape[0];
    const auto begin = entry.at("data_offsets").at(0).get<std::uint64_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::uint64_t>();
    Placed placed{{name, *type, {shape.begin() + 1, shape.end()}}, data + begin};
    if (begin > end || end > size - data || end - begin != product(samples, placed.field.bytes()))
        refuse("does not fit its offsets, or the file is cut off");
    return placed;
}

/// Megatron's index: the type of the tokens, and where each sequence lies.
struct TokenIndex {
    ElementType type = ElementType::uint16;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> sequences; ///< first byte, bytes
};

TokenIndex read_index(const std::string& path, std::uint64_t data_bytes) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    constexpr std::string_view magic("MMIDIDX\0\0", 9);
    constexpr std::size_t head = 34;
    if (bytes.size() < head || text_of(bytes.first(9)) != magic || number_at<std::uint64_t>(bytes, 9) != 1)
        refuse_file(path, "is no index of Megatron (MMIDIDX, version 1)");
    constexpr ElementType types[] = {ElementType::uint8,   ElementType::int8,  ElementType::int16,
                                     ElementType::int32,   ElementType::int64, ElementType::float64,
                                     ElementType::float32, ElementType::uint16};
    const auto code = static_cast<std::size_t>(bytes[17]);
    if (code < 1 || code > 8) refuse_file(path, "has the unknown type code " + std::to_string(code));
    TokenIndex index{types[code - 1], {}};
    const auto count = number_at<std::uint64_t>(bytes, 18);
    if (count > (bytes.size() - head) / 12) refuse_file(path, "is cut off");
    if (count == 0) refuse_file(path, "has no sequences");
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto length = number_at<std::int32_t>(bytes, head + 4 * i);
        const auto begin = number_at<std::uint64_t>(bytes, head + 4 * count + 8 * i);
        const std::uint64_t size = static_cast<std::uint64_t>(std::max(length, 0)) * size_of(index.type);
        if (length < 0 || begin > data_bytes || size > data_bytes - begin)
            refuse_file(path, "sequence " + std::to_string(i) + " lies outside of the tokens");
        index.sequences.emplace_back(begin, size);
    }
    return index;
}

/// Whole sequences of a token file.
class Sequences final : public Source {
  public:
    Sequences(const std::string& path, std::unique_ptr<MappedFile> file, TokenIndex index)
        : Source(path, {{"tokens", index.type, {}, true}},
                 {index.sequences.size(), file->bytes().size() / std::max<std::size_t>(index.sequences.size(), 1), 1}),
          file_(std::move(file)),
          index_(std::move(index)) {}
    void gather(std::size_t, std::span<const std::uint64_t>, std::span<std::byte>) const override {
        throw base::UsageError("data file '" + path() +
                               "': sequences have different lengths; set `tokens`, or read them with bytes()");
    }
    [[nodiscard]] std::span<const std::byte> bytes(std::size_t, std::uint64_t sample) const override {
        const auto [begin, size] = index_.sequences.at(sample);
        return file_->bytes().subspan(begin, size);
    }

  private:
    std::unique_ptr<MappedFile> file_;
    TokenIndex index_;
};

} // namespace

PlainSource::PlainSource(const std::string& path, std::unique_ptr<MappedFile> file, std::vector<Placed> placed,
                         Extent extent)
    : Source(
          path,
          [&] {
              std::vector<Field> fields;
              for (const Placed& one : placed) fields.push_back(one.field);
              return fields;
          }(),
          extent),
      file_(std::move(file)),
      placed_(std::move(placed)) {}

void PlainSource::gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const {
    const std::size_t size = fields()[field].bytes();
    const std::byte* const rows = file_->bytes().data() + placed_[field].offset;
    for (std::size_t i = 0; i < samples.size(); ++i) std::memcpy(out.data() + i * size, rows + samples[i] * size, size);
}

SourcePointer open_npy(const std::string& path) {
    auto file = std::make_unique<MappedFile>(path);
    const auto bytes = file->bytes();
    if (bytes.size() < 12 || text_of(bytes.first(6)) != "\x93NUMPY") refuse_file(path, "is not of NumPy (.npy)");
    const bool short_header = bytes[6] == std::byte{1};
    const std::size_t begin = short_header ? 10 : 12;
    const std::size_t length = short_header ? number_at<std::uint16_t>(bytes, 8) : number_at<std::uint32_t>(bytes, 8);
    if (length > bytes.size() - begin) refuse_file(path, "is cut off within its header");
    const std::string header = text_of(bytes.subspan(begin, length));
    const std::string descr = entry_of(header, "descr", '\'');
    const auto type = descr.size() > 2 ? numpy_type(descr.substr(1, descr.size() - 2)) : std::nullopt;
    if (!type)
        refuse_file(path, "descr: " + (descr.empty() ? "not a plain type" : descr) +
                              " is not read; save numbers, little-endian");
    auto shape = numpy_shape(entry_of(header, "shape", ')'));
    if (!shape || shape->empty() || (*shape)[0] == 0) refuse_file(path, "shape: the first extent has to count samples");
    if (shape->size() > 1 && header.find("'fortran_order': True") != std::string::npos)
        refuse_file(path, "fortran_order: rows are not contiguous; save numpy.ascontiguousarray(x)");
    const std::uint64_t samples = (*shape)[0];
    Placed placed{{"x", *type, {shape->begin() + 1, shape->end()}}, begin + length};
    if (product(samples, placed.field.bytes()) > bytes.size() - placed.offset)
        refuse_file(path, "shape: the file is cut off");
    return std::make_shared<PlainSource>(path, std::move(file), std::vector{std::move(placed)}, Extent{samples});
}

SourcePointer open_raw(const std::string& path, const SourceOptions& options) {
    const auto type = element_type(options.dtype);
    if (!type) throw base::UsageError("data file '" + path + "': raw numbers need a `dtype`, as \"float32\"");
    auto file = std::make_unique<MappedFile>(path);
    const Field field{"x", *type, options.shape};
    const std::uint64_t size = file->bytes().size();
    if (field.bytes() == 0 || size == 0 || size % field.bytes() != 0)
        refuse_file(path, "has " + std::to_string(size) + " bytes, no multiple of a sample's " +
                              std::to_string(field.bytes()) + ": check dtype and shape");
    const Extent extent{size / field.bytes()};
    return std::make_shared<PlainSource>(path, std::move(file), std::vector{Placed{field, 0}}, extent);
}

SourcePointer open_tokens(const std::string& path, const SourceOptions& options) {
    auto file = std::make_unique<MappedFile>(path);
    const std::string index_path = std::filesystem::path(path).replace_extension(".idx").string();
    const std::uint64_t size = file->bytes().size();
    std::optional<TokenIndex> index;
    if (std::filesystem::exists(index_path)) index = read_index(index_path, size);
    if (index && !options.dtype.empty() && element_type(options.dtype) != index->type)
        throw base::UsageError("data file '" + path + "': dtype is '" + options.dtype + "', and '" + index_path +
                               "' says " + std::string(name(index->type)) + "; remove `dtype`");
    if (index && options.tokens == 0) return std::make_shared<Sequences>(path, std::move(file), std::move(*index));
    const auto type = index ? std::optional(index->type) : element_type(options.dtype);
    if (!type || options.tokens == 0)
        throw base::UsageError("data file '" + path +
                               "': a token file needs `dtype` (\"uint16\") and `tokens`, the number in a sample, "
                               "or Megatron's index '" +
                               index_path + "'");
    const Field field{"tokens", *type, {options.tokens}};
    const Extent extent{size / std::max<std::uint64_t>(field.bytes(), 1)};
    if (extent.samples == 0) refuse_file(path, "has fewer than " + std::to_string(options.tokens) + " tokens");
    return std::make_shared<PlainSource>(path, std::move(file), std::vector{Placed{field, 0}}, extent);
}

SourcePointer open_safetensors(const std::string& path) {
    auto file = std::make_unique<MappedFile>(path);
    const auto bytes = file->bytes();
    const std::uint64_t length = bytes.size() < 8 ? 0 : number_at<std::uint64_t>(bytes, 0);
    if (length < 2 || length > bytes.size() - 8) refuse_file(path, "has no header of safetensors, or is cut off");
    std::vector<Placed> placed;
    Extent extent;
    try {
        const auto header = nlohmann::json::parse(text_of(bytes.subspan(8, length)));
        for (const auto& [name, entry] : header.items()) {
            if (name == "__metadata__") {
                if (entry.contains("ranktune.chunk_samples"))
                    extent.chunk_samples = std::stoull(entry.at("ranktune.chunk_samples").get<std::string>());
                continue;
            }
            placed.push_back(tensor_of(path, name, entry, 8 + length, bytes.size(), extent.samples));
        }
    } catch (const nlohmann::json::exception& error) {
        refuse_file(path, std::string("header: ") + error.what());
    } catch (const std::logic_error&) { // of stoull
        refuse_file(path, "header: ranktune.chunk_samples is no number");
    }
    if (placed.empty()) refuse_file(path, "holds no tensors");
    return std::make_shared<PlainSource>(path, std::move(file), std::move(placed), extent);
}

} // namespace ranktune::data
