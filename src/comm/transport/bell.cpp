// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/bell.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <string>

namespace ranktune::comm {

/// Of a process of this node and user. Abstract: the first byte is zero.
Bell::Name Bell::name_of(std::uint64_t process) {
    const std::string text = "ranktune-bell-" + std::to_string(::getuid()) + "-" + std::to_string(process);
    Name name;
    name.address.sun_family = AF_UNIX;
    const auto place = std::next(std::begin(name.address.sun_path));
    std::ranges::copy(text, place);
    name.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return name;
}

Bell::Bell(const std::vector<std::uint64_t>& near)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    for (const std::uint64_t process : near) near_.push_back(process == 0 ? Name{} : name_of(process));
    const Name own = name_of(static_cast<std::uint64_t>(::getpid()));
    if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&own.address), own.size) == 0) return;
    ::close(socket_);
    socket_ = -1;
}

Bell::~Bell() {
    if (socket_ >= 0) ::close(socket_);
}

bool Bell::ring(base::Rank to) const noexcept {
    if (to.value() >= near_.size() || near_[to.value()].size == 0 || socket_ < 0) return false;
    const Name& name = near_[to.value()];
    const char any = 0;
    const auto rung = ::sendto(socket_, &any, 1, MSG_DONTWAIT | MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&name.address), name.size);
    return rung >= 0 || errno == EAGAIN; // it has been rung often enough
}

void RingingTransport::send(base::Rank to, std::span<const std::byte> bytes) {
    wire_.send(to, bytes);
    if (std::ranges::find(sent_, to) == sent_.end()) sent_.push_back(to);
}

std::optional<Packet> RingingTransport::poll() {
    ring();
    auto packet = wire_.poll();
    if (packet && partners_.at(packet->from.value()) == Partner::unknown) note(packet->from, Partner::deaf);
    return packet;
}

bool RingingTransport::flushed() {
    ring();
    return wire_.flushed();
}

bool RingingTransport::is_quiet() {
    ring();
    return bell_.fd() >= 0 && deaf_ == 0 && wire_.is_quiet();
}

void RingingTransport::ring() {
    for (const base::Rank rank : sent_) note(rank, bell_.ring(rank) ? Partner::rings : Partner::deaf);
    sent_.clear();
}

void RingingTransport::note(base::Rank rank, Partner partner) {
    Partner& known = partners_.at(rank.value());
    deaf_ += static_cast<std::uint32_t>(partner == Partner::deaf) - static_cast<std::uint32_t>(known == Partner::deaf);
    known = partner;
}

} // namespace ranktune::comm
