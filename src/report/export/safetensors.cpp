// SPDX-License-Identifier: Apache-2.0
#include "report/export/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "ranktune/base/error.hpp"

namespace ranktune::report {
namespace {

std::string_view type_name(base::DType type) {
    constexpr std::string_view names[] = {"F32", "F64", "I32", "I64", "U8", "U64", "F16", "BF16"};
    static_assert(std::size(names) == std::size(base::dtypes));
    const auto at = static_cast<std::size_t>(type);
    if (at >= std::size(names)) throw base::FormatError("a tensor has an unknown type");
    return names[at];
}

using Tensors = std::vector<const study::MemoryState::Tensor*>;

std::string header_of(const Tensors& tensors, const std::map<std::string, std::string>& metadata) {
    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!metadata.empty()) header["__metadata__"] = metadata;
    std::uint64_t offset = 0;
    for (const auto* tensor : tensors) {
        const std::uint64_t end = offset + tensor->bytes.size();
        header[tensor->info.name] = {
            {"dtype", type_name(tensor->info.type)}, {"shape", tensor->info.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
}

} // namespace

bool is_weight(std::string_view tensor) {
    constexpr std::array<std::string_view, 4> beside = {"optimizer.", "trainer.", "input.", "output."};
    return std::ranges::none_of(beside, [&](std::string_view prefix) { return tensor.starts_with(prefix); });
}

void write_safetensors(const study::MemoryState& state, bool all, const std::map<std::string, std::string>& metadata,
                       std::ostream& out) {
    Tensors tensors;
    for (const auto& tensor : state.stored_tensors())
        if (all || is_weight(tensor.info.name)) tensors.push_back(&tensor);
    if (tensors.empty()) throw base::UsageError("the checkpoint holds no weights; --all writes whatever it holds");
    // Wider types first, so that all tensors are aligned: readers map the file and view its bytes as numbers.
    std::ranges::stable_sort(tensors, std::ranges::greater(),
                             [](const auto* tensor) { return base::size_of(tensor->info.type); });
    const std::string header = header_of(tensors, metadata);
    std::array<char, 8> size{};
    for (std::size_t i = 0; i < size.size(); ++i) size[i] = static_cast<char>((header.size() >> (8 * i)) & 0xFFU);
    out.write(size.data(), size.size());
    out << header;
    for (const auto* tensor : tensors)
        out.write(reinterpret_cast<const char*>(tensor->bytes.data()),
                  static_cast<std::streamsize>(tensor->bytes.size()));
}

} // namespace ranktune::report
