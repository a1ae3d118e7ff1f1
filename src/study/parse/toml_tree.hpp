// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study file as a tree with positions, in the order of the file. The only user of the TOML library.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/error.hpp"

namespace ranktune::study {

/// Counted from 1; line 0: not in the file.
struct Position {
    std::uint32_t line = 0;
    std::uint32_t column = 0;
};

struct Member;

struct Node {
    enum class Kind : std::uint8_t { boolean, integer, real, string, time, array, table };
    Kind kind = Kind::table;
    Position at;             ///< of the value; of a table: its header or opening brace
    Position key_at;         ///< of the key that it belongs to
    std::string override_by; ///< the override that put it there, as typed; empty: the file

    bool boolean = false;
    std::int64_t integer = 0;
    double real = 0.0;
    std::string text; ///< string; of a number, boolean, date or time: as it is written
    std::vector<Node> items;
    std::vector<Member> members; ///< in the order of the file

    [[nodiscard]] bool is(Kind k) const { return kind == k; }
    [[nodiscard]] bool is_number() const { return kind == Kind::integer || kind == Kind::real; }
    [[nodiscard]] const Node* find(std::string_view key) const;
    [[nodiscard]] Node* find(std::string_view key);
};

/// A key of a table with its value.
struct Member {
    std::string key;
    Node value;
};

/// `act(name, node)` for what is in the table and in the tables in it, whose names are joined by dots.
template <class Act>
void for_each_leaf(const Node& table, Act&& act, const std::string& prefix = {}) {
    for (const auto& [key, node] : table.members) {
        if (node.is(Node::Kind::table))
            for_each_leaf(node, act, prefix + key + ".");
        else
            act(prefix + key, node);
    }
}

/// "an integer", "a string", ...: for messages.
[[nodiscard]] std::string_view kind_text(const Node& node);

class TomlError : public base::FormatError {
  public:
    TomlError(const std::string& what, Position at) : FormatError(what), at_(at) {}
    [[nodiscard]] Position at() const { return at_; }

  private:
    Position at_;
};

/// Throws TomlError with the first position that is not valid TOML.
[[nodiscard]] Node parse_toml(const std::string& text);

/// Sets one value of a tree from `a.b=v`; `v` is TOML or a bare word. Throws base::UsageError for another form, or for
/// a path through something that is not a table.
void apply_override(Node& root, const std::string& text);

} // namespace ranktune::study
