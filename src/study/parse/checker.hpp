// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects the mistakes of a study file, and reads tables so that no key is missed.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/time.hpp"
#include "ranktune/study/parse.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/toml_tree.hpp"

namespace ranktune::study {

/// All mistakes so far.
class Mistakes {
  public:
    /// A mistake at the position of a value.
    void value(const Node& node, std::string key, std::string message);
    /// A mistake at the position of a key.
    void key(const Node& node, std::string key, std::string message);
    /// A missing key: at the position of the table where it should be (null: no position).
    void missing(const Node* table, std::string key, std::string message);
    void add(Position at, std::string key, std::string message);

    [[nodiscard]] bool empty() const { return mistakes_.empty(); }
    [[nodiscard]] std::size_t size() const { return mistakes_.size(); }
    /// In the order of the file; those without a line last.
    [[nodiscard]] std::vector<Mistake> sorted() const;

  private:
    std::vector<Mistake> mistakes_;
};

/// One accepted word of an enumeration.
template <class Enum>
struct Word {
    std::string_view text;
    Enum value;
};

/// Reads one table of the file. Every getter marks its key as known, reports what is wrong with the value, and returns
/// nothing if the key is absent or wrong. `finish` refuses all other keys.
class TableReader {
  public:
    /// `table` may be null (the file has none); `name` is its dotted name. `keys` and `mistakes` outlive the reader.
    TableReader(const Node* table, std::string name, const KeyTable& keys, Mistakes& mistakes);

    [[nodiscard]] const Node* table() const { return table_; }
    /// The file has something of this name that is no table; the mistake has been reported.
    [[nodiscard]] bool is_wrong() const { return wrong_; }
    /// The value of a key, whatever it is, or null.
    [[nodiscard]] const Node* take(std::string_view key);
    [[nodiscard]] bool has(std::string_view key) const { return table_ != nullptr && table_->find(key) != nullptr; }
    [[nodiscard]] std::string dotted(std::string_view key) const { return name_ + "." + std::string(key); }

    [[nodiscard]] std::optional<std::string> string(std::string_view key);
    [[nodiscard]] std::optional<bool> boolean(std::string_view key);
    /// Bounds are inclusive; the smallest and largest 64-bit integers mean no bound.
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
    /// At least 1, as an integer or a text such as "1.5GiB".
    [[nodiscard]] std::optional<std::uint64_t> bytes(std::string_view key);
    /// A list of integers, which is not empty.
    [[nodiscard]] std::optional<std::vector<std::uint32_t>> integers(std::string_view key, std::int64_t low,
                                                                     std::int64_t high);
    /// A finite number in [low, high]; integers are numbers. An infinite bound means no bound.
    [[nodiscard]] std::optional<double> number(std::string_view key, double low, double high);
    /// A string such as "90m"; longer than zero and at least `low`; `why`: the reason for that limit.
    [[nodiscard]] std::optional<base::Duration> duration(std::string_view key, base::Duration low = {},
                                                         std::string_view why = {});
    template <class Enum, std::size_t N>
    [[nodiscard]] std::optional<Enum> word(std::string_view key, const Word<Enum> (&words)[N]) {
        std::string_view texts[N];
        for (std::size_t i = 0; i < N; ++i) texts[i] = words[i].text;
        const auto chosen = one_of(key, texts);
        return chosen ? std::optional(words[*chosen].value) : std::nullopt;
    }

    /// Reports a required key that is missing, unless the table itself is wrong.
    void require(std::string_view key, const std::string& what);
    /// Reports a mistake in a value, at its position or, if it is absent, at that of the table.
    void complain(std::string_view key, const std::string& message);
    /// Refuses a key that conflicts with another one. It counts as known.
    void refuse(std::string_view key, const std::string& message);
    /// Refuses every key that was not taken.
    void finish();

    Mistakes& mistakes() { return mistakes_; }

    /// The position of the word among those that the key accepts.
    [[nodiscard]] std::optional<std::size_t> one_of(std::string_view key, std::span<const std::string_view> texts);

  private:
    void wrong_kind(const Node& node, std::string_view key, const std::string& wanted);

    const Node* table_;
    std::string name_;
    const KeyTable& keys_;
    Mistakes& mistakes_;
    bool wrong_ = false;
    std::vector<std::string_view> taken_;
};

/// `text` in double quotes, shortened if it is long, with control characters as '?'.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// A string in quotes, anything else by its kind: what a mistake says was given.
[[nodiscard]] std::string text_or_kind(const Node& node);
/// "a", "b" or "c": for the words that a key accepts.
[[nodiscard]] std::string either(std::span<const std::string_view> texts);

} // namespace ranktune::study
