// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTML report: one file that loads nothing.

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "report/page/page_data.hpp"

namespace ranktune::report {

/// Writes the page of one study, or of several side by side (at least one). `made`: now, RFC 3339. What users named
/// and programs printed is text in it, never markup; a Content-Security-Policy allows its own scripts alone.
void write_page(std::span<const PageStudy> studies, const std::string& made, std::ostream& out);

/// The style of such a page, for the head of another one: a Content-Security-Policy that allows it alone, and the
/// style.
[[nodiscard]] std::string page_style();

// ---- The part of the HTML report that needs no script: tables, and pictures as SVG. Scripts replace it by more.

/// Text for HTML, outside and inside quoted attributes. Bytes that are not UTF-8 are escaped as \xff.
[[nodiscard]] std::string html(std::string_view text);

/// HTML of all studies, one after the other. `without_scripts`: a sentence says that the page has no others.
[[nodiscard]] std::string static_page(std::span<const PageStudy> studies, bool without_scripts);

} // namespace ranktune::report
