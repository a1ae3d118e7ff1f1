// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that are threads with a device each.

#include <atomic>
#include <functional>
#include <vector>

#include "ddp/collective/protocol_collective.hpp"
#include "ddp/collective/thread_collective.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "device_case.hpp"

namespace ranktune::testing {

struct Member {
    int rank;
    ddp::Collective& group;
    device::Accelerator& on;
    ddp::DeviceGroups& groups;
};

/// Ranks that are threads, for one trial after the other; each has a cache of its own, as a process has.
class Ranks {
  public:
    explicit Ranks(int size, std::chrono::milliseconds form_within = std::chrono::seconds(20), std::size_t keep = 16)
        : aborts_(static_cast<std::size_t>(size)) {
        auto& runtime = runtime_or_skip();
        if (runtime.devices().size() < static_cast<std::size_t>(size)) {
            std::printf("skipped: needs %d GPUs\n", size);
            std::fflush(stdout);
            _exit(77);
        }
        for (int rank = 0; rank < size; ++rank) {
            devices_.push_back(&runtime.open(rank));
            groups_.push_back(
                std::make_unique<ddp::DeviceGroups>(ddp::DeviceGroups::Settings{"here", keep, form_within}));
            roster_.push_back(base::Rank{static_cast<std::uint32_t>(rank)});
        }
    }
    [[nodiscard]] int size() const { return static_cast<int>(devices_.size()); }
    [[nodiscard]] ddp::DeviceGroups& groups(int rank) { return *groups_[static_cast<std::size_t>(rank)]; }
    [[nodiscard]] std::atomic<bool>& abort(int rank) { return aborts_[static_cast<std::size_t>(rank)]; }
    /// `same_device`: all ranks take the first one.
    void trial(const std::function<void(Member)>& body, bool same_device = false) {
        std::vector<const std::atomic<bool>*> flags;
        for (auto& flag : aborts_) flags.push_back(&flag);
        const auto collectives = ddp::make_thread_collectives(size(), flags);
        std::vector<std::thread> threads;
        for (int rank = 0; rank < size(); ++rank)
            threads.emplace_back([&, rank] {
                const auto r = static_cast<std::size_t>(rank);
                auto& collective = dynamic_cast<ddp::ProtocolCollective&>(*collectives[r]);
                collective.reach_devices(*groups_[r], roster_, "test");
                body({rank, collective, *devices_[same_device ? 0 : r], *groups_[r]});
            });
        for (auto& thread : threads) thread.join();
    }

  private:
    std::vector<std::atomic<bool>> aborts_;
    std::vector<device::Accelerator*> devices_;
    std::vector<std::unique_ptr<ddp::DeviceGroups>> groups_;
    std::vector<base::Rank> roster_;
};

inline int most_ranks() { return static_cast<int>(std::min<std::size_t>(runtime_or_skip().devices().size(), 3)); }

} // namespace ranktune::testing
