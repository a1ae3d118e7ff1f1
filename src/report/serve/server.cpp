// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "report/serve/http.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::report {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t most_connections = 512; // or as many as descriptors allow
constexpr std::size_t spare_descriptors = 64; // for the files of studies
constexpr std::size_t most_event_readers = 128;
constexpr std::size_t most_accepted = 64; // in one round
constexpr std::size_t most_head_bytes = std::size_t{16} << 10U;
constexpr std::size_t handler_threads = 8; // a study of a slow file system holds one
constexpr auto head_patience = 10s;        // for a whole head, and for a whole body
constexpr auto reply_patience = 60s;       // for a part of the reply to be taken
constexpr auto end_patience = 2s;          // for the end of the connection after the reply
constexpr auto news_period = 200ms;        // between two looks for a new version

[[noreturn]] void throw_errno(const char* what) {
    throw base::Error(std::string("serve: ") + what + ": " + std::generic_category().message(errno));
}

std::string_view reason(int status) {
    static constexpr std::pair<int, std::string_view> reasons[] = {{200, "OK"},
                                                                   {204, "No Content"},
                                                                   {303, "See Other"},
                                                                   {400, "Bad Request"},
                                                                   {403, "Forbidden"},
                                                                   {404, "Not Found"},
                                                                   {405, "Method Not Allowed"},
                                                                   {409, "Conflict"},
                                                                   {411, "Length Required"},
                                                                   {413, "Content Too Large"},
                                                                   {431, "Request Header Fields Too Large"},
                                                                   {503, "Service Unavailable"}};
    const auto* const found = std::ranges::find(reasons, status, &std::pair<int, std::string_view>::first);
    return found == std::end(reasons) ? "Internal Server Error" : found->second;
}

std::string head_of(const Reply& reply) {
    std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " " + std::string(reason(reply.status)) + "\r\n";
    const auto add = [&](const char* name, const std::string& value) { head += name + (": " + value) + "\r\n"; };
    if (reply.events) {
        add("Content-Type", "text/event-stream");
    } else {
        if (reply.body) add("Content-Type", reply.type);
        add("Content-Length", std::to_string(reply.body ? reply.body->size() : 0));
    }
    if (!reply.location.empty()) add("Location", reply.location);
    if (reply.status == 405) add("Allow", "GET, POST");
    add("Cache-Control", "no-store");
    add("Connection", "close");
    add("Referrer-Policy", "no-referrer"); // the address is the secret
    add("X-Content-Type-Options", "nosniff");
    add("X-Frame-Options", "DENY");
    return head + "\r\n";
}

/// Threads for calls that may wait for a file system. What a call returns is called by the loop, which event() wakes.
class Workers {
  public:
    using Then = std::function<void()>;
    using Work = std::function<Then()>;

    Workers() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
        if (!event_) throw_errno("cannot begin");
        for (std::size_t i = 0; i < handler_threads; ++i) threads_.emplace_back([this] { work(); });
    }
    ~Workers() {
        {
            const std::lock_guard lock(mutex_);
            quit_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    void add(Work work) {
        {
            const std::lock_guard lock(mutex_);
            works_.push_back(std::move(work));
        }
        changed_.notify_one();
    }
    [[nodiscard]] int event() const { return event_.get(); }
    [[nodiscard]] std::vector<Then> take_done() {
        std::uint64_t count = 0;
        static_cast<void>(!::read(event_.get(), &count, sizeof count));
        const std::lock_guard lock(mutex_);
        return std::exchange(done_, {});
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return quit_ || !works_.empty(); });
            if (quit_) return;
            const Work next = std::move(works_.front());
            works_.pop_front();
            lock.unlock();
            Then then = next();
            lock.lock();
            done_.push_back(std::move(then));
            const std::uint64_t one = 1;
            static_cast<void>(!::write(event_.get(), &one, sizeof one));
        }
    }

    storage::FileDescriptor event_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> works_;
    std::vector<Then> done_;
    bool quit_ = false;
    std::vector<std::thread> threads_;
};

struct Connection {
    /// What is waited for: the head, the body, the handler, the peer that takes the reply, new versions, the peer's
    /// end.
    enum class Awaits { head, body, handler, taking, versions, end };

    explicit Connection(storage::FileDescriptor its) : socket(std::move(its)) {}

    storage::FileDescriptor socket;
    Awaits awaits = Awaits::head;
    Clock::time_point until = Clock::now() + head_patience;
    std::string received;
    ReadHead head;                           ///< once it is whole
    std::string text;                        ///< to be sent, before the body
    std::shared_ptr<const std::string> body; ///< null: none
    std::size_t sent = 0;                    ///< of both
    std::size_t study = 0;                   ///< whose versions
    std::uint64_t told = 0;                  ///< the last one

    [[nodiscard]] std::size_t unsent() const { return text.size() + (body ? body->size() : 0) - sent; }
    [[nodiscard]] short events() const {
        if (awaits == Awaits::handler) return 0;
        if (awaits == Awaits::taking) return POLLOUT;
        return static_cast<short>(POLLIN | (unsent() > 0 ? POLLOUT : 0));
    }
    /// Nothing is lost when it is closed: it has not asked yet, or has its reply.
    [[nodiscard]] bool can_make_room() const {
        return awaits == Awaits::head || awaits == Awaits::body || awaits == Awaits::end;
    }
};

class Server {
  public:
    Server(Handler& handler, int listener) : handler_(handler), listener_(listener) {
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most_connections + spare_descriptors)
            most_ = std::max<std::size_t>(limit.rlim_cur, 2 * spare_descriptors) - spare_descriptors;
    }

    void round() {
        look_for_versions();
        poll_all();
        const auto now = Clock::now();
        if (polled_[0].revents != 0)
            for (const Workers::Then& then : workers_.take_done()) then();
        for (std::size_t i = 2; i < polled_.size(); ++i) {
            const auto found = connections_.find(ids_[i - 2]);
            if (found == connections_.end()) continue; // it has made room
            if (polled_[i].revents != 0 && !go_on(found->first, found->second, polled_[i].revents)) {
                connections_.erase(found);
            } else if (found->second.until <= now) {
                connections_.erase(found);
            }
        }
        if (polled_[1].revents != 0) accept_some();
    }

  private:
    using Id = std::uint64_t; // in the order of arrival

    void poll_all() {
        polled_ = {{workers_.event(), POLLIN, 0}, {listener_, POLLIN, 0}};
        ids_.clear();
        Clock::time_point until = has_readers() ? next_look_ : Clock::time_point::max();
        for (const auto& [id, connection] : connections_) {
            const bool silent = connection.awaits == Connection::Awaits::handler; // poll would report its end for ever
            polled_.push_back({silent ? -1 : connection.socket.get(), connection.events(), 0});
            ids_.push_back(id);
            until = std::min(until, connection.until);
        }
        int milliseconds = -1;
        if (until != Clock::time_point::max()) {
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
            milliseconds = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
        }
        if (::poll(polled_.data(), polled_.size(), milliseconds) < 0) {
            if (errno != EINTR) throw_errno("cannot wait for requests");
            for (pollfd& each : polled_) each.revents = 0;
        }
    }

    // ---- connections

    void accept_some() {
        for (std::size_t i = 0; i < most_accepted; ++i) {
            storage::FileDescriptor socket(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            const bool exhausted = !socket && (errno == EMFILE || errno == ENFILE);
            if (!socket && !exhausted) return;
            const bool full = exhausted || connections_.size() >= most_;
            if (full && !make_room() && exhausted) return std::this_thread::sleep_for(news_period);
            if (socket && connections_.size() < most_) connections_.emplace(next_id_++, std::move(socket));
        }
    }

    /// Closes the connection that has waited longest.
    bool make_room() {
        const auto found =
            std::ranges::find_if(connections_, [](const auto& entry) { return entry.second.can_make_room(); });
        if (found == connections_.end()) return false;
        connections_.erase(found);
        return true;
    }

    /// False: the connection is over.
    bool go_on(Id id, Connection& connection, short happened) {
        if ((happened & POLLOUT) != 0) return send_some(connection);
        std::array<char, 4096> bytes;
        const ssize_t size = ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
        if (size < 0) return errno == EAGAIN || errno == EINTR;
        if (size == 0) return false;
        const std::string_view received(bytes.data(), static_cast<std::size_t>(size));
        if (connection.awaits == Connection::Awaits::head)
            take_head(id, connection, received);
        else if (connection.awaits == Connection::Awaits::body)
            take_body(id, connection, received);
        return true;
    }

    void take_head(Id id, Connection& connection, std::string_view bytes) {
        constexpr std::string_view empty_line = "\r\n\r\n";
        std::string& head = connection.received;
        const std::size_t seen = head.size();
        head += bytes;
        const auto end = head.find(empty_line, seen < empty_line.size() ? 0 : seen - empty_line.size() + 1);
        if (std::min(end, head.size()) > most_head_bytes)
            return answer(connection, text_reply(431, "the head of a request has at most 16 KiB"));
        if (end == std::string::npos) return;
        connection.head = read_head(std::string_view(head).substr(0, end));
        if (connection.head.refusal) return answer(connection, *connection.head.refusal);
        head.erase(0, end + empty_line.size());
        connection.awaits = Connection::Awaits::body;
        connection.until = Clock::now() + head_patience;
        take_body(id, connection, {});
    }

    void take_body(Id id, Connection& connection, std::string_view bytes) {
        connection.received += bytes;
        if (connection.received.size() < connection.head.body_bytes) return;
        connection.received.resize(connection.head.body_bytes);
        connection.head.request.body = std::move(connection.received);
        connection.awaits = Connection::Awaits::handler;
        connection.until = Clock::time_point::max();
        workers_.add([this, id, request = std::move(connection.head.request)]() -> Workers::Then {
            Reply reply;
            try {
                reply = handler_.reply(request);
            } catch (const std::exception& error) {
                reply = text_reply(500, error.what());
            }
            return [this, id, reply = std::move(reply)] { answer(connections_.at(id), reply); };
        });
    }

    /// A connection that a handler works for is never closed before.
    void answer(Connection& connection, Reply reply) {
        if (reply.events && readers_of(std::nullopt) >= most_event_readers)
            reply = text_reply(503, "too many readers follow this study"); // the page asks again later
        connection.received = {};
        connection.text = head_of(reply);
        connection.body = reply.body;
        connection.awaits = Connection::Awaits::taking;
        connection.until = Clock::now() + reply_patience;
        if (!reply.events) return;
        connection.awaits = Connection::Awaits::versions;
        connection.until = Clock::time_point::max();
        connection.study = *reply.events;
        next_look_ = Clock::now();
    }

    bool send_some(Connection& connection) {
        while (connection.unsent() > 0) {
            const bool in_text = connection.sent < connection.text.size();
            const std::string_view part =
                in_text ? std::string_view(connection.text).substr(connection.sent)
                        : std::string_view(*connection.body).substr(connection.sent - connection.text.size());
            const ssize_t size = ::send(connection.socket.get(), part.data(), part.size(), MSG_NOSIGNAL);
            if (size < 0) return errno == EAGAIN || errno == EINTR;
            connection.sent += static_cast<std::size_t>(size);
            if (connection.awaits == Connection::Awaits::taking) connection.until = Clock::now() + reply_patience;
        }
        if (connection.awaits == Connection::Awaits::versions) return true;
        // A close while the peer still sends would take the reply from it.
        connection.body.reset();
        connection.text.clear();
        connection.sent = 0;
        connection.awaits = Connection::Awaits::end;
        connection.until = Clock::now() + end_patience;
        return ::shutdown(connection.socket.get(), SHUT_WR) == 0;
    }

    // ---- versions

    [[nodiscard]] std::size_t readers_of(std::optional<std::size_t> study) const {
        return static_cast<std::size_t>(std::ranges::count_if(connections_, [&](const auto& entry) {
            return entry.second.awaits == Connection::Awaits::versions && (!study || entry.second.study == *study);
        }));
    }
    [[nodiscard]] bool has_readers() const { return readers_of(std::nullopt) > 0; }

    /// Asks for the version of each study that has readers, unless it has been asked for.
    void look_for_versions() {
        const auto now = Clock::now();
        if (now < next_look_) return;
        next_look_ = now + news_period;
        for (const auto& [id, connection] : connections_) {
            if (connection.awaits != Connection::Awaits::versions || !asked_.insert(connection.study).second) continue;
            workers_.add([this, study = connection.study]() -> Workers::Then {
                const std::uint64_t version = handler_.version(study);
                return [this, study, version] { tell(study, version); };
            });
        }
    }

    void tell(std::size_t study, std::uint64_t version) {
        asked_.erase(study);
        for (auto& [id, connection] : connections_) {
            if (connection.awaits != Connection::Awaits::versions || connection.study != study) continue;
            // A reader that does not keep up is told the newest version later.
            if (version == 0 || version == connection.told || connection.unsent() > 0) continue;
            connection.told = version;
            connection.text = "data: " + std::to_string(version) + "\n\n";
            connection.sent = 0;
        }
    }

    Handler& handler_;
    int listener_;
    std::size_t most_ = most_connections;
    std::map<Id, Connection> connections_;
    Id next_id_ = 0;
    Clock::time_point next_look_{};
    std::set<std::size_t> asked_; ///< studies whose version a thread looks up
    std::vector<pollfd> polled_;
    std::vector<Id> ids_;
    Workers workers_; ///< last: its threads use the others
};

/// Listens on 127.0.0.1, and sets the port.
storage::FileDescriptor listen_at(std::uint16_t& port) {
    storage::FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener) throw_errno("there are no sockets");
    const int yes = 1; // the connections of an earlier server may still be closing
    static_cast<void>(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), SOMAXCONN) != 0)
        throw base::UsageError("serve: port " + std::to_string(port) + " of 127.0.0.1 cannot be used (" +
                               std::generic_category().message(errno) + "): give another with --port, or none");
    if (::getsockname(listener.get(), any, &size) != 0) throw_errno("the port is not known");
    port = ntohs(address.sin_port);
    return listener;
}

} // namespace

void serve_http(Handler& handler, std::uint16_t port, const std::function<void(std::uint16_t port)>& listening) {
    const storage::FileDescriptor listener = listen_at(port);
    Server server(handler, listener.get());
    listening(port);
    for (;;) server.round();
}

} // namespace ranktune::report
