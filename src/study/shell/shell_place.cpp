// SPDX-License-Identifier: Apache-2.0
#include "study/shell/shell_place.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::study {
namespace {

bool is_any_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

constexpr char process_id = '\1'; // $$, of whose last '$' some shells think otherwise

constexpr std::string_view ends_of_words = " \t\n;&|()<>";

/// A command may follow.
bool is_before_command(std::string_view word) {
    constexpr std::string_view words[] = {"then", "do", "else", "elif", "if", "while", "until", "!", "{"};
    return std::ranges::find(words, word) != std::end(words);
}

} // namespace

std::optional<Quotes> ShellPlace::value() {
    const bool joins = escaped_ || variable_; // what is before would change the value, or the value that
    last_ = 'x';
    escaped_ = variable_ = false;
    top().word += '"';
    line_ += '\0'; // so that this is not the end of a document
    if (name_) lose("a value in the name of a here-document");
    if (top().closing) lose("'((' without '))'");
    if (lost_) return std::nullopt;
    switch (top().kind) {
        case Kind::comment:
            return Quotes::comment;
        case Kind::single:
            return Quotes::single;
        case Kind::dollar_single:
            return refuse("between $'...' quotes");
        case Kind::backticks:
            return refuse("between backticks");
        case Kind::braces:
        case Kind::plain:
            return refuse("within ${...}");
        default:
            break;
    }
    if (top().kind == Kind::document && top().documents.front().literal) return Quotes::literal_document;
    if (joins) {
        why_ = "it stands directly behind '$', the name of a variable or a backslash";
        return std::nullopt;
    }
    switch (top().kind) {
        case Kind::document:
            return Quotes::document;
        case Kind::twice:
            return Quotes::twice;
        case Kind::code:
            return Quotes::none;
        default:
            return Quotes::arithmetic;
    }
}

bool ShellPlace::ends() {
    while (!lost_ && (top().kind == Kind::comment || top().kind == Kind::document)) open_.pop_back();
    if (!lost_ && open_.size() > 1) why_ = "what begins with " + shown(top().begin) + " does not end";
    return lost_ || open_.size() == 1;
}

bool ShellPlace::is_as_deep_as(const ShellPlace& other) const {
    return lost_ == other.lost_ && std::ranges::equal(open_, other.open_, [](const Open& a, const Open& b) {
               return a.kind == b.kind && a.documents.size() == b.documents.size();
           });
}

void ShellPlace::step(char c) {
    text_ += c;
    if (lost_) return;
    if (c != '\n') line_ += c;
    if (name_ && step_name(c)) return;
    const bool in_name = std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                         (std::isdigit(static_cast<unsigned char>(c)) != 0 && last_ != '$');
    if (std::exchange(escaped_, false)) {
        if (c == '\n' && top().kind != Kind::backticks) { // as if neither were there
            end_line(true);
            if (is_any_of(last_, "$<")) lose("an operator on two lines");
            return;
        }
        top().word += '"';
        last_ = 'x';
        variable_ = false;
        return;
    }
    escaped_ = c == '\\' && knows_backslashes();
    if (!escaped_) {
        if (c != '\n' || !end_line(false)) step_here(c);
        last_ = last_ == '$' && c == '$' ? process_id : c;
        variable_ = last_ == '$' || (variable_ && in_name);
    }
}

bool ShellPlace::knows_backslashes() const {
    const Open& open = open_.back();
    if (open.kind == Kind::document) return !open.documents.front().literal;
    return open.kind == Kind::code || open.kind == Kind::twice || open.kind == Kind::braces ||
           open.kind == Kind::backticks;
}

void ShellPlace::step_here(char c) {
    switch (top().kind) {
        case Kind::comment:
            if (c != '\n') return;
            open_.pop_back();
            return step_code(c);
        case Kind::single:
        case Kind::dollar_single:
            if (top().kind == Kind::dollar_single && c == '\\') lose("a backslash between $'...' quotes");
            if (c == '\'') open_.pop_back();
            return;
        case Kind::backticks:
            if (c == '`') open_.pop_back();
            return;
        case Kind::plain:
            if (c == top().quote)
                open_.pop_back();
            else if (is_any_of(c, "{}'\"`\\") || (c == '(' && last_ == '$'))
                lose("such quotes within ${...} between quotes");
            return;
        case Kind::code:
            return step_code(c);
        case Kind::arithmetic:
        case Kind::group:
            return step_arithmetic(c);
        case Kind::twice:
        case Kind::braces:
        case Kind::document:
            if (top().kind == Kind::document && top().documents.front().literal) return;
            return step_text(c);
    }
}

ShellPlace::Open& ShellPlace::push(Kind kind, std::size_t size) {
    open_.push_back({.kind = kind, .begin = text_.size() - size});
    return top();
}

void ShellPlace::lose(std::string_view why) { lose(why, top().begin); }

void ShellPlace::lose(std::string_view why, std::size_t begin) {
    if (std::exchange(lost_, true)) return;
    why_ = "what begins with " + shown(begin) + " cannot be followed: " + std::string(why);
}

std::string ShellPlace::shown(std::size_t begin) const {
    const std::string_view text = std::string_view(text_).substr(begin);
    const std::string_view shown = text.substr(0, std::min<std::size_t>(text.find('\n'), 30));
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
    return "'" + std::string(shown) + "'" + (line > 1 ? " in line " + std::to_string(line) : "");
}

std::optional<Quotes> ShellPlace::refuse(std::string_view why) {
    why_ = "it stands " + std::string(why) + ", in what begins with " + shown(top().begin);
    return std::nullopt;
}

/// `quoted`: of `${...}`. True: the character begins it, or something else that shells fill in.
bool ShellPlace::begin_expansion(char c, bool quoted) {
    if (c == '`') {
        top().word += c;
        push(Kind::backticks, 1);
        return true;
    }
    if (!is_any_of(c, "({[") || (last_ != '$' && last_ != process_id)) return false;
    if (last_ == process_id) lose("an operator behind $$", text_.size() - 3);
    if (c == '[') lose("$[...]", text_.size() - 2);
    if (c == '(') push(Kind::code, 2).substitutes = true;
    if (c == '{') push(Kind::braces, 2).quoted = quoted;
    return true;
}

void ShellPlace::begin_quotes(char c) {
    if (c == '"') {
        push(Kind::twice, 1);
    } else if (last_ == process_id) {
        lose("quotes behind $$", text_.size() - 3);
    } else if (last_ == '$') {
        push(Kind::dollar_single, 2);
    } else {
        push(Kind::single, 1);
    }
}

/// Between double quotes, in here-documents, and in `${...}`.
void ShellPlace::step_text(char c) {
    const Open& open = top();
    if (begin_expansion(c, open.kind != Kind::braces || open.quoted)) return;
    if (open.kind == Kind::twice && c == '"') open_.pop_back();
    if (open.kind != Kind::braces) return;
    if (text_.size() == open.begin + 3 && is_any_of(c, " \t\n|")) lose("a command in braces");
    if (c == '}')
        open_.pop_back();
    else if (open.quoted && is_any_of(c, "'\""))
        push(Kind::plain, 1).quote = c;
    else if (is_any_of(c, "'\""))
        begin_quotes(c);
}

/// Some shells take `((` for two subshells, where quotes, comments and lines mean something.
void ShellPlace::step_arithmetic(char c) {
    if (begin_expansion(c, true)) return;
    const bool in_number = std::isalnum(static_cast<unsigned char>(last_)) != 0; // 16#ff
    const auto is_subshell = [](const Open& open) { return open.kind == Kind::arithmetic && !open.substitutes; };
    if (top().closing && c != ')') return lose("'((' without '))'");
    if (is_any_of(c, "'\"\\") || (c == '#' && !in_number) ||
        ((c == '\n' || (c == '<' && last_ == '<')) && std::ranges::any_of(open_, is_subshell)))
        return lose("quotes, comments or lines in arithmetic");
    if (c == '(') push(Kind::group, 1);
    if (c != ')') return;
    if (top().kind == Kind::group)
        open_.pop_back();
    else if (!std::exchange(top().closing, true))
        return;
    else
        close(top().substitutes, false);
}

void ShellPlace::step_code(char c) {
    if (begin_expansion(c, false)) return;
    if (c == '(') return open_parenthesis();
    if (c == ')') return close_parenthesis();
    if (is_any_of(c, ends_of_words)) {
        end_word();
        top().command = top().command || is_any_of(c, "\n;&|");
        if (c == '<' || c == '>') top().command = false;
        if (c == '<' && last_ == '<') name_.emplace();
        if (c == '\n') begin_documents();
        return;
    }
    std::string& word = top().word;
    if (c == '#' && word == ")") return lose("'#' directly behind ')'");
    if (c == '#' && word.empty()) {
        push(Kind::comment, 1);
        return;
    }
    if (word == ")") end_word();
    word += c;
    if (is_any_of(c, "'\"")) begin_quotes(c);
}

void ShellPlace::open_parenthesis() {
    Open& open = top();
    if (last_ == '(' && open.begin + (open.substitutes ? 3 : 2) == text_.size()) {
        open.kind = Kind::arithmetic;
        if (open.joined) lose("'((' behind a word");
        return;
    }
    const bool joined = !open.word.empty() || is_any_of(last_, "<>");
    push(Kind::code, 1).joined = joined;
}

void ShellPlace::close_parenthesis() {
    end_word();
    top().command = true;
    if (top().cases > 0 || open_.size() == 1) return; // of a pattern
    if (!top().documents.empty()) return lose("a here-document that does not begin");
    close(top().substitutes, top().joined);
}

void ShellPlace::close(bool substitutes, bool joined) {
    open_.pop_back();
    if (substitutes) {
        top().word += '"';
    } else {
        top().word = joined ? ")" : "";
        top().command = true;
    }
}

void ShellPlace::end_word() {
    const std::string word = std::exchange(top().word, {});
    if (word.empty()) return;
    const bool command = top().command;
    const bool counts = open_.size() > 1; // only there parentheses end something
    if (counts && (word == "case" || (word == "esac" && top().cases > 0))) {
        if (!command) return lose("the word '" + word + "'");
        word == "case" ? ++top().cases : --top().cases;
    }
    top().command = word == ")" || (command && is_before_command(word));
}

/// False: the name ended before the character.
bool ShellPlace::step_name(char c) {
    Document& document = *name_;
    const char before = std::exchange(last_, c);
    if (name_quote_ != '\0') {
        if (c == '\n' || (name_quote_ == '"' && is_any_of(c, "\\$`"))) {
            lose("the name of a here-document");
        } else if (c == name_quote_) {
            name_quote_ = '\0';
        } else {
            document.end += c;
            if (name_quote_ == '\\') name_quote_ = '\0';
        }
        return true;
    }
    if (document.end.empty() && !document.literal) {
        if (c == '<') { // <<< is a text
            name_.reset();
            last_ = 'x';
            return true;
        }
        if (c == '-' && before == '<') {
            document.tabs = true;
            return true;
        }
        if (is_any_of(c, " \t")) return true;
        if (c == '#' || is_any_of(c, ends_of_words)) lose("a here-document without a name");
    }
    if (is_any_of(c, ends_of_words)) {
        context().documents.push_back(std::move(document));
        name_.reset();
        last_ = before;
        return lost_;
    }
    if (is_any_of(c, "$`")) lose("the name of a here-document");
    if (is_any_of(c, "'\"\\")) {
        document.literal = true;
        name_quote_ = c;
    } else {
        document.end += c;
    }
    return true;
}

/// What reads its own here-documents.
ShellPlace::Open& ShellPlace::context() {
    auto open = open_.rbegin();
    while (open + 1 != open_.rend() && !open->substitutes && !open->joined) ++open;
    return *open;
}

void ShellPlace::begin_documents() {
    std::vector<Document> documents = std::exchange(context().documents, {});
    if (!documents.empty()) push(Kind::document, 0).documents = std::move(documents);
}

/// The last line has ended. `joins`: by a backslash, so that the next one belongs to it. True: it was the end of a
/// document.
bool ShellPlace::end_line(bool joins) {
    std::string line = std::exchange(line_, {});
    const Kind kind = top().kind;
    for (const Open& open : open_) {
        if (open.kind == Kind::document) {
            if (open.documents.front().tabs) line.erase(0, line.find_first_not_of('\t'));
            if (&open != &top() && line == open.documents.front().end)
                lose("within a here-document it has a line like the end of that");
        } else if (!joins && !open.documents.empty() && &open != &context()) {
            lose("a here-document begins within it");
        }
    }
    const bool reads_on = kind == Kind::code || kind == Kind::comment || kind == Kind::document;
    if (!joins && !reads_on && !context().documents.empty()) lose("a here-document begins within it");
    if (lost_ || kind != Kind::document) return false;
    const std::string& end = top().documents.front().end;
    if (joins) {
        joined_ += line.substr(0, line.size() - 1);
        continued_ = true;
        return false;
    }
    const std::string joined = std::exchange(joined_, {}) + line;
    if (std::exchange(continued_, false)) {
        if (line == end || joined == end) lose("the line at its end is joined by a backslash");
        return false;
    }
    if (line != end) return false;
    top().documents.erase(top().documents.begin());
    if (top().documents.empty()) open_.pop_back();
    return true;
}

std::string written_at(Quotes place, const std::string& value) {
    if (place == Quotes::comment) return {};
    const bool document = place == Quotes::document || place == Quotes::literal_document;
    if (document && value.find('\n') != std::string::npos)
        throw base::UsageError(
            "a value with several lines stands in a here-document (<<), where one of them might end "
            "it; pass it by a variable: v={x}, and \"$v\" there");
    const auto is_plain = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || is_any_of(c, "_.+-");
    };
    if (place == Quotes::arithmetic && (value.empty() || !std::ranges::all_of(value, is_plain)))
        throw base::UsageError("the value '" + value +
                               "' stands in $((...)), where only numbers can; pass it by a "
                               "variable: v={x}, and \"$v\" elsewhere");
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
