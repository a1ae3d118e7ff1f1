// SPDX-License-Identifier: Apache-2.0
#include "study/printed_values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::study {
namespace {

/// A pattern that tries so often to match one line is given up there, as if it had not matched.
constexpr std::uint32_t most_tries = 1'000'000;

/// "0.25", "+3", ".5", "1e-3", Fortran's "1.0D-03", "nan", "inf".
std::optional<double> number_of(std::string_view text) {
    text = base::trimmed(text);
    if (text.starts_with('+')) text.remove_prefix(1);
    std::string digits(text);
    if (digits.find_first_not_of("+-.0123456789dDeE") == std::string::npos)
        std::ranges::replace_if(
            digits, [](char c) { return c == 'd' || c == 'D'; }, 'e');
    return base::number_in<double>(digits);
}

std::string_view as_text(std::span<const PCRE2_UCHAR8> text) {
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

} // namespace

struct PrintedValues::Pattern {
    struct Group {
        std::uint32_t number;
        std::string metric;
    };
    std::string text;
    std::unique_ptr<pcre2_code, FreeCode> code;
    std::unique_ptr<pcre2_match_data, FreeMatch> match;
    std::unique_ptr<pcre2_match_context, FreeContext> context;
    std::vector<Group> groups;

    Pattern(std::string pattern, const Objective& objective) : text(std::move(pattern)) {
        int error = 0;
        PCRE2_SIZE at = 0;
        code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, &error, &at, nullptr));
        if (!code) {
            std::array<PCRE2_UCHAR8, 256> why{};
            const int size = pcre2_get_error_message(error, why.data(), why.size());
            throw base::UsageError(
                "'" + base::printable(text) + "' is no regular expression: " +
                std::string(as_text(std::span(why).first(static_cast<std::size_t>(std::max(0, size))))) +
                ", at character " + std::to_string(at + 1));
        }
        match.reset(pcre2_match_data_create_from_pattern(code.get(), nullptr));
        context.reset(pcre2_match_context_create(nullptr));
        pcre2_set_match_limit(context.get(), most_tries);
        list_groups(objective);
    }

  private:
    void list_groups(const Objective& objective) {
        const auto fact = [&](std::uint32_t what) {
            std::uint32_t value = 0;
            pcre2_pattern_info(code.get(), what, &value);
            return value;
        };
        PCRE2_SPTR names = nullptr; // per name: its group's number in two bytes, then the name, ended by zero
        pcre2_pattern_info(code.get(), PCRE2_INFO_NAMETABLE, &names);
        const std::uint32_t width = fact(PCRE2_INFO_NAMEENTRYSIZE);
        for (std::uint32_t i = 0; i < fact(PCRE2_INFO_NAMECOUNT); ++i) {
            const auto* entry = names + std::size_t{i} * width;
            groups.push_back(
                {static_cast<std::uint32_t>(entry[0] << 8U | entry[1]), reinterpret_cast<const char*>(entry + 2)});
        }
        std::ranges::sort(groups, {}, &Group::number);
        if (!groups.empty()) return;
        if (objective.several())
            throw base::UsageError("'" + base::printable(text) +
                                   "' does not say of which metric its values are: name its groups, as in (?P<" +
                                   objective.metric + ">[-+.0-9a-zA-Z]+)");
        if (fact(PCRE2_INFO_CAPTURECOUNT) == 0)
            throw base::UsageError("'" + base::printable(text) +
                                   "' has no group: put the value into parentheses, as in 'loss: ([-+.0-9a-zA-Z]+)'");
        groups.push_back({1, objective.metric});
    }
};

PrintedValues::PrintedValues(std::span<const std::string> patterns, const Objective& objective) {
    for (const std::string& text : patterns) patterns_.push_back(std::make_unique<Pattern>(text, objective));
    for (const Goal& goal : objective.goals()) needed_.push_back(goal.metric);
    for (const Constraint& limit : objective.constraints)
        if (std::ranges::find(needed_, limit.metric) == needed_.end()) needed_.push_back(limit.metric);
    for (const std::string& metric : needed_) {
        const bool has = std::ranges::any_of(patterns_, [&](const auto& pattern) {
            return std::ranges::find(pattern->groups, metric, &Pattern::Group::metric) != pattern->groups.end();
        });
        if (has) continue;
        const bool may_name =
            std::ranges::all_of(metric, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
        throw base::UsageError(
            "no group finds '" + base::printable(metric) + "', a metric of the study" +
            (may_name
                 ? ": name one, as in (?P<" + metric + ">[-+.0-9a-zA-Z]+)"
                 : ", which is no name of a group: only a pattern without named groups can find it, as study.metric"));
    }
}

PrintedValues::~PrintedValues() = default;

void PrintedValues::take(const Pattern& pattern, std::string_view text) {
    const int groups = pcre2_match(pattern.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                   pattern.match.get(), pattern.context.get());
    if (groups < 0) return; // no match, or given up
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(pattern.match.get());
    for (const auto& [number, metric] : pattern.groups) {
        const std::size_t from = ends[2 * number];
        if (number >= static_cast<std::uint32_t>(groups) || from == PCRE2_UNSET) continue; // an alternative without it
        const std::string_view part = text.substr(from, ends[2 * number + 1] - from);
        const auto value = number_of(part);
        if (!value)
            throw base::Error("'" + base::printable(part) + "', which '" + base::printable(pattern.text) +
                              "' (report of [trainable]) finds for " + metric +
                              ", is no number; the line: " + base::printable(text.substr(0, 200)));
        const auto known = std::ranges::find(found_, metric, &Values::value_type::first);
        if (known == found_.end())
            found_.emplace_back(metric, *value);
        else
            known->second = *value;
    }
}

std::optional<PrintedValues::Values> PrintedValues::line(std::string_view text) {
    for (const auto& pattern : patterns_) take(*pattern, text);
    for (const std::string& metric : needed_)
        if (std::ranges::find(found_, metric, &Values::value_type::first) == found_.end()) return std::nullopt;
    return std::exchange(found_, {});
}

std::optional<double> last_number(std::string_view output) {
    const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    const auto in_number = [&](char c) { return in_word(c) || c == '.' || c == '+' || c == '-'; };
    for (std::size_t end = output.size(); end > 0;) {
        if (!in_number(output[end - 1])) {
            --end;
            continue;
        }
        std::size_t begin = end;
        while (begin > 0 && in_number(output[begin - 1])) --begin;
        std::string_view word = output.substr(begin, end - begin);
        while (word.ends_with('.')) word.remove_suffix(1); // the end of a sentence
        if (const auto value = number_of(word)) return value;
        end = begin;
    }
    return std::nullopt;
}

} // namespace ranktune::study
