// SPDX-License-Identifier: Apache-2.0
#include "ranktune/trainables/context.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::trainables {

const study::DataFile& data_called(std::string_view name, std::span<const study::DataFile> files) {
    const auto found = std::ranges::find(files, name, &study::DataFile::name);
    if (found != files.end()) return *found;
    std::vector<std::string> names;
    for (const study::DataFile& file : files) names.push_back(file.name);
    throw base::UsageError("[data] of the study file has no file '" + std::string(name) + "'" +
                           base::suggestion(name, std::span<const std::string>(names)) + "; " +
                           (names.empty() ? "the table is empty: add " + std::string(name) + " = \"PATH\""
                                          : "it has " + base::join(names)));
}

} // namespace ranktune::trainables
