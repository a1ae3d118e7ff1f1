// SPDX-License-Identifier: Apache-2.0
#include "study/shell/shell_place.hpp"

#include <cctype>
#include <string_view>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::study {
namespace {

bool is_any_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

constexpr std::string_view ends_of_words = " \t\n;&|()<>";

} // namespace

std::optional<Quotes> ShellPlace::value() {
    const bool joins = escaped_ || variable_; // what is before would change the value, or the value that
    last_ = 'x';
    variable_ = false;
    word_ += 'x';
    line_ += 'x'; // so that this is not the end of a document
    if (comment_) return Quotes::comment;
    unclear_ = unclear_ || document_ == Document::begun;
    if (unclear_ || dollar_single_ || is_in(Frame::backticks)) return std::nullopt;
    if (document_ == Document::inside && literal_) return Quotes::literal_document;
    if (single_) return Quotes::single;
    if (joins || is_top(Frame::braces)) return std::nullopt;
    if (is_top(Frame::document)) return Quotes::document;
    return is_top(Frame::twice) ? Quotes::twice : Quotes::none;
}

void ShellPlace::step(char c) {
    const bool protected_by_backslash = escaped_;
    if (document_ == Document::begun) name_document(c);
    if ((document_ != Document::inside || !step_document(c)) && !step_quoted(c)) {
        if (is_top(Frame::twice) || is_top(Frame::braces) || is_top(Frame::document))
            step_text(c);
        else
            step_code(c);
    }
    const bool in_name = std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                         (std::isdigit(static_cast<unsigned char>(c)) != 0 && last_ != '$');
    last_ = protected_by_backslash ? 'x' : c;
    variable_ = last_ == '$' || (variable_ && in_name);
}

/// Single quotes, comments and backslashes, where no other character means anything.
bool ShellPlace::step_quoted(char c) {
    if (comment_) {
        comment_ = c != '\n';
        return comment_;
    }
    if (single_) {
        unclear_ = unclear_ || (dollar_single_ && c == '\\'); // may protect the quote
        if (c == '\'') single_ = dollar_single_ = false;
        return true;
    }
    if (std::exchange(escaped_, false)) {
        word_ += 'x';
        return true;
    }
    escaped_ = c == '\\';
    return escaped_;
}

/// Between double quotes, in here-documents, and in `${...}` there.
void ShellPlace::step_text(char c) {
    if (c == '`') return step_backtick();
    if (last_ == '$' && c == '(') {
        word_.clear();
        return push(Frame::code);
    }
    if (last_ == '$' && c == '{') return push(Frame::braces);
    if (is_top(Frame::braces)) {
        unclear_ = unclear_ || is_any_of(c, "'\""); // shells differ
        if (c == '}') frames_.pop_back();
    } else if (is_top(Frame::twice) && c == '"') {
        frames_.pop_back();
    }
}

void ShellPlace::step_code(char c) {
    if (c == '`') return step_backtick();
    if (c == '\'') {
        single_ = true;
        dollar_single_ = last_ == '$';
    } else if (c == '"') {
        push(Frame::twice);
    } else if (c == '(') {
        push(last_ == '(' ? Frame::arithmetic : Frame::code);
    } else if (c == ')' && (is_top(Frame::code) || is_top(Frame::arithmetic))) {
        frames_.pop_back();
    } else if (c == '#' && word_.empty()) {
        comment_ = true;
    } else if (c == '<' && last_ == '<') {
        begin_document();
    } else if (c == '\n' && document_ == Document::named) {
        document_ = Document::inside;
        line_.clear();
        push(Frame::document);
    }
    unclear_ = unclear_ || (c == '\n' && is_in(Frame::arithmetic)); // commands after all
    // The patterns of `case` end with a parenthesis that nothing has opened.
    if (word_ == "case" && is_any_of(c, ends_of_words) && (is_in(Frame::twice) || is_in(Frame::document)))
        unclear_ = true;
    if (!is_any_of(c, ends_of_words))
        word_ += c;
    else
        word_ = c == ')' ? ")" : "";
}

void ShellPlace::step_backtick() {
    const auto begin = frames_.rfind(static_cast<char>(Frame::backticks));
    if (begin == std::string::npos)
        push(Frame::backticks);
    else
        frames_.resize(begin);
    word_ += 'x';
}

/// Two documents at a time are not followed.
void ShellPlace::begin_document() {
    if (is_in(Frame::arithmetic)) return; // 1 << 2
    unclear_ = unclear_ || document_ != Document::none;
    document_ = Document::begun;
    end_.clear();
    literal_ = tabs_ = false;
}

void ShellPlace::name_document(char c) {
    if (end_.empty() && !literal_) {
        if (c == '<') {
            document_ = Document::none; // <<< is a text
            last_ = 'x';
            return;
        }
        if (c == '-' && last_ == '<') {
            tabs_ = true;
            return;
        }
        if (is_any_of(c, " \t")) return;
    }
    if (is_any_of(c, "'\"\\"))
        literal_ = true;
    else if (is_any_of(c, ends_of_words) && !single_ && !is_top(Frame::twice))
        document_ = Document::named;
    else
        end_ += c;
}

/// True: the character means nothing else.
bool ShellPlace::step_document(char c) {
    if (c != '\n') {
        line_ += c;
        return literal_;
    }
    if (tabs_) line_.erase(0, line_.find_first_not_of('\t'));
    const bool ends = std::exchange(line_, {}) == end_;
    if (!ends) return literal_;
    document_ = Document::none;
    single_ = dollar_single_ = comment_ = escaped_ = false; // of code in it
    frames_.resize(frames_.find(static_cast<char>(Frame::document)));
    return true;
}

std::string written_at(Quotes place, const std::string& value) {
    if (place == Quotes::comment) return {};
    const bool document = place == Quotes::document || place == Quotes::literal_document;
    if (document && value.find('\n') != std::string::npos)
        throw base::UsageError(
            "a value with several lines stands in a here-document (<<), where one of them might end "
            "it; pass it by a variable: v={x}, and \"$v\" there");
    std::string text;
    for (const char c : value) {
        if (place == Quotes::single && c == '\'')
            text += "'\\'";
        else if ((place == Quotes::twice && is_any_of(c, "\\\"$`")) ||
                 (place == Quotes::document && is_any_of(c, "\\$`")))
            text += '\\';
        text += c;
    }
    return text;
}

} // namespace ranktune::study
