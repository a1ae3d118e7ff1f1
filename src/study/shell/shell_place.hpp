// SPDX-License-Identifier: Apache-2.0
#pragma once
// ShellPlace: how a value must be written at a place in the text of a shell command.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::study {

/// What surrounds a value. Documents are here-documents (`<<END`), literal ones have a quoted name (`<<'END'`).
/// `arithmetic` is `$((...))`, whose text shells expand, between quotes, too.
enum class Quotes : std::uint8_t { none, single, twice, document, literal_document, arithmetic, comment };

/// Follows the text of a command for `/bin/sh`, character by character. Where shells read a text differently, or this
/// class does not follow it, no value can stand from there on.
class ShellPlace {
  public:
    void step(char c);
    /// A value stands here. nullopt: there is no way to write it so that every shell reads the same; `why` says it.
    [[nodiscard]] std::optional<Quotes> value();
    [[nodiscard]] const std::string& why() const { return why_; }
    /// The text ends here. False: something has begun and not ended, as `why` says.
    [[nodiscard]] bool ends();
    /// Whether the same has begun and not ended in both.
    [[nodiscard]] bool is_as_deep_as(const ShellPlace& other) const;

  private:
    enum class Kind : std::uint8_t {
        code, ///< the whole text, `(...)`, `$(...)`
        arithmetic,
        group, ///< parentheses in arithmetic
        single,
        dollar_single, ///< $'...', which only some shells have
        twice,
        braces, ///< ${...}
        plain,  ///< quotes within `${...}` within quotes: some shells see quotes, some see text
        backticks,
        document,
        comment
    };
    struct Document {
        std::string end;      ///< the line behind it
        bool literal = false; ///< nothing in it means anything
        bool tabs = false;    ///< `<<-`: `end` may stand behind tabs
    };
    /// Something that has begun and not ended.
    struct Open {
        Kind kind = Kind::code;
        std::size_t begin = 0;    ///< in the text
        char quote = '\0';        ///< of `plain`
        bool substitutes = false; ///< `$(...)`, `$((...))`: the word that it is in goes on behind it
        bool joined = false;      ///< `a(...)`, `<(...)`: in some shells, too
        bool quoted = false;      ///< `${...}` between quotes, in a document or in arithmetic
        bool closing = false;     ///< of arithmetic: there was one of its two last parentheses
        bool command = true;      ///< of code: a command may begin with the word
        std::size_t cases = 0;    ///< of code: `case` without `esac`; patterns end with a parenthesis
        std::string word = {};    ///< of code, since the last blank or operator
        std::vector<Document> documents =
            {}; ///< of code: they begin with the next line; of a document: it and the next
    };

    [[nodiscard]] Open& top() { return open_.back(); }
    Open& push(Kind kind, std::size_t size);
    void lose(std::string_view why);
    void lose(std::string_view why, std::size_t begin);
    [[nodiscard]] std::string shown(std::size_t begin) const;
    [[nodiscard]] std::optional<Quotes> refuse(std::string_view why);
    [[nodiscard]] bool knows_backslashes() const;
    void step_here(char c);
    bool begin_expansion(char c, bool quoted);
    void begin_quotes(char c);
    void step_text(char c);
    void step_arithmetic(char c);
    void step_code(char c);
    void open_parenthesis();
    void close(bool substitutes, bool joined);
    void close_parenthesis();
    void end_word();
    bool step_name(char c);
    bool end_line(bool joins);
    void begin_documents();
    [[nodiscard]] Open& context();

    std::string text_; ///< so far
    std::vector<Open> open_{Open{}};
    std::optional<Document> name_; ///< of a here-document, while it is read
    char name_quote_ = '\0';       ///< around it
    std::string line_;             ///< of the text
    std::string joined_;           ///< lines before, which backslashes join with it
    bool continued_ = false;       ///< there are such
    char last_ = '\n';             ///< the character before; 'x': it means nothing
    bool variable_ = false;        ///< in a name behind '$'
    bool escaped_ = false;         ///< by a backslash
    bool lost_ = false;
    std::string why_;
};

/// The value, written for its place. Throws base::UsageError: several lines in a here-document, where one might end it;
/// in arithmetic, what is no number and no name.
[[nodiscard]] std::string written_at(Quotes place, const std::string& value);

} // namespace ranktune::study
