// SPDX-License-Identifier: Apache-2.0
#include "report/view/trial_filter.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "space/syntax_error.hpp"

namespace ranktune::report {
namespace {

bool begins_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string_view("_.-/:@").find(c) != std::string::npos;
}

bool is_reserved(std::string_view word) {
    return word == "and" || word == "or" || word == "not" || word == "in" || word == "true" || word == "false";
}

/// The text in the grammar of conditions: words quoted, names replaced by aliases. Knows which column of the text each
/// of its own columns stands for.
class Rewriting {
  public:
    explicit Rewriting(std::string_view text) : text_(text) {
        while (at_ < text_.size()) step();
    }
    [[nodiscard]] const std::string& result() const { return result_; }

    struct Name {
        std::string alias;
        std::string name;
        std::size_t column = 0;
    };
    [[nodiscard]] const std::vector<Name>& names() const { return names_; }

    /// A word or a string, with the name that it is compared with.
    struct Word {
        std::string name;
        std::string text;
        std::size_t column = 0;
    };
    [[nodiscard]] const std::vector<Word>& words() const { return words_; }

    /// The column of the original text for one of the result.
    [[nodiscard]] std::size_t column_of_text(std::size_t column) const {
        for (std::size_t i = 0; i < from_.size(); ++i)
            if (space::column_at(result_, i) >= column) return space::column_at(text_, from_[i]);
        return space::column_at(text_, text_.size());
    }

  private:
    void put(std::string_view piece, std::size_t from) {
        result_ += piece;
        from_.insert(from_.end(), piece.size(), from);
    }

    void step() {
        const char c = text_[at_];
        if (c == '\'' || c == '"') return quoted(c);
        if (begins_word(c)) return word();
        put(text_.substr(at_, 1), at_);
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) { // 1e-5: its e begins no word
            literal_ = false;
            for (++at_; at_ < text_.size() && is_in_word(text_[at_]); ++at_) put(text_.substr(at_, 1), at_);
            return;
        }
        if (c == '=' || c == '<' || c == '>' || c == '[' || c == ',')
            literal_ = true;
        else if (std::isspace(static_cast<unsigned char>(c)) == 0)
            literal_ = c == '-' || c == '+' || c == '!';
        ++at_;
    }

    void quoted(char quote) {
        std::size_t end = at_ + 1;
        while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' && quote == '"' ? 2 : 1;
        end = std::min(end + 1, text_.size());
        if (end - at_ >= 2) compared(text_.substr(at_ + 1, end - at_ - 2));
        for (; at_ < end; ++at_) put(text_.substr(at_, 1), at_);
        literal_ = false;
    }

    void word() {
        std::size_t end = at_;
        while (end < text_.size() && is_in_word(text_[end])) ++end;
        const std::string_view found = text_.substr(at_, end - at_);
        if (is_reserved(found)) {
            put(found, at_);
        } else if (literal_) {
            put("'" + std::string(found) + "'", at_);
            compared(found);
        } else {
            names_.push_back({"n" + std::to_string(names_.size()), std::string(found), space::column_at(text_, at_)});
            put(names_.back().alias, at_);
        }
        literal_ = false;
        at_ = end;
    }

    void compared(std::string_view word) {
        if (!names_.empty()) words_.push_back({names_.back().name, std::string(word), space::column_at(text_, at_)});
    }

    std::string_view text_;
    std::size_t at_ = 0;
    bool literal_ = false; ///< a literal is expected here
    std::string result_;
    std::vector<std::size_t> from_; ///< by byte of the result: a byte of the text
    std::vector<Name> names_;
    std::vector<Word> words_;
};

} // namespace

TrialFilter::TrialFilter(const std::string& text, const Check& check, const CheckWord& check_word) {
    const Rewriting rewriting(text);
    try {
        condition_ = space::Condition::parse(rewriting.result());
    } catch (const space::SyntaxError& error) {
        throw error.at(rewriting.column_of_text(error.column()));
    }
    for (const auto& [alias, name, column] : rewriting.names()) {
        check(name, "at column " + std::to_string(column));
        names_.emplace(alias, name);
    }
    if (!check_word) return;
    for (const auto& [name, word, column] : rewriting.words())
        check_word(name, word, "at column " + std::to_string(column));
}

bool TrialFilter::holds(const std::function<std::optional<space::Value>(const std::string&)>& value_of) const {
    std::map<std::string, space::Value, std::less<>> values; // the condition looks at values, and keeps none
    return condition_->holds([&](std::string_view alias) -> const space::Value* {
        const auto name = names_.find(alias);
        if (name == names_.end()) return nullptr;
        const auto value = value_of(name->second);
        return value ? &(values[std::string(alias)] = *value) : nullptr;
    });
}

} // namespace ranktune::report
