// SPDX-License-Identifier: Apache-2.0
#include "study/toml_text.hpp"

#include <string_view>

#include "ranktune/base/utf8.hpp"
#include "ranktune/study/parse.hpp"
#include "study/parse/key_rows.hpp"

namespace ranktune::study {

std::string text_of(const std::string& value) {
    std::string text = "\"";
    for (std::string_view left = value; !left.empty();) {
        const base::Rune rune = base::first_rune(left);
        if (rune.code == '"' || rune.code == '\\') {
            (text += '\\') += left.front();
        } else if (rune.valid && base::is_unseen(rune)) {
            text += base::toml_escape(rune.code);
        } else {
            text += left.substr(0, rune.bytes);
        }
        left.remove_prefix(rune.bytes);
    }
    return text + "\"";
}
std::string text_of(const space::Value& value) {
    if (value.is_none()) return "\"None\""; // see as_in
    if (value.is_string()) return text_of(value.as_string());
    if (!value.is_list()) return value.literal();
    std::string text;
    for (const space::Value& item : value.as_list()) text += (text.empty() ? "" : ", ") + text_of(item);
    return "[" + text + "]";
}
std::string text_of(const DataPart& part) {
    std::string text = "{ source = " + text_of(part.source);
    if (part.weight != 1.0) text += ", weight = " + text_of(part.weight);
    if (part.from > 0) text += ", from = " + text_of(part.from);
    return text + " }";
}
std::string text_of(const DataFile& file) {
    std::string parts;
    for (const DataPart& part : file.parts) parts += (parts.empty() ? "" : ", ") + text_of(part);
    if (file.is_mixture()) return "[" + parts + "]";
    std::string options;
    if (!file.dtype.empty()) options += ", dtype = " + text_of(file.dtype);
    std::string extents;
    for (const std::uint64_t extent : file.shape) extents += (extents.empty() ? "" : ", ") + text_of(extent);
    if (!extents.empty()) options += ", shape = [" + extents + "]";
    if (file.tokens > 0) options += ", tokens = " + text_of(file.tokens);
    if (!file.group.empty()) options += ", group = " + text_of(file.group);
    if (file.decode) options += ", decode = true";
    if (!file.shuffle.empty()) options += ", shuffle = " + text_of(file.shuffle);
    if (file.shuffle_memory > 0) options += ", shuffle_memory = " + text_of(file.shuffle_memory);
    if (file.drop_last) options += ", drop_last = true";
    const std::string path = text_of(file.path);
    return options.empty() ? path : "{ path = " + path + options + " }";
}
std::string text_of(double value) { return space::float_text(value); }
std::string text_of(base::Duration value) { return text_of(duration_text(value)); }
std::string text_of(const std::vector<std::uint32_t>& values) {
    std::string text = "[";
    for (const std::uint32_t value : values) text += (text.size() == 1 ? "" : ", ") + std::to_string(value);
    return text + "]";
}
std::string text_of(Mode mode) { return text_of(std::string(name(mode))); }
std::string text_of(Bind bind) {
    for (const auto& word : bind_words)
        if (word.value == bind) return text_of(std::string(word.text));
    return {};
}

} // namespace ranktune::study
