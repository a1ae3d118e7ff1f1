// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceGroups: makes NCCL communicators for the trials of one process, and caches them.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ddp/collective.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/communicator.hpp"
#include "device/device.hpp"
#include "device/module.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::ddp {

/// *Forming.* The ranks of a group agree by messages of the group itself (MPI): whether all have the same communicator
/// of an earlier trial; otherwise the leader makes an id, which they get by broadcast, and all join. That does not
/// block: it is watched, with a time-out. One small sum follows, so that broken connections are found here and not
/// after an epoch.
///
/// *Keeping.* As with comm::GroupFactory: all ranks decide together whether a communicator is kept for the next trial
/// on the same roster, and none is evicted, because closing is collective over the ranks of a node. One that is not
/// kept is closed by all ranks after use. One that failed is aborted, which is local. In the end, all that are kept are
/// closed, if that does not take long: a rank whose part of a sum is complete may still have to send, and an abort
/// would make another one wait for ever.
///
/// *Memory.* A rank without room for its part tells the others, and all try once more when everybody has freed what is
/// only kept for later. Kept communicators are closed when memory is short (device::Accelerator::relieve).
///
/// *Watching.* `tend` looks at all communicators in use, because the trial's thread may wait for its device inside
/// another library (`Tensor::item`). It aborts one that has failed, whose group gives up, or whose sum is overdue: a
/// sum that all ranks have started and that is not complete in time never will be. The device then goes on.
///
/// Used by one thread, but for `tend`. Groups must not outlive it.
class DeviceGroups {
  public:
    struct Settings {
        /// This node, as NCCL tells nodes apart: two ranks with the same name and device are refused.
        std::string host;
        std::size_t keep = 16; ///< communicators; each takes memory of the device
        std::chrono::nanoseconds form_within = std::chrono::minutes(2);
    };
    explicit DeviceGroups(Settings settings) : settings_(std::move(settings)) {}
    ~DeviceGroups(); ///< closes what is kept, within 2 s, or aborts it
    DeviceGroups(const DeviceGroups&) = delete;
    DeviceGroups& operator=(const DeviceGroups&) = delete;

    /// Called while a rank waits; throws when it has to give up.
    using Look = std::function<void()>;
    /// How a rank that waits for devices hears of its group.
    struct Ties {
        Look look;
        /// Calls `call`, which uses the communicator, and sees what it throws. May come within another one.
        std::function<void(const std::function<void()>& call)> guard;
        std::function<bool()> gives_up; ///< whether `look` would throw; for any thread
        /// A rank that cannot form its communicator goes on to the next operation of the group, and tells those that
        /// still wait for it.
        std::function<void()> go_on;
        std::function<bool()> others_go_on;
    };
    /// Collective over `group`, whose world ranks are `roster`; `on` is this rank's device. `name`: for NCCL's log.
    /// `ties` are used in the result, too, which is destroyed before `group`. Throws base::UsageError on all ranks
    /// when two of them have the same device; GroupLost when the communicator cannot be formed;
    /// device::DeviceMemoryError when this rank has no room for it, and PeerFailed on the others; what `look` throws.
    /// `complete_within`: see DeviceSums::expect.
    [[nodiscard]] std::unique_ptr<DeviceSums> form(
        Collective& group, std::span<const base::Rank> roster, device::Accelerator& on, const std::string& name,
        Ties ties, std::chrono::nanoseconds complete_within = std::chrono::nanoseconds::max());
    /// See above. Call it often, from any thread; does nothing most of the time.
    void tend() noexcept;
    /// Before the first `form`.
    void set_form_within(std::chrono::nanoseconds time) { settings_.form_within = time; }

    struct Counts {
        std::uint64_t made = 0;
        std::uint64_t reused = 0;
        std::size_t kept = 0; ///< now
    };
    [[nodiscard]] Counts counts() const { return {made_, reused_, kept_.size()}; }

  private:
    class Sums;
    struct Kept {
        std::unique_ptr<device::Communicator> communicator;
        std::uint64_t number = 0; ///< of its id; the same on all ranks, never 0
    };
    using Key = std::pair<std::vector<base::Rank>, const device::Accelerator*>;

    void refuse_shared_devices(Collective& group, const device::Accelerator& on) const;
    [[nodiscard]] Kept make(Collective& group, device::Accelerator& on, const std::string& name, const Ties& ties);
    [[nodiscard]] Kept make_with(const device::CommunicatorId& id, Collective& group, device::Accelerator& on,
                                 const std::string& name, const Ties& ties) const;
    /// Closes kept communicators of this device, of all without one; returns whether there was one. Aborts those that
    /// do not close in time.
    bool drop_kept(const device::Accelerator* on);

    Settings settings_;
    std::map<Key, Kept> kept_; ///< none of those in use
    std::map<device::Accelerator*, std::shared_ptr<const device::Accelerator::Freeing>> droppers_;
    std::mutex mutex_; ///< of the next two
    std::vector<Sums*> in_use_;
    std::chrono::steady_clock::time_point tended_;
    std::uint64_t made_ = 0;
    std::uint64_t reused_ = 0;
};

/// For a trial of one rank: there is nothing to add. `abort` outlives the result; nullptr: never.
[[nodiscard]] std::unique_ptr<DeviceSums> make_self_sums(const std::atomic<bool>* abort);

} // namespace ranktune::ddp
