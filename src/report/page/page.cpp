// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.hpp"

#include <cstddef>
#include <ostream>
#include <stdexcept>
#include <string_view>

#include "base/joined.hpp"

namespace ranktune::report {

/// src/report/page/, put together by assemble.py.
std::span<const std::byte> page_template();

namespace {

/// Writes `page` up to `place`, and removes both from it.
void write_up_to(std::string_view& page, std::string_view place, std::ostream& out) {
    const auto at = page.find(place);
    if (at == std::string_view::npos) throw std::logic_error("the page has no place for " + std::string(place));
    out << page.substr(0, at);
    page.remove_prefix(at + place.size());
}

/// From `begin` to the next `end`, without them.
std::string_view between(std::string_view page, std::string_view begin, std::string_view end) {
    const auto at = page.find(begin);
    if (at == std::string_view::npos) throw std::logic_error("the page has no " + std::string(begin));
    const auto from = at + begin.size();
    return page.substr(from, page.find(end, from) - from);
}

std::string title_of(std::span<const PageStudy> studies) {
    return html(base::joined(studies, [](const PageStudy& study) { return study.view.name; }));
}

} // namespace

void write_page(std::span<const PageStudy> studies, const std::string& made, std::ostream& out) {
    const auto bytes = page_template();
    std::string_view page(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool without_scripts = page.find("script-src 'none'") != std::string_view::npos;
    write_up_to(page, "@TITLE@", out);
    out << title_of(studies);
    write_up_to(page, "@STATIC@", out);
    out << static_page(studies, without_scripts);
    write_up_to(page, "@DATA@", out);
    if (!without_scripts) out << page_data(studies, made); // which nothing would read
    out << page;
}

std::string page_style() {
    const auto bytes = page_template();
    const std::string_view page(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::string text = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src ";
    text.append(between(page, "; style-src ", "\"")).append("\">\n<style>");
    return text.append(between(page, "<style>", "</style>")).append("</style>\n");
}

} // namespace ranktune::report
