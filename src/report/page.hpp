// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTML report: one file that loads nothing.

#include <iosfwd>
#include <span>
#include <string>

#include "report/page_data.hpp"

namespace ranktune::report {

/// Writes the page of one study, or of several side by side (at least one). `made`: now, RFC 3339. What users named
/// and programs printed is text in it, never markup; a Content-Security-Policy allows its own scripts alone.
void write_page(std::span<const PageStudy> studies, const std::string& made, std::ostream& out);

/// The style of such a page, for the head of another one: a Content-Security-Policy that allows it alone, and the
/// style.
[[nodiscard]] std::string page_style();

} // namespace ranktune::report
