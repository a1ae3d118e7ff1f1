// SPDX-License-Identifier: Apache-2.0
// The HTTP server, on cpp-httplib. All that is linked to that library.
#include <httplib.h>

#include <array>
#include <atomic>
#include <string>

#include "serve/http.hpp"

namespace ranktune::serve {
namespace {

using namespace std::chrono_literals;

/// A reader of events holds a thread. The others are for pages and data.
constexpr int http_threads = 64;
constexpr int most_event_readers = 56;
/// A comment now and then tells a connection that is gone from a quiet study: the second write after its end fails, and
/// the place of the reader is free.
constexpr auto sign_of_life = 2s;

void send_events(Handler& handler, std::size_t study, httplib::Response& response, std::atomic<int>& readers) {
    if (++readers > most_event_readers) {
        --readers;
        response.status = 503; // the page asks again later
        response.set_content("too many readers follow this study\n", "text/plain");
        return;
    }
    response.set_header("Cache-Control", "no-store");
    response.set_chunked_content_provider(
        "text/event-stream",
        [&handler, study, seen = std::uint64_t{0}](std::size_t, httplib::DataSink& sink) mutable {
            const std::uint64_t now = handler.news(study, seen, sign_of_life);
            const std::string text = now == seen ? std::string(":\n\n") : "data: " + std::to_string(now) + "\n\n";
            seen = now;
            return sink.write(text.data(), text.size());
        },
        [&readers](bool) { --readers; });
}

} // namespace
} // namespace ranktune::serve

extern "C" std::string ranktune_serve_http(ranktune::serve::Handler& handler, std::uint16_t port,
                                           const std::function<void(std::uint16_t port)>& listening) {
    using namespace ranktune::serve;
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(http_threads); };
    server.set_keep_alive_timeout(2);
    std::atomic<int> readers{0};
    server.Get(".*", [&](const httplib::Request& request, httplib::Response& response) {
        const Reply reply = handler.get({request.path, request.get_header_value("Host"),
                                         request.get_param_value("token"), request.get_header_value("Cookie")});
        response.status = reply.status;
        response.set_header("X-Content-Type-Options", "nosniff");
        response.set_header("Referrer-Policy", "no-referrer");
        response.set_header("X-Frame-Options", "DENY");
        if (!reply.cookie.empty()) response.set_header("Set-Cookie", reply.cookie);
        if (!reply.location.empty()) response.set_header("Location", reply.location);
        if (reply.events >= 0) return send_events(handler, static_cast<std::size_t>(reply.events), response, readers);
        response.set_header("Cache-Control", "no-store");
        if (reply.body) response.set_content(*reply.body, reply.type);
    });
    const int bound = port == 0                                ? server.bind_to_any_port("127.0.0.1")
                      : server.bind_to_port("127.0.0.1", port) ? port
                                                               : -1;
    if (bound < 0) return "port " + std::to_string(port) + " of 127.0.0.1 is taken: give another with --port, or none";
    listening(static_cast<std::uint16_t>(bound));
    return server.listen_after_bind() ? "" : "the connection to the network was lost";
}
