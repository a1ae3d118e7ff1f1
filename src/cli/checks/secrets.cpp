// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/doctor.hpp"

#include <algorithm>
#include <regex>
#include <sstream>
#include <string_view>

namespace ranktune::cli {
namespace {

constexpr std::string_view removed = "(removed)";

/// Removes PEM blocks, which may span lines or stand in one line with `\n` in it (a JSON string).
class PemBlocks {
  public:
    /// A truncated text may begin inside a block.
    explicit PemBlocks(const std::string& text) : inside_(text.find(end_mark) < text.find(begin_mark)) {}

    std::string without(const std::string& line) {
        std::string out;
        std::size_t at = 0;
        while (at < line.size()) {
            if (inside_) {
                const auto end = line.find(end_mark, at);
                if (end == std::string::npos) return out;
                const auto dashes = line.find("-----", end + end_mark.size());
                at = dashes == std::string::npos ? line.size() : dashes + 5;
                inside_ = false;
                continue;
            }
            const auto begin = line.find(begin_mark, at);
            out += line.substr(at, begin - at);
            if (begin == std::string::npos) break;
            out += removed;
            at = begin + begin_mark.size();
            inside_ = true;
        }
        return out;
    }
    [[nodiscard]] bool inside() const { return inside_; }

  private:
    static constexpr std::string_view begin_mark = "-----BEGIN ";
    static constexpr std::string_view end_mark = "-----END ";
    bool inside_ = false;
};

/// Removes what stands between "://" and the last @ of the authority: `https://user:password@host`.
std::string without_url_credentials(const std::string& line) {
    std::string out;
    std::size_t at = 0;
    for (std::size_t slashes; (slashes = line.find("://", at)) != std::string::npos;) {
        const std::size_t begin = slashes + 3;
        const std::size_t end = std::min(line.find_first_of("/?#\"'<> \t", begin), line.size());
        const std::size_t sign = line.substr(begin, end - begin).rfind('@');
        out += line.substr(at, begin - at);
        if (sign != std::string::npos) out += removed;
        at = sign == std::string::npos ? begin : begin + sign;
    }
    return out + line.substr(at);
}

std::string without_named_secrets(std::string line) {
    static const std::regex secret(
        R"re(((?:key|token|secret|passw|passphrase|[_-]pwd|credential|auth)[A-Za-z0-9_.-]*["']?\s*[=:]\s*(?:(?:bearer|basic|digest|token)\s+)?)("[^"\n]*"|'[^'\n]*'|[^\s,;"']+))re",
        std::regex::icase);
    static const std::regex option(
        R"re((--?[A-Za-z0-9_.-]*(?:key|token|secret|passw|passphrase|[_-]pwd|credential|auth)[A-Za-z0-9_.-]*(?:["']\s*,)?\s+)("[^"\n]*"|'[^'\n]*'|[^\s,;"']+))re",
        std::regex::icase);
    static const std::regex bearer(R"re((\bbearer\s+)([A-Za-z0-9._~+/=-]+))re", std::regex::icase);
    for (const auto* pattern : {&secret, &option, &bearer})
        line = std::regex_replace(line, *pattern, "$1" + std::string(removed));
    return line;
}

} // namespace

std::string without_secrets(const std::string& text) {
    std::istringstream in(text);
    PemBlocks pem(text);
    std::string out;
    for (std::string line; std::getline(in, line);) {
        const bool began_inside = pem.inside();
        line = pem.without(line);
        if (began_inside && line.empty()) continue;
        // std::regex recurses on every character: a very long line would overflow the stack.
        constexpr std::size_t longest = 4000;
        if (line.size() > longest) line = line.substr(0, longest) + " (cut)";
        out += without_named_secrets(without_url_credentials(line)) + "\n";
    }
    return out;
}

} // namespace ranktune::cli
