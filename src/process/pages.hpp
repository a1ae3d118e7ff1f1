// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the pages of the documentation that messages name.

#include <filesystem>
#include <string>

namespace ranktune::process {

/// The path of a page, such as "guides/programs.md", beside a file of an installation (`share/doc/ranktune/docs` of its
/// prefix) or of a clone (`docs`). Where neither has the page: "docs/guides/programs.md of ranktune's sources".
[[nodiscard]] std::string documentation_page(const std::string& page, const std::filesystem::path& beside);

/// Beside the library that this code is part of.
[[nodiscard]] std::string documentation_page(const std::string& page);

} // namespace ranktune::process
