// SPDX-License-Identifier: Apache-2.0
#pragma once
// ShellPlace: how a value must be written at a place in the text of a shell command.

#include <cstdint>
#include <optional>
#include <string>

namespace ranktune::study {

/// What surrounds a value. Documents are here-documents (`<<END`), literal ones have a quoted name (`<<'END'`).
enum class Quotes : std::uint8_t { none, single, twice, document, literal_document, comment };

/// Follows the text of a command for `/bin/sh`, character by character.
class ShellPlace {
  public:
    void step(char c);
    /// A value stands here. nullopt: there is no way to write it so that every shell reads the same: in backticks,
    /// `${...}` between quotes and `$'...'`, behind `$` or a backslash, and where quotes cannot be followed.
    [[nodiscard]] std::optional<Quotes> value();

  private:
    /// What has begun and not ended.
    enum class Frame : char {
        twice = '"',
        code = '(',
        arithmetic = '+',
        braces = '{',
        backticks = '`',
        document = '<'
    };

    [[nodiscard]] bool is_in(Frame frame) const { return frames_.find(static_cast<char>(frame)) != std::string::npos; }
    [[nodiscard]] bool is_top(Frame frame) const { return frames_.ends_with(static_cast<char>(frame)); }
    void push(Frame frame) { frames_ += static_cast<char>(frame); }
    bool step_quoted(char c);
    void step_text(char c);
    void step_code(char c);
    void step_backtick();
    void begin_document();
    void name_document(char c);
    bool step_document(char c);

    std::string frames_;
    std::string word_;           ///< of code, since the last blank or operator
    char last_ = '\n';           ///< the character before; 'x': it means nothing
    bool variable_ = false;      ///< in a name behind '$'
    bool escaped_ = false;       ///< by a backslash
    bool single_ = false;        ///< between single quotes
    bool dollar_single_ = false; ///< in $'...', which only some shells have
    bool comment_ = false;
    bool unclear_ = false;

    /// `named`: it begins with the next line.
    enum class Document : std::uint8_t { none, begun, named, inside } document_ = Document::none;
    std::string end_;      ///< the line behind a document
    std::string line_;     ///< of the document
    bool literal_ = false; ///< nothing in it means anything
    bool tabs_ = false;    ///< `<<-`: `end_` may stand behind tabs
};

/// The value, written for its place. Throws base::UsageError: several lines in a here-document, where one might end it.
[[nodiscard]] std::string written_at(Quotes place, const std::string& value);

} // namespace ranktune::study
