// SPDX-License-Identifier: Apache-2.0
#include "comm/wire/keep_alive.hpp"

#include <utility>

namespace ranktune::comm {

KeepAlive::KeepAlive(comm::Transport& transport, study::Bytes sign, std::vector<base::Rank> peers,
                     std::chrono::milliseconds interval)
    : transport_(transport),
      sign_(std::move(sign)),
      interval_(interval),
      here_(Clock::now()),
      peers_(std::move(peers)),
      thread_(
          [this] {
              speak();
              return Clock::now() + interval_;
          },
          Clock::now() + interval) {}

std::chrono::milliseconds KeepAlive::loop_is_here() {
    const auto now = Clock::now();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - here_.exchange(now));
}

void KeepAlive::set_peers(std::vector<base::Rank> peers) {
    const std::lock_guard lock(mutex_);
    peers_ = std::move(peers);
}

void KeepAlive::speak() {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - here_.load() < interval_) return;
    for (const base::Rank peer : peers_) transport_.send(peer, sign_);
}

std::vector<base::Rank> worker_ranks(std::uint32_t ranks) {
    std::vector<base::Rank> workers;
    for (std::uint32_t rank = 1; rank < ranks; ++rank) workers.emplace_back(rank);
    return workers;
}

} // namespace ranktune::comm
