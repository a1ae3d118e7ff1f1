// SPDX-License-Identifier: Apache-2.0
#include "study/parse/toml_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>

#include "ranktune/base/text.hpp"
#include "study/parse/syntax_advice.hpp"

namespace ranktune::study {
namespace {

Position position(const toml::source_region& region) { return {region.begin.line, region.begin.column}; }

/// The text of a file, by the library's positions, which count characters and not bytes.
class Source {
  public:
    explicit Source(std::string_view text) : text_(text) {
        for (std::size_t i = 0; i < text.size(); ++i)
            if (text[i] == '\n') lines_.push_back(i + 1);
    }
    [[nodiscard]] std::string at(const toml::source_region& region) const {
        const std::size_t from = byte(region.begin);
        return std::string(base::trimmed(text_.substr(from, std::max(byte(region.end), from) - from)));
    }

  private:
    [[nodiscard]] std::size_t byte(const toml::source_position& position) const {
        if (position.line == 0 || position.line > lines_.size()) return text_.size();
        if (position.line != last_.line || position.column < last_.column)
            last_ = {position.line, 1, lines_[position.line - 1]};
        for (; last_.column < position.column && last_.byte < text_.size(); ++last_.column) {
            ++last_.byte;
            while (last_.byte < text_.size() && (static_cast<unsigned char>(text_[last_.byte]) & 0xC0U) == 0x80U)
                ++last_.byte;
        }
        return last_.byte;
    }

    std::string_view text_;
    std::vector<std::size_t> lines_{0};
    /// Where it looked last: the values of a long list are asked for in their order.
    struct Place {
        std::uint32_t line = 0;
        std::uint32_t column = 0;
        std::size_t byte = 0;
    };
    mutable Place last_;
};

/// The code below and the library are recursive; the library limits the depth of values only.
constexpr std::size_t most_levels = 64;

[[noreturn]] void refuse_depth(Position at) {
    throw TomlError("tables and lists are nested more than " + std::to_string(most_levels) + " deep", at);
}

/// Refuses too many dots in a key or header, and too deeply nested brackets, before the library makes a table or list
/// of each.
void check_depth(std::string_view text) {
    Position at{1, 1};
    std::size_t dots = 0;
    std::size_t brackets = 0;
    std::string_view open; // what ends the current string or comment
    for (std::size_t i = 0; i < text.size(); ++i, ++at.column) {
        const char c = text[i];
        if (!open.empty()) {
            if (open.front() == '"' && c == '\\') {
                ++i; // skip the escaped character
                ++at.column;
                if (i == text.size() || text[i] != '\n') continue;
            } else if (text.substr(i).starts_with(open)) {
                i += open.size() - 1;
                at.column += static_cast<std::uint32_t>(open.size()) - 1;
                if (open == "\n") dots = 0;
                open = {};
            } else if (c == '\n' && open.size() == 1) {
                open = {}; // an unclosed string: the library reports it
            }
        } else if (c == '"' || c == '\'') {
            const std::string_view three = c == '"' ? R"(""")" : "'''";
            open = text.substr(i).starts_with(three) ? three : three.substr(0, 1);
            i += open.size() - 1;
            at.column += static_cast<std::uint32_t>(open.size()) - 1;
        } else if (c == '#') {
            open = "\n";
        } else if (c == '.') {
            if (++dots > most_levels) refuse_depth(at);
        } else if (std::string_view("=[]{},\n").find(c) != std::string_view::npos) {
            dots = 0;
            if (c == '[' || c == '{') ++brackets;
            if ((c == ']' || c == '}') && brackets > 0) --brackets;
            if (brackets > most_levels) refuse_depth(at);
        }
        if (i < text.size() && text[i] == '\n') at = {at.line + 1, 0};
    }
}

Node convert(const toml::node& from, const Source& source, std::size_t depth = 0);

void convert_members(const toml::table& from, Node& node, const Source& source, std::size_t depth) {
    for (const auto& [key, value] : from) {
        Node member = convert(value, source, depth + 1);
        member.key_at = position(key.source());
        node.members.push_back({std::string(key.str()), std::move(member)});
    }
    // The library sorts by name; we need the order of the file.
    std::ranges::stable_sort(node.members, [](const auto& a, const auto& b) {
        return std::pair(a.value.key_at.line, a.value.key_at.column) <
               std::pair(b.value.key_at.line, b.value.key_at.column);
    });
}

Node convert(const toml::node& from, const Source& source, std::size_t depth) {
    Node node;
    node.at = position(from.source());
    if (depth > most_levels) refuse_depth(node.at);
    if (const auto* table = from.as_table()) {
        convert_members(*table, node, source, depth);
        return node;
    }
    if (const auto* array = from.as_array()) {
        node.kind = Node::Kind::array;
        for (const toml::node& item : *array) node.items.push_back(convert(item, source, depth + 1));
        return node;
    }
    if (const auto* text = from.as_string()) {
        node.kind = Node::Kind::string;
        node.text = text->get();
        return node;
    }
    node.text = source.at(from.source());
    if (const auto* boolean = from.as_boolean()) {
        node.kind = Node::Kind::boolean;
        node.boolean = boolean->get();
    } else if (const auto* integer = from.as_integer()) {
        node.kind = Node::Kind::integer;
        node.integer = integer->get();
    } else if (const auto* real = from.as_floating_point()) {
        node.kind = Node::Kind::real;
        node.real = real->get();
    } else {
        node.kind = Node::Kind::time;
    }
    return node;
}

/// Throws the library's message, or a better one for a common mistake.
[[noreturn]] void refuse_syntax(const std::string& text, const std::string& why, Position at) {
    const auto advice = syntax_advice(text, at);
    if (!advice) throw TomlError(why, at);
    throw TomlError(advice->text, advice->at);
}

Node parse_or_throw(const std::string& text) {
    check_depth(text);
    try {
        return convert(toml::parse(text), Source(text));
    } catch (const toml::parse_error& error) {
        refuse_syntax(text, std::string(error.description()), position(error.source()));
    }
}

/// "18446744073709551615": an integer that is too long for TOML.
bool is_large_integer(std::string_view text) {
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    return text.size() > 18 && text.front() != '0' && text.find_first_not_of("0123456789_") == std::string_view::npos;
}

/// The value of an override: TOML, or else a bare word. Text that begins like TOML stays an error.
Node override_value(const std::string& value, const std::string& text) {
    std::string why;
    try {
        Node parsed = parse_or_throw("x = " + value);
        if (parsed.members.size() == 1 && parsed.members[0].key == "x") return std::move(parsed.members[0].value);
        why = "more than one value";
    } catch (const TomlError& error) {
        why = error.what();
    }
    // `{workers}` names a parameter in resources.ranks; a shell removes quotes around it.
    const bool placeholder = value.size() > 2 && value.front() == '{' && value.back() == '}' &&
                             value.find_first_of("=,{}\"' \t\n", 1) == value.size() - 1;
    if (value.empty() || (!placeholder && std::string_view("[{\"'").find(value[0]) != std::string_view::npos) ||
        value.find('\n') != std::string::npos)
        throw base::UsageError("override '" + text + "': " + (value.empty() ? "the value is missing" : why));
    if (is_large_integer(value))
        throw base::UsageError("override '" + text +
                               "': integers go from -9223372036854775808 to 9223372036854775807 (64 bits)");
    Node node;
    node.kind = Node::Kind::string;
    node.text = value;
    return node;
}

/// Marks a node and everything below it as not in the file.
void forget_positions(Node& node, const std::string& text) {
    node.at = node.key_at = {};
    node.override_by = text;
    for (Node& item : node.items) forget_positions(item, text);
    for (auto& [key, member] : node.members) forget_positions(member, text);
}

std::vector<std::string> override_path(const std::string& key, const std::string& text) {
    std::vector<std::string> path;
    try {
        const Node parsed = parse_or_throw(key + " = 0");
        const Node* at = &parsed;
        while (at->is(Node::Kind::table) && at->members.size() == 1) {
            path.push_back(at->members[0].key);
            at = &at->members[0].value;
        }
        if (at->is(Node::Kind::integer) && !path.empty()) return path;
    } catch (const TomlError&) { // the message below is clearer
    }
    throw base::UsageError("override '" + text + "': '" + key + "' is not a dotted key");
}

} // namespace

const Node* Node::find(std::string_view key) const {
    const auto found = std::ranges::find_if(members, [&](const auto& member) { return member.key == key; });
    return found == members.end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

std::string_view kind_text(const Node& node) {
    constexpr std::string_view names[] = {"a boolean",      "an integer", "a float", "a string",
                                          "a date or time", "a list",     "a table"};
    return names[static_cast<std::size_t>(node.kind)];
}

Node parse_toml(const std::string& text) { return parse_or_throw(text); }

void apply_override(Node& root, const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
        throw base::UsageError("override '" + text + "': the form is table.key=value, as in study.num_trials=120");
    const auto path = override_path(std::string(base::trimmed(text.substr(0, equals))), text);
    Node value = override_value(std::string(base::trimmed(text.substr(equals + 1))), text);
    forget_positions(value, text);

    Node* at = &root;
    std::string walked;
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (!at->is(Node::Kind::table))
            throw base::UsageError("override '" + text + "': " + walked + " is " + std::string(kind_text(*at)) +
                                   ", not a table");
        walked += (i == 0 ? "" : ".") + path[i];
        Node* next = at->find(path[i]);
        if (next == nullptr) {
            at->members.push_back({path[i], {}});
            next = &at->members.back().value;
            next->override_by = text;
        }
        at = next;
    }
    value.key_at = at->key_at; // a key of the file stays where it is
    *at = std::move(value);
}

} // namespace ranktune::study
