// SPDX-License-Identifier: Apache-2.0
#include "slurm/lists.hpp"

#include <algorithm>

#include "base/number_in.hpp"
#include "base/take_until.hpp"

namespace ranktune::slurm {
namespace {

constexpr std::size_t most_hosts = 1'000'000;

std::optional<std::uint32_t> number(std::string_view digits) { return base::number_in<std::uint32_t>(digits); }

/// Splits at `separator` outside of brackets. Nothing: unbalanced brackets.
std::optional<std::vector<std::string_view>> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    bool inside = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[' || text[i] == ']') {
            if (inside == (text[i] == '[')) return std::nullopt;
            inside = !inside;
        } else if (text[i] == separator && !inside) {
            parts.push_back(text.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    if (inside) return std::nullopt;
    parts.push_back(text.substr(begin));
    return parts;
}

struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::size_t digits = 0; ///< width, with leading zeros
};

/// "1-3" or "07".
std::optional<Range> range_of(std::string_view text) {
    const auto dash = text.find('-');
    const auto low = text.substr(0, dash);
    const auto first = number(low);
    const auto last = dash == std::string_view::npos ? first : number(text.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    return Range{*first, *last, low.size()};
}

std::string padded(std::uint32_t value, std::size_t digits) {
    std::string text = std::to_string(value);
    if (text.size() < digits) text.insert(0, digits - text.size(), '0');
    return text;
}

/// Expands the contents of one pair of brackets.
std::optional<std::vector<std::string>> bracket(std::string_view inside) {
    std::vector<std::string> items;
    const auto parts = split(inside, ',');
    if (!parts) return std::nullopt;
    for (const auto part : *parts) {
        const auto range = range_of(part);
        if (!range || range->last - range->first >= most_hosts) return std::nullopt;
        for (std::uint32_t i = range->first; i <= range->last; ++i) items.push_back(padded(i, range->digits));
    }
    return items;
}

/// Appends every name of `pattern`. False: not a pattern, or too many names.
bool append_hosts(std::string_view pattern, std::vector<std::string>& hosts) {
    if (pattern.empty()) return false;
    std::vector<std::string> names{""};
    while (!pattern.empty()) {
        const auto open = pattern.find('[');
        for (auto& name : names) name += pattern.substr(0, open);
        if (open == std::string_view::npos) break;
        const auto close = pattern.find(']', open);
        const auto items = bracket(pattern.substr(open + 1, close - open - 1));
        if (!items || items->size() * names.size() > most_hosts) return false;
        std::vector<std::string> longer;
        longer.reserve(items->size() * names.size());
        for (const auto& name : names)
            for (const auto& item : *items) longer.push_back(name + item);
        names = std::move(longer);
        pattern.remove_prefix(close + 1);
    }
    if (hosts.size() + names.size() > most_hosts) return false;
    std::move(names.begin(), names.end(), std::back_inserter(hosts));
    return true;
}

} // namespace

std::optional<std::vector<std::string>> expand_hostlist(std::string_view list) {
    std::vector<std::string> hosts;
    const auto parts = split(list, ',');
    if (!parts) return std::nullopt;
    for (const auto part : *parts)
        if (!append_hosts(part, hosts)) return std::nullopt;
    return hosts;
}

std::optional<std::vector<std::uint32_t>> expand_counts(std::string_view list) {
    std::vector<std::uint32_t> counts;
    const auto parts = split(list, ',');
    if (!parts) return std::nullopt;
    for (auto part : *parts) {
        std::uint32_t times = 1;
        if (const auto open = part.find("(x"); open != std::string_view::npos) {
            if (part.back() != ')') return std::nullopt;
            const auto repeat = number(part.substr(open + 2, part.size() - open - 3));
            if (!repeat) return std::nullopt;
            times = *repeat;
            part = part.substr(0, open);
        }
        const auto count = number(part);
        if (!count || counts.size() + times > most_hosts) return std::nullopt;
        counts.insert(counts.end(), times, *count);
    }
    return counts;
}

std::vector<std::string> expand_devices(std::string_view list) {
    constexpr std::uint32_t most_devices = 1024;
    std::vector<std::string> devices;
    while (!list.empty()) {
        auto item = base::take_until(list, ',');
        while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
        while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
        if (item.empty()) continue;
        const auto range = range_of(item);
        if (!range || range->last - range->first >= most_devices) {
            devices.emplace_back(item);
        } else {
            for (std::uint32_t i = range->first; i <= range->last; ++i) devices.push_back(std::to_string(i));
        }
    }
    return devices;
}

} // namespace ranktune::slurm
