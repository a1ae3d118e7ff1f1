// SPDX-License-Identifier: Apache-2.0
#pragma once
// An HTTP server for pages on this machine: one thread has all connections, a few others call the handler.
//
// It knows GET and POST, and closes a connection after its reply. Only a whole request gets a thread, so connections
// that are open and say little cost a descriptor each: where there are too many, the one that has waited longest makes
// room.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ranktune::report {

inline constexpr std::size_t most_body_bytes = std::size_t{64} << 10U;

struct Request {
    bool post = false;        ///< else GET
    std::string path;         ///< "/study/0", without the query
    std::string host;         ///< the header Host
    std::string origin;       ///< Origin: which page asks, as the browser says; empty: not sent, as for the next three
    std::string fetch_site;   ///< Sec-Fetch-Site: that page beside this server
    std::string content_type; ///< Content-Type
    std::string steer;        ///< X-Ranktune-Steer
    std::string body;         ///< of POST
};

struct Reply {
    int status = 200;
    std::string type = "text/html; charset=utf-8";
    std::shared_ptr<const std::string> body; ///< null: empty
    std::string location;                    ///< of a redirection
    /// Instead of a body, the number of each new version of this study as a stream of events.
    std::optional<std::size_t> events;
};

/// A reply of one line of text.
[[nodiscard]] Reply text_reply(int status, const std::string& words);

/// Called by several threads.
class Handler {
  public:
    virtual ~Handler() = default;
    [[nodiscard]] virtual Reply reply(const Request& request) = 0;
    /// The version of a study, above 0; 0: not known now.
    [[nodiscard]] virtual std::uint64_t version(std::size_t study) = 0;
};

/// Listens on 127.0.0.1 until the process ends. `port` 0: any free one. `listening` is called with the port before the
/// first request. Throws base::UsageError when the port is taken.
[[noreturn]] void serve_http(Handler& handler, std::uint16_t port,
                             const std::function<void(std::uint16_t port)>& listening);

/// The request of a whole head, without its body; a refusal where it is none that a browser sends to a server of pages.
struct ReadHead {
    Request request;
    std::size_t body_bytes = 0; ///< that follow the head
    std::optional<Reply> refusal;
};
[[nodiscard]] ReadHead read_head(std::string_view head);

} // namespace ranktune::report
