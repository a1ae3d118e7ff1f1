// SPDX-License-Identifier: Apache-2.0
#include "process/pages.hpp"

#include <dlfcn.h>

#include <system_error>

namespace ranktune::process {

namespace fs = std::filesystem;

std::string documentation_page(const std::string& page, const fs::path& beside) {
    std::error_code error;
    const fs::path file = fs::canonical(beside, error);
    for (fs::path folder = file.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
        for (const char* docs : {"share/doc/ranktune/docs", "docs"}) {
            const fs::path found = folder / docs / page;
            if (fs::is_regular_file(found, error)) return fs::canonical(found).string();
        }
    }
    return "docs/" + page + " of ranktune's sources";
}

std::string documentation_page(const std::string& page) {
    // Any object of this library, or of the program if it is linked statically.
    static const char here = 0;
    Dl_info info{};
    const bool found = dladdr(&here, &info) != 0 && info.dli_fname != nullptr;
    return documentation_page(page, found ? info.dli_fname : "");
}

} // namespace ranktune::process
