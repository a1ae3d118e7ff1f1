// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "report/serve/http.hpp"

namespace ranktune::fuzz {

int request(const std::uint8_t* data, std::size_t size) {
    const std::string_view text = text_of(data, size);
    const report::ReadHead read = report::read_head(text);
    if (read.refusal) {
        const int why = read.refusal->status;
        require(why == 400 || why == 405 || why == 411 || why == 413, "a refusal says why");
        return 0;
    }
    require(read.request.path.starts_with('/'), "a path begins at the root");
    require(read.request.path.find('?') == std::string::npos, "a path has no query");
    require(text.find(read.request.host) != std::string_view::npos, "the host is that of the request");
    return 0;
}

} // namespace ranktune::fuzz
