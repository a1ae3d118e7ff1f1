// SPDX-License-Identifier: Apache-2.0
#include "comm/layout/neighbours.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "process/start_watch.hpp"

namespace ranktune::comm {

std::vector<base::Rank> ring_of(const Layout& layout, base::Rank self) {
    const std::size_t ranks = layout.processes.size();
    std::vector<base::Rank> ring;
    for (std::size_t step = 1; step < ranks; ++step) {
        const std::size_t other = (self.value() + step) % ranks;
        const auto& mine = layout.processes[self.value()];
        const auto& its = layout.processes[other];
        if (layout.nodes[other] == layout.nodes[self.value()] && its.space == mine.space && its.pid != 0)
            ring.emplace_back(static_cast<std::uint32_t>(other));
    }
    return ring;
}

std::vector<process::ProcessId> processes_of(const Layout& layout, const std::vector<base::Rank>& ranks) {
    std::vector<process::ProcessId> processes;
    for (const base::Rank rank : ranks) processes.push_back(layout.processes[rank.value()]);
    return processes;
}

std::vector<std::uint64_t> processes_near(const Layout& layout, base::Rank self) {
    std::vector<std::uint64_t> near(layout.processes.size());
    for (const base::Rank rank : ring_of(layout, self)) near[rank.value()] = layout.processes[rank.value()].pid;
    return near;
}

Neighbours::Neighbours(const Layout& layout, base::Rank self)
    : ranks_(ring_of(layout, self)),
      processes_(processes_of(layout, ranks_)),
      watch_(processes_, [this](std::size_t position) {
          const std::lock_guard lock(mutex_);
          if (starting_)
              process::give_up_start("ranktune: rank " + std::to_string(ranks_[position].value()) +
                                     " of this node has ended before the study began; this one ends too (exit 75). "
                                     "The same command goes on with the study\n");
          ended_.push_back(ranks_[position]);
          if (waker_ != nullptr) waker_->wake();
      }) {}

void Neighbours::turn_to(process::Waker* waker) {
    const std::lock_guard lock(mutex_);
    starting_ = false;
    waker_ = waker;
}

std::optional<base::Rank> Neighbours::ended() {
    const std::lock_guard lock(mutex_);
    if (ended_.empty()) return std::nullopt;
    const base::Rank rank = ended_.front();
    ended_.pop_front();
    return rank;
}

const process::ProcessId* Neighbours::process_of(base::Rank rank) const {
    const auto found = std::ranges::find(ranks_, rank);
    return found == ranks_.end() ? nullptr : &processes_[static_cast<std::size_t>(found - ranks_.begin())];
}

bool Neighbours::signal(base::Rank rank, int signal) const {
    const process::ProcessId* process = process_of(rank);
    return process != nullptr && process::send_signal(*process, signal);
}

process::Killing Neighbours::kill_silent(base::Rank rank, bool at_once) const {
    const process::ProcessId* process = process_of(rank);
    return process == nullptr ? process::Killing::nobody : process::kill_silent(*process, at_once);
}

} // namespace ranktune::comm
