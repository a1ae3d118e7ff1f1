// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the HTTP server asks its owner, and how it is started. The server is a module, libranktune-serve.so: only
// `serve` loads it, with the libraries that it needs.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ranktune::serve {

struct Request {
    std::string path;   ///< "/study/0"
    std::string host;   ///< the header Host
    std::string token;  ///< in the query
    std::string cookie; ///< the header Cookie
};

struct Reply {
    int status = 200;
    std::string type = "text/html; charset=utf-8";
    std::shared_ptr<const std::string> body; ///< null: empty
    std::string location;                    ///< of a redirection
    std::string cookie;                      ///< to be set; empty: none
    /// Instead of a body, the number of each new version of this study as a stream of events; below 0: none.
    int events = -1;
};

/// Called by many threads.
class Handler {
  public:
    virtual ~Handler() = default;
    [[nodiscard]] virtual Reply get(const Request& request) = 0;
    /// The version of a study, when it differs from `seen`, or after `patience`.
    [[nodiscard]] virtual std::uint64_t news(std::size_t study, std::uint64_t seen,
                                             std::chrono::milliseconds patience) = 0;
};

/// Listens on 127.0.0.1 until the process ends. `port` 0: any free one. `listening` is called with the port before the
/// first request. Throws base::UsageError when the module is not there (built without cpp-httplib) or the port is
/// taken.
void serve_http(Handler& handler, std::uint16_t port, const std::function<void(std::uint16_t port)>& listening);

/// The module's function: an empty text, or what went wrong.
using ServeFunction = std::string (*)(Handler& handler, std::uint16_t port,
                                      const std::function<void(std::uint16_t port)>& listening);

} // namespace ranktune::serve
