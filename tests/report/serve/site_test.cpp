// SPDX-License-Identifier: Apache-2.0
// Requests to a site, whose functions wait for as long as a test wants.

#include <future>
#include <string>

#include "report/serve/site.hpp"
#include "support/catch.hpp"

namespace ranktune::testing {

namespace {

report::Request request_for(const std::string& path) {
    report::Request request;
    request.path = "/token" + path;
    request.host = "localhost";
    return request;
}

} // namespace

TEST_CASE("one thread at a time reads a log, and no other waits for it", "[serve]") {
    std::promise<void> reads;
    std::promise<void> may_end;
    report::SiteOptions options;
    options.directories = [] { return std::vector<std::string>{"study"}; };
    options.token = "token";
    options.log = [&](const std::string&, study::TrialId) {
        reads.set_value();
        may_end.get_future().wait();
        return std::string("said");
    };
    report::Site site(storage::posix_file_system(), std::move(options));
    auto first = std::async(std::launch::async, [&] { return site.reply(request_for("/log/0/7")); });
    reads.get_future().wait();
    for (const char* path : {"/log/0/7", "/log/0/8"}) CHECK(site.reply(request_for(path)).status == 503);
    may_end.set_value();
    const report::Reply reply = first.get();
    CHECK(reply.status == 200);
    CHECK(reply.body->find("said") == 0);
}

} // namespace ranktune::testing
