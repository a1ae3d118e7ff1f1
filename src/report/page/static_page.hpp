// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of the HTML report that needs no script: tables, and pictures as SVG. Scripts replace it by more.

#include <span>
#include <string>
#include <string_view>

#include "report/page/page_data.hpp"

namespace ranktune::report {

/// Text for HTML, outside and inside quoted attributes. Bytes that are not UTF-8 are escaped as \xff.
[[nodiscard]] std::string html(std::string_view text);

/// HTML of all studies, one after the other. `without_scripts`: a sentence says that the page has no others.
[[nodiscard]] std::string static_page(std::span<const PageStudy> studies, bool without_scripts);

} // namespace ranktune::report
