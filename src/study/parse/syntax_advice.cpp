// SPDX-License-Identifier: Apache-2.0
#include "study/parse/syntax_advice.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;
using Advice = std::optional<SyntaxAdvice>;

std::vector<View> lines_of(View text) {
    std::vector<View> lines;
    while (true) {
        const std::size_t end = text.find('\n');
        View line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        if (end == View::npos) return lines;
        text.remove_prefix(end + 1);
    }
}

View trimmed(View text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == View::npos ? View() : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// What a line holds outside of its strings: calls `take(position, character)` until that returns false. Returns where
/// a string begins that does not end in this line.
template <class Take>
std::optional<std::size_t> scan(View line, Take take) {
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '#') return {};
        if (c != '"' && c != '\'') {
            if (!take(i, c)) return {};
            continue;
        }
        if (line.substr(i).starts_with(c == '"' ? R"(""")" : "'''")) return {}; // may go on in the next line
        std::size_t end = i + 1;
        while (end < line.size() && line[end] != c) end += c == '"' && line[end] == '\\' ? 2 : 1;
        if (end >= line.size()) return i;
        i = end;
    }
    return {};
}

/// A key and what stands behind its sign.
struct KeyValue {
    View key;
    View value;         ///< without a comment
    std::size_t at = 0; ///< of the value, or of the end of the line
    char sign = 0;      ///< '=' or ':'; 0: neither
};

KeyValue key_value(View line) {
    std::size_t sign = View::npos;
    std::size_t end = line.size();
    scan(line, [&](std::size_t i, char c) {
        if (c == '=' || (c == ':' && sign == View::npos)) sign = i;
        return c != '=';
    });
    if (sign == View::npos) return {trimmed(line), {}, line.size(), 0};
    View rest = line.substr(sign + 1);
    if (const std::size_t comment = rest.find(" #"); comment != View::npos) end = sign + 1 + comment;
    const View value = trimmed(line.substr(sign + 1, end - sign - 1));
    const std::size_t at = value.empty() ? line.size() : static_cast<std::size_t>(value.data() - line.data());
    return {trimmed(line.substr(0, sign)), value, at, line[sign]};
}

bool is_word(View text) {
    return !text.empty() &&
           (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_' || text[0] == '/') &&
           std::ranges::all_of(text, [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) != 0 || View("_-./:+ ").find(c) != View::npos;
           });
}

bool is_toml_key(View text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || View("_-.\"'").find(c) != View::npos;
    });
}

std::string in_quotes(View text) {
    const char quote = text.find('"') == View::npos ? '"' : '\'';
    return quote + std::string(text) + quote;
}

// ---- a file that is no study file

/// "Python", "YAML", "JSON", "a shell script", by its first lines; empty: none of these.
View kind_of_file(const std::vector<View>& lines) {
    std::size_t colons = 0;
    for (const View whole : lines) {
        const View line = trimmed(whole);
        if (line.starts_with("#!")) return line.find("python") != View::npos ? "Python" : "a shell script";
        if (line.empty() || line.front() == '#') continue;
        for (const View word : {"import ", "from ", "def ", "class ", "\"\"\""})
            if (whole.starts_with(word)) return "Python";
        if (line == "{" || line.starts_with("{\"")) return "JSON";
        if (line == "---") return "YAML";
        const KeyValue pair = key_value(line);
        if (pair.sign != ':' || !is_toml_key(pair.key)) return {};
        if (pair.value.empty() || ++colons == 2) return "YAML";
    }
    return {};
}

Advice other_kind(const std::vector<View>& lines) {
    const View kind = kind_of_file(lines);
    if (kind.empty()) return {};
    if (kind == "Python" || kind == "a shell script")
        return SyntaxAdvice{"this is " + std::string(kind) +
                                "; a study file is TOML and names the program under [trainable], as in command = "
                                "\"python3 train.py {args}\". `ranktune init NAME --template program` writes one",
                            {1, 1}};
    return SyntaxAdvice{"this is " + std::string(kind) +
                            "; a study file is TOML: tables like [study], and lines like num_trials = 20. `ranktune "
                            "init NAME` writes one",
                        {1, 1}};
}

// ---- brackets and repetitions

Advice unclosed_bracket(const std::vector<View>& lines, Position at) {
    std::vector<std::pair<char, Position>> open;
    for (std::uint32_t n = 1; n <= lines.size(); ++n) {
        const View line = lines[n - 1];
        const KeyValue pair = key_value(line);
        if (!open.empty() && pair.sign == '=' && is_toml_key(pair.key)) break; // a key where the list should go on
        scan(line, [&](std::size_t i, char c) {
            if (c == '[' || c == '{') open.emplace_back(c, Position{n, static_cast<std::uint32_t>(i + 1)});
            if ((c == ']' || c == '}') && !open.empty()) open.pop_back();
            return true;
        });
        if (open.empty() && n >= at.line) return {};
        if (!open.empty() && open.back().first == '{') break;
    }
    if (open.empty() || open.back().second.line > at.line) return {};
    const auto [bracket, where] = open.back();
    const View before = trimmed(lines[where.line - 1].substr(0, where.column - 1));
    if (bracket == '{')
        return SyntaxAdvice{"the '{' is not closed in this line; a table in braces stands in one line", where};
    if (before.find_first_not_of('[') == View::npos)
        return SyntaxAdvice{"the name of a table ends with ']', as in [study]", where};
    return SyntaxAdvice{"the list is not closed: a ']' is missing", where};
}

/// A key or table that is there already.
Advice repeated(const std::vector<View>& lines, Position at) {
    const View wrong = trimmed(lines[at.line - 1]);
    const std::string words = ", and each may stand once: keep one of them";
    View table;
    std::vector<std::pair<View, std::size_t>> keys; // of the current table
    std::vector<std::pair<View, std::size_t>> tables;
    for (std::size_t n = 0; n < at.line; ++n) {
        const View line = trimmed(lines[n]);
        const bool last = n + 1 == at.line;
        if (line.starts_with("[[")) {
            keys.clear();
        } else if (line.starts_with('[')) {
            const View name = line.substr(0, line.find(']'));
            for (const auto& [known, number] : tables)
                if (last && known == name)
                    return SyntaxAdvice{
                        std::string(wrong) + " begins in line " + std::to_string(number) + " already" + words, at};
            tables.emplace_back(name, n + 1);
            keys.clear();
        } else if (const KeyValue pair = key_value(line); pair.sign == '=') {
            for (const auto& [known, number] : keys)
                if (last && known == pair.key)
                    return SyntaxAdvice{
                        std::string(pair.key) + " stands in line " + std::to_string(number) + " already" + words, at};
            keys.emplace_back(pair.key, n + 1);
        }
    }
    return {};
}

// ---- one line

/// A value such as `loguniform(1e-4, 1.0)` that lacks the quotes of a TOML string.
Advice bare_call(View line, std::uint32_t number) {
    char open = 0;           // the quote of the string that we are in
    bool value_next = false; // only spaces since a sign that a value follows
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (open != 0) {
            if (c == '\\' && open == '"') ++i;
            if (c == open) open = 0;
            continue;
        }
        if (c == '#') break;
        if (value_next && View("\"' \t").find(c) == View::npos) {
            for (std::size_t end = line.find(')', i); end != View::npos; end = line.find(')', end + 1)) {
                const View call = line.substr(i, end + 1 - i);
                if (std::ranges::count(call, '(') != std::ranges::count(call, ')')) continue;
                if (space::looks_like_call(std::string(call)))
                    return SyntaxAdvice{"put it in quotes:  " + in_quotes(call),
                                        {number, static_cast<std::uint32_t>(i + 1)}};
                break;
            }
        }
        if (c == '"' || c == '\'') open = c;
        value_next = c == '=' || c == ',' || c == '[' || (value_next && (c == ' ' || c == '\t'));
    }
    return std::nullopt;
}

/// What is wrong with a value that is no TOML; empty: not known.
std::string about_value(View value) {
    const std::string text(value);
    if (value.empty()) return "the value is missing";
    for (const View word : {"True", "TRUE", "False", "FALSE"})
        if (value == word) return "it is written in small letters:  " + std::string(word[0] == 'T' ? "true" : "false");
    for (const View word : {"None", "null", "nil", "~"})
        if (value == word) return "there is no empty value: leave the key out for its default";
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto digits = [&](View part) { return !part.empty() && std::ranges::all_of(part, is_digit); };
    if (const std::size_t comma = value.find(',');
        comma != View::npos && digits(value.substr(0, comma)) && digits(value.substr(comma + 1)))
        return "a number has a point, not a comma:  " + text.substr(0, comma) + "." + text.substr(comma + 1);
    if (value.front() == '.' && digits(value.substr(1))) return "a number begins with a digit:  0" + text;
    if (value.back() == '.' && digits(value.substr(0, value.size() - 1)))
        return "a number ends with a digit:  " + text + "0";
    if (value.front() == '(' && value.back() == ')')
        return "a list stands in square brackets:  [" + text.substr(1, text.size() - 2) + "]";
    return is_word(value) ? "text stands in quotes:  " + in_quotes(value) : std::string();
}

Advice about_line(View line, std::uint32_t number) {
    const auto at = [number](std::size_t position) {
        return Position{number, static_cast<std::uint32_t>(position + 1)};
    };
    for (const View quote : {"\u201c", "\u201d", "\u201e", "\u2018", "\u2019", "\u00ab", "\u00bb"})
        if (const std::size_t found = line.find(quote); found != View::npos)
            return SyntaxAdvice{"a typographic quote; study files have straight ones: \" or '", at(found)};
    if (const auto quote = scan(line, [](std::size_t, char) { return true; }))
        return SyntaxAdvice{std::string("the quote ") + line[*quote] + " is not closed in this line", at(*quote)};
    const KeyValue pair = key_value(line);
    if (!is_toml_key(pair.key) && pair.sign != 0) return {};
    if (pair.sign == ':')
        return SyntaxAdvice{"a key and its value stand on both sides of '=':  " + std::string(pair.key) + " = " +
                                std::string(pair.value),
                            at(0)};
    if (pair.sign == 0) {
        const std::size_t blank = pair.key.find_first_of(" \t");
        if (pair.key.starts_with('[') || !is_toml_key(pair.key.substr(0, blank))) return {};
        if (blank == View::npos) return SyntaxAdvice{"a key without a value: '=' and a value are missing", at(0)};
        return SyntaxAdvice{
            "the '=' between a key and its value is missing:  " + std::string(pair.key.substr(0, blank)) + " = " +
                std::string(trimmed(pair.key.substr(blank))),
            at(0)};
    }
    const std::string wrong = about_value(pair.value);
    return wrong.empty() ? Advice() : SyntaxAdvice{wrong, at(pair.at)};
}

} // namespace

Advice syntax_advice(std::string_view text, Position at) {
    for (View rest = text; !rest.empty();) {
        const base::Rune rune = base::first_rune(rest);
        if (!rune.valid || rune.code == 0)
            return SyntaxAdvice{"this is no text in UTF-8: is it the study file, and neither compressed nor UTF-16?",
                                at};
        rest.remove_prefix(rune.bytes);
    }
    const auto lines = lines_of(text);
    if (at.line == 0 || at.line > lines.size()) return {};
    const View line = lines[at.line - 1];
    if (Advice other = other_kind(lines)) return other;
    if (Advice call = bare_call(line, at.line)) return call;
    if (Advice bracket = unclosed_bracket(lines, at)) return bracket;
    if (Advice one = about_line(line, at.line)) return one;
    return repeated(lines, at);
}

} // namespace ranktune::study
