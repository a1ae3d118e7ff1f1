// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/rendezvous.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <span>

#include "ranktune/base/digest.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::worker {
namespace {

constexpr std::uint64_t first_port = 20000;
constexpr std::uint64_t ports = 12000; // up to 32000; Linux assigns ephemeral ports from 32768

bool is_free(std::uint16_t port) {
    const storage::FileDescriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe) return false;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(port);
    return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool resolves(const std::string& name) {
    addrinfo* found = nullptr;
    if (getaddrinfo(name.c_str(), nullptr, nullptr, &found) != 0) return false;
    freeaddrinfo(found);
    return true;
}

void broadcast(ddp::Group& group, std::string& text, int root) {
    group.broadcast(std::as_writable_bytes(std::span(text)), root);
}

} // namespace

std::vector<std::string> gather(ddp::Group& group, const std::string& mine) {
    const auto own = static_cast<std::size_t>(group.rank());
    std::vector<std::string> all(static_cast<std::size_t>(group.size()));
    all[own] = mine;
    if (all.size() == 1) return all;
    std::vector<std::uint64_t> sizes(all.size());
    const std::uint64_t size = mine.size();
    group.all_gather(std::span(&size, 1), sizes);
    for (std::size_t r = 0; r < all.size(); ++r) {
        all[r].resize(sizes[r]);
        broadcast(group, all[r], static_cast<int>(r));
    }
    return all;
}

std::string share(ddp::Group& group, std::string mine) {
    if (group.size() == 1) return mine;
    std::uint64_t size = mine.size();
    group.broadcast(std::span(&size, 1));
    mine.resize(size);
    broadcast(group, mine, 0);
    return mine;
}

std::uint64_t port_start(const std::string& directory, const study::StartTrial& start, std::size_t rank) {
    const std::string study = directory + " " + std::to_string(start.incarnation.value());
    return base::digest_of(study) % ports + start.ranks[rank].value() * std::uint64_t{101} +
           start.trial.value() * std::uint64_t{13} + start.attempt.value();
}

std::uint16_t free_port(std::uint64_t start) {
    for (std::uint64_t turn = 0; turn < 1000; ++turn) {
        const auto port = static_cast<std::uint16_t>(first_port + (start + turn) % ports);
        if (is_free(port)) return port;
    }
    return 0;
}

std::string reachable_address(const std::string& host) {
    if (resolves(host)) return host;
    char name[256] = {};
    if (gethostname(name, sizeof name - 1) == 0 && resolves(name)) return name;
    return "127.0.0.1";
}

} // namespace ranktune::worker
