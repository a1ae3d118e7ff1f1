// SPDX-License-Identifier: Apache-2.0
#include "study/toml_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

namespace ranktune::study {
namespace {

Position position(const toml::source_region& region) { return {region.begin.line, region.begin.column}; }

template <class T>
std::string written(const T& value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

Node convert(const toml::node& from);

void convert_members(const toml::table& from, Node& node) {
    for (const auto& [key, value] : from) {
        Node member = convert(value);
        member.key_at = position(key.source());
        node.members.push_back({std::string(key.str()), std::move(member)});
    }
    // The library sorts by name; people, and the space, go by the order of the file.
    std::ranges::stable_sort(node.members, [](const auto& a, const auto& b) {
        return std::pair(a.value.key_at.line, a.value.key_at.column) <
               std::pair(b.value.key_at.line, b.value.key_at.column);
    });
}

Node convert(const toml::node& from) {
    Node node;
    node.at = position(from.source());
    if (const auto* table = from.as_table()) {
        convert_members(*table, node);
    } else if (const auto* array = from.as_array()) {
        node.kind = Node::Kind::array;
        for (const toml::node& item : *array) node.items.push_back(convert(item));
    } else if (const auto* boolean = from.as_boolean()) {
        node.kind = Node::Kind::boolean;
        node.boolean = boolean->get();
    } else if (const auto* integer = from.as_integer()) {
        node.kind = Node::Kind::integer;
        node.integer = integer->get();
    } else if (const auto* real = from.as_floating_point()) {
        node.kind = Node::Kind::real;
        node.real = real->get();
    } else if (const auto* text = from.as_string()) {
        node.kind = Node::Kind::string;
        node.text = text->get();
    } else {
        node.kind = Node::Kind::time;
        if (const auto* date = from.as_date()) node.text = written(date->get());
        if (const auto* time = from.as_time()) node.text = written(time->get());
        if (const auto* both = from.as_date_time()) node.text = written(both->get());
    }
    return node;
}

Node parse_or_throw(const std::string& text) {
    try {
        return convert(toml::parse(text));
    } catch (const toml::parse_error& error) {
        throw TomlError(std::string(error.description()), position(error.source()));
    }
}

std::string trimmed(const std::string& text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The value of an override: TOML, or else a bare word. Something that began as TOML stays an error.
Node override_value(const std::string& value, const std::string& text) {
    std::string why;
    try {
        Node parsed = parse_or_throw("x = " + value);
        if (parsed.members.size() == 1 && parsed.members[0].key == "x") return std::move(parsed.members[0].value);
        why = "more than one value";
    } catch (const TomlError& error) {
        why = error.what();
    }
    if (value.empty() || std::string_view("[{\"'").find(value[0]) != std::string_view::npos ||
        value.find('\n') != std::string::npos)
        throw base::UsageError("override '" + text + "': " + (value.empty() ? "the value is missing" : why));
    Node node;
    node.kind = Node::Kind::string;
    node.text = value;
    return node;
}

/// Everything below a node has no place in the file.
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
    } catch (const TomlError&) { // the message below says it better
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
    switch (node.kind) {
        case Node::Kind::boolean:
            return "a boolean";
        case Node::Kind::integer:
            return "an integer";
        case Node::Kind::real:
            return "a float";
        case Node::Kind::string:
            return "a string";
        case Node::Kind::time:
            return "a date or time";
        case Node::Kind::array:
            return "a list";
        case Node::Kind::table:
            return "a table";
    }
    return "something else";
}

Node parse_toml(const std::string& text) { return parse_or_throw(text); }

void apply_override(Node& root, const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos)
        throw base::UsageError("override '" + text + "': the form is table.key=value, as in study.num_trials=120");
    const auto path = override_path(trimmed(text.substr(0, equals)), text);
    Node value = override_value(trimmed(text.substr(equals + 1)), text);
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
