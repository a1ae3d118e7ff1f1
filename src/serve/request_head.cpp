// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "ranktune/base/text.hpp"
#include "serve/http.hpp"

namespace ranktune::serve {
namespace {

/// The next line, without its end, which is taken off `rest`.
std::string_view next_line(std::string_view& rest) {
    const auto end = std::min(rest.find("\r\n"), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    return line;
}

bool is_host(std::string_view name) {
    return std::ranges::equal(name, std::string_view("host"),
                              [](char a, char b) { return a == b || a == b - 'a' + 'A'; });
}

ReadHead refusal(int status, const std::string& words) { return {{}, text_reply(status, words)}; }

} // namespace

Reply text_reply(int status, const std::string& words) {
    Reply reply;
    reply.status = status;
    reply.type = "text/plain; charset=utf-8";
    reply.body = std::make_shared<const std::string>(words + "\n");
    return reply;
}

ReadHead read_head(std::string_view head) {
    const std::string_view first = next_line(head);
    const auto space = first.find(' ');
    const auto last = first.rfind(' ');
    if (space == std::string_view::npos || last == space || !first.substr(last + 1).starts_with("HTTP/1."))
        return refusal(400, "this is no request of HTTP/1");
    if (first.substr(0, space) != "GET") return refusal(405, "pages are only read: GET");
    ReadHead read;
    const std::string_view target = first.substr(space + 1, last - space - 1);
    read.request.path = target.substr(0, target.find('?'));
    if (!read.request.path.starts_with('/')) return refusal(400, "the path of a page begins with /");
    bool has_host = false;
    while (!head.empty()) {
        const std::string_view line = next_line(head);
        const auto colon = line.find(':');
        if (colon == std::string_view::npos || !is_host(line.substr(0, colon))) continue;
        if (std::exchange(has_host, true)) return refusal(400, "a request has one header Host");
        read.request.host = base::trimmed(line.substr(colon + 1));
    }
    return read;
}

} // namespace ranktune::serve
