// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bell: ranks of a node end each other's naps, so that a message is read when it is there, not when the nap is over.

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <span>
#include <vector>

#include "comm/transport/transport.hpp"

namespace ranktune::comm {

/// Only a hint: if a bell is not heard, the message waits for the end of the nap. Each rank binds a datagram socket to
/// an abstract name, which disappears with its process. Without such sockets, or in containers with networks of their
/// own, nothing rings.
class Bell {
  public:
    /// `near`: by rank, the number of its process; 0: another node's, or this rank's own. Never throws.
    explicit Bell(const std::vector<std::uint64_t>& near);
    ~Bell();
    Bell(const Bell&) = delete;
    Bell& operator=(const Bell&) = delete;

    /// Readable when rung; -1: none. Whoever naps reads it.
    [[nodiscard]] int fd() const { return socket_; }
    /// Any thread; never blocks. False: nobody listens there.
    bool ring(base::Rank to) const noexcept;

  private:
    struct Name {
        sockaddr_un address{};
        socklen_t size = 0; ///< 0: nobody rings there
    };
    [[nodiscard]] static Name name_of(std::uint64_t process);

    std::vector<Name> near_; ///< by rank
    int socket_;
};

/// Rings for messages, once for those that are sent one after the other: at the next call that is no `send`.
class RingingTransport final : public Transport {
  public:
    /// Both outlive this object; `wire` may only be used through it.
    RingingTransport(Transport& wire, const Bell& bell) : wire_(wire), bell_(bell), partners_(wire.size()) {}
    ~RingingTransport() override { ring(); }
    RingingTransport(const RingingTransport&) = delete;
    RingingTransport& operator=(const RingingTransport&) = delete;

    [[nodiscard]] base::Rank rank() const override { return wire_.rank(); }
    [[nodiscard]] std::uint32_t size() const override { return wire_.size(); }
    void send(base::Rank to, std::span<const std::byte> bytes) override;
    [[nodiscard]] std::optional<Packet> poll() override;
    [[nodiscard]] bool flushed() override;
    [[nodiscard]] int bell() const override { return bell_.fd(); }
    [[nodiscard]] bool is_quiet() override;

  private:
    /// A rank with which messages were exchanged rings if it can be rung for: both are on one node, and listen.
    enum class Partner : std::uint8_t { unknown, deaf, rings };
    void ring();
    void note(base::Rank rank, Partner partner);

    Transport& wire_;
    const Bell& bell_;
    std::vector<Partner> partners_; ///< by rank
    std::uint32_t deaf_ = 0;        ///< of `partners_`
    std::vector<base::Rank> sent_;  ///< ranks to ring for
};

} // namespace ranktune::comm
