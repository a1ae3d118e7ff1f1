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
    return value.is_list() ? text_of(value.as_list()) : value.literal();
}
std::string text_of(const DataPart& part) {
    std::string text = "{ source = " + text_of(part.source);
    if (part.weight != 1.0) text += ", weight = " + text_of(part.weight);
    if (part.from > 0) text += ", from = " + text_of(part.from);
    return text + " }";
}
std::string text_of(const DataFile& file) {
    if (file.is_mixture()) return text_of(file.parts);
    std::string options;
    if (!file.dtype.empty()) options += ", dtype = " + text_of(file.dtype);
    if (!file.shape.empty()) options += ", shape = " + text_of(file.shape);
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
std::string text_of(Mode mode) { return text_of(std::string(name(mode))); }
std::string text_of(Bind bind) {
    for (const auto& word : bind_words)
        if (word.value == bind) return text_of(std::string(word.text));
    return {};
}

} // namespace ranktune::study
