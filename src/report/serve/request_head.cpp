// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "ranktune/base/text.hpp"
#include "report/serve/http.hpp"

namespace ranktune::report {
namespace {

/// The next line, without its end, which is taken off `rest`.
std::string_view next_line(std::string_view& rest) {
    const auto end = std::min(rest.find("\r\n"), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 2, rest.size()));
    return line;
}

/// `name` is in lower case.
bool is_header(std::string_view line, std::string_view name) {
    if (line.size() <= name.size() || line[name.size()] != ':') return false;
    return std::ranges::equal(line.substr(0, name.size()), name, [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
}

ReadHead refusal(int status, const std::string& words) { return {{}, 0, text_reply(status, words)}; }

/// What a head says beside its first line.
struct Headers {
    std::string content_length;
    std::string transfer_encoding;
    std::string_view twice; ///< the name of a header that must come once; empty: none
};

Headers read_headers(std::string_view lines, Request& request) {
    Headers headers;
    struct {
        std::string_view name;
        std::string* value;
        bool seen = false;
    } known[] = {{"host", &request.host},
                 {"origin", &request.origin},
                 {"sec-fetch-site", &request.fetch_site},
                 {"content-type", &request.content_type},
                 {"x-ranktune-steer", &request.steer},
                 {"content-length", &headers.content_length},
                 {"transfer-encoding", &headers.transfer_encoding}};
    while (!lines.empty()) {
        const std::string_view line = next_line(lines);
        for (auto& header : known) {
            if (!is_header(line, header.name)) continue;
            if (std::exchange(header.seen, true)) headers.twice = header.name;
            *header.value = base::trimmed(line.substr(header.name.size() + 1));
        }
    }
    return headers;
}

/// A body has a length: what comes in chunks has no end that could be refused before it comes.
ReadHead with_body(ReadHead read, const Headers& headers) {
    const std::string& length = headers.content_length;
    if (!headers.transfer_encoding.empty() || length.empty())
        return refusal(411, "a request that changes something has the header Content-Length, and no chunks");
    const char* const end = length.data() + length.size();
    const auto [rest, error] = std::from_chars(length.data(), end, read.body_bytes);
    if (rest != end || error == std::errc::invalid_argument) return refusal(400, "Content-Length is no number");
    if (error != std::errc{} || read.body_bytes > most_body_bytes)
        return refusal(413, "the body of a request has at most 64 KiB");
    return read;
}

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
    const std::string_view method = first.substr(0, space);
    if (method != "GET" && method != "POST") return refusal(405, "pages are read with GET, and steer with POST");
    ReadHead read;
    read.request.post = method == "POST";
    const std::string_view target = first.substr(space + 1, last - space - 1);
    read.request.path = target.substr(0, target.find('?'));
    if (!read.request.path.starts_with('/')) return refusal(400, "the path of a page begins with /");
    const Headers headers = read_headers(head, read.request);
    if (!headers.twice.empty()) return refusal(400, "a request has one header " + std::string(headers.twice));
    return read.request.post ? with_body(std::move(read), headers) : read;
}

} // namespace ranktune::report
