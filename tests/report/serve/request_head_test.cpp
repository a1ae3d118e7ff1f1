// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "report/serve/http.hpp"
#include "support/catch.hpp"

namespace request_head_test {

using namespace ranktune::report;

namespace {

int refused_with(const std::string& head) {
    const ReadHead read = read_head(head);
    return read.refusal ? read.refusal->status : 0;
}

int post_refused_with(const std::string& headers) { return refused_with("POST /x HTTP/1.1\r\nHost: a\r\n" + headers); }

} // namespace

TEST_CASE("a head of POST has what its request is judged by", "[serve]") {
    const ReadHead read = read_head(
        "POST /token/steer/0?x=1 HTTP/1.1\r\nHOST: a:1\r\norigin:http://a:1 \r\nSec-Fetch-Site: same-origin\r\n"
        "Content-Type:\tapplication/json\r\nX-RANKTUNE-STEER: s\r\nX-Ranktune-Steer-More: t\r\nContent-Length: 65536");
    REQUIRE(!read.refusal);
    CHECK(read.request.post);
    CHECK(read.request.path == "/token/steer/0");
    CHECK(read.request.host == "a:1");
    CHECK(read.request.origin == "http://a:1");
    CHECK(read.request.fetch_site == "same-origin");
    CHECK(read.request.content_type == "application/json");
    CHECK(read.request.steer == "s");
    CHECK(read.body_bytes == most_body_bytes);
}

TEST_CASE("a body has one length, and no more than 64 KiB", "[serve]") {
    CHECK(post_refused_with("Content-Length: 0") == 0);
    CHECK(post_refused_with("") == 411);
    CHECK(post_refused_with("Content-Length:") == 411);
    CHECK(post_refused_with("Transfer-Encoding: chunked") == 411);
    CHECK(post_refused_with("Content-Length: 5\r\nTransfer-Encoding: chunked") == 411);
    CHECK(post_refused_with("Content-Length: 65537") == 413);
    CHECK(post_refused_with("Content-Length: 99999999999999999999999999") == 413);
    for (const char* length : {"-1", "+1", "0x5", "5 5", "5,5", "1e3", "five"})
        CHECK(post_refused_with(std::string("Content-Length: ") + length) == 400);
    CHECK(post_refused_with("Content-Length: 5\r\ncontent-length: 5") == 400);
}

TEST_CASE("a header that a request is judged by comes once", "[serve]") {
    for (const std::string name : {"Host", "Origin", "Sec-Fetch-Site", "Content-Type", "X-Ranktune-Steer",
                                   "Content-Length", "Transfer-Encoding"})
        CHECK(refused_with("GET / HTTP/1.1\r\n" + name + ": a\r\n" + name + ": a") == 400);
    CHECK(refused_with("GET / HTTP/1.1\r\nAccept: a\r\nAccept: b\r\nno header") == 0);
}

TEST_CASE("only GET and POST are methods", "[serve]") {
    for (const char* method : {"HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", "get", "POSTS"})
        CHECK(refused_with(std::string(method) + " / HTTP/1.1\r\nContent-Length: 0") == 405);
}

} // namespace request_head_test
