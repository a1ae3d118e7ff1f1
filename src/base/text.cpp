// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace ranktune::base {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <class Text>
std::string_view nearest_of(std::string_view name, std::span<const Text> candidates) {
    std::string_view best;
    std::size_t best_distance = 1 + name.size() / 4 + 1;
    for (const Text& candidate : candidates) {
        const std::size_t distance = edit_distance(name, candidate);
        if (distance < best_distance && distance < name.size()) {
            best = candidate;
            best_distance = distance;
        }
    }
    // `stat` means `status` rather than `stop`.
    constexpr std::size_t shortest_beginning = 3;
    if (best_distance > 1 && name.size() >= shortest_beginning) {
        std::string_view longer;
        for (const Text& candidate : candidates)
            if (std::string_view(candidate).starts_with(name) && (longer.empty() || candidate.size() < longer.size()))
                longer = candidate;
        if (!longer.empty()) return longer;
    }
    return best;
}

std::string offer(std::string_view name) {
    return name.empty() ? std::string() : "; did you mean '" + std::string(name) + "'?";
}

template <class Text>
std::string joined(std::span<const Text> parts, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) text += separator;
        text += parts[i];
    }
    return text;
}

} // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    // Three rows of the table of distances between prefixes: two back (for swaps), one back, current.
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> previous(b.size() + 1);
    std::vector<std::size_t> current(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(previous);
        previous.swap(current);
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
            current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + change});
            const bool swapped =
                i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
        }
    }
    return current[b.size()];
}

std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates) {
    return nearest_of(name, candidates);
}
std::string_view nearest(std::string_view name, std::span<const std::string> candidates) {
    return nearest_of(name, candidates);
}
std::string_view nearest(std::string_view name, std::initializer_list<std::string_view> candidates) {
    return nearest_of(name, std::span<const std::string_view>(candidates.begin(), candidates.size()));
}

std::string suggestion(std::string_view name, std::span<const std::string_view> candidates) {
    return offer(nearest(name, candidates));
}
std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
    return offer(nearest(name, candidates));
}

std::string gist(std::string_view message) {
    const std::string_view whole = trimmed(message);
    const std::string_view first = trimmed(whole.substr(0, whole.find('\n')));
    if (first.find("Traceback (most recent call last)") == std::string_view::npos) return std::string(first);
    return std::string(trimmed(whole.substr(whole.rfind('\n') + 1))); // npos + 1 is 0
}

std::string join(std::span<const std::string> parts, std::string_view separator) { return joined(parts, separator); }
std::string join(std::span<const std::string_view> parts, std::string_view separator) {
    return joined(parts, separator);
}

std::string join_some(std::vector<std::string> parts, std::size_t shown, std::string_view separator) {
    const std::size_t more = parts.size() - std::min(shown, parts.size());
    parts.resize(parts.size() - more);
    return join(parts, separator) + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const auto first = text.find_first_not_of(blanks);
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

std::string grouped(std::uint64_t value) {
    std::string text = std::to_string(value);
    for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
    return text;
}

std::string plural(std::uint64_t count, std::string_view noun) { return std::string(noun) + (count == 1 ? "" : "s"); }

std::string counted(std::uint64_t count, std::string_view noun) { return grouped(count) + " " + plural(count, noun); }

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1000) return std::to_string(bytes) + " B";
    double value = static_cast<double>(bytes);
    for (const char* unit : {"kB", "MB", "GB", "TB", "PB"}) {
        value /= 1000.0;
        char text[32];
        std::snprintf(text, sizeof text, value < 9.95 ? "%.1f %s" : "%.0f %s", value, unit);
        if (value < 999.5) return text;
    }
    return grouped(bytes / 1'000'000'000'000'000) + " PB";
}

} // namespace ranktune::base
