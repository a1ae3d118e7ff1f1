// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProtocolCollective: the failure protocol of Collective, over any Fabric.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ddp/collective/fabric.hpp"
#include "ddp/collective/messages.hpp"
#include "ddp/collective/staging.hpp"
#include "ddp/gradients/device_groups.hpp"

namespace ranktune::ddp {

/// Every collective operation begins with the maximum over a *header* of ten 64-bit words:
///
///     what, ~what       operation, type, kind of reduction and root; the lowest value for a failing rank
///     count, ~count     elements, or the number of the step's plan; the lowest value for a failing rank
///     failed            rank + 1 of a failing rank, else 0
///     aborted           1: this rank was told to give up
///     ~plans            number of step plans a failing rank knows; else the lowest value
///     step              1: this rank is in a step
///     value, ~value     the number of min_max (sign bit flipped, so that unsigned numbers keep their order)
///
/// Because ~x reverses the order, each pair gives minimum and maximum at once: when a rank calls another operation or
/// passes another size, all ranks detect it and throw base::Error.
///
/// Example, three ranks; rank 2 throws in user code before its step:
///
///     rank 0  begin_step: header{step}   bucket  bucket   end_step -> PeerFailed("rank 2 of the trial failed")
///     rank 1  begin_step: header{step}   bucket  bucket   end_step -> PeerFailed
///     rank 2  fail: header{failed}       zeros   zeros    returns
///
/// send and receive have no header. A rank that fails sends a notice to all others. A rank that finds the notice while
/// it waits for a message *leaves*: it takes part in the failing rank's header as a failing rank too, and throws
/// PeerFailed.
///
/// Afterwards all operations are complete on all ranks, so the communicator can be used again.
///
/// A rank that loses its device, or the connection to those of others, cannot join their sums. It tells them by a
/// message of the channel `lost`; waiting ranks look for it, and all throw GroupLost. The group is poisoned then.
///
/// Waiting polls the abort flag. When it is raised during an operation (a peer died), or when a step cannot be joined,
/// the operation is given up: the fabric is poisoned, buffers in flight are kept to the exit, Aborted or base::Error is
/// thrown, and every later operation throws Aborted at once. An exception of the fabric has the same effect, and a wait
/// that takes too long: the rank tells the others by the channel `lost`, too.
class ProtocolCollective final : public Collective {
  public:
    /// Piece sizes of long operations.
    struct Pieces {
        std::size_t bytes = std::size_t{4} << 20U;    ///< of broadcasts, gathers and messages
        std::size_t elements = std::size_t{1} << 27U; ///< of reductions
    };
    /// `abort` is raised by another thread and must outlive this object. `epoch`: new on this fabric, the same on all
    /// ranks.
    ProtocolCollective(std::unique_ptr<Fabric> fabric, const std::atomic<bool>& abort, std::uint64_t epoch,
                       Pieces pieces);
    ProtocolCollective(std::unique_ptr<Fabric> fabric, const std::atomic<bool>& abort, std::uint64_t epoch)
        : ProtocolCollective(std::move(fabric), abort, epoch, Pieces{}) {}

    ~ProtocolCollective() override;
    [[nodiscard]] int rank() const override { return fabric_->rank(); }
    [[nodiscard]] int size() const override { return fabric_->size(); }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override;
    /// Requires reach_devices.
    [[nodiscard]] DeviceSums& sums_on(device::Accelerator& on) override;
    [[nodiscard]] std::size_t announce(const StepPlan& plan) override;
    void begin_step(std::size_t plan, OpenStep& step) override;
    [[nodiscard]] std::unique_ptr<Pending> start_sum(base::Buffer values) override;
    [[nodiscard]] std::unique_ptr<Pending> start_gather(std::span<const std::byte> mine,
                                                        std::span<std::byte> all) override;
    [[nodiscard]] std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts,
                                                          std::span<std::byte> all) override;
    void end_step() override;
    void fail() override;
    void part() noexcept override;
    void check_wait(std::chrono::steady_clock::time_point begin) override;
    void limit_waits(std::chrono::nanoseconds longest) override { longest_wait_ = longest; }
    void check_sums() override;

    /// From now on gradients can be summed on devices, too: in groups of `groups`, which outlives this object.
    /// `roster`: the world ranks of the group. `name`: of the trial, for NCCL's log.
    void reach_devices(DeviceGroups& groups, std::vector<base::Rank> roster, std::string name);

    /// Whether operations were given up, so that the group cannot be reused.
    [[nodiscard]] bool poisoned() const { return poisoned_; }

  private:
    void do_barrier() override;
    void do_all_reduce(base::Buffer values, Reduce how) override;
    void do_broadcast(base::Buffer values, int root) override;
    void do_all_gather(base::ConstBuffer mine, base::Buffer all) override;
    void do_send(base::ConstBuffer message, int to) override;
    void do_receive(base::Buffer message, int from) override;

    enum class Operation : std::int64_t { barrier = 1, broadcast, all_reduce, all_gather, min_max, step };
    enum Word : std::size_t {
        what,
        not_what,
        count,
        not_count,
        failed,
        aborted,
        not_plans,
        step,
        value,
        not_value,
        words
    };
    using Header = std::array<std::int64_t, words>;
    class StepPending;
    struct Plan {
        StepPlan step;
        std::vector<Staging> staging; ///< one per bucket if numbers are staged in another type, else empty
    };

    [[nodiscard]] Header make_header(Operation operation) const;
    [[nodiscard]] Header make_header(Operation operation, const base::ConstBuffer& values, int detail) const;
    [[nodiscard]] Header make_failing_header() const;
    void start_header(const Header& header);
    /// `patiently`: without limit.
    void wait_header(bool patiently = false);
    void header_is_complete();
    /// Whether all other ranks can join the step; otherwise its buckets never complete.
    [[nodiscard]] bool joinable() const;
    /// Throws the error that the completed header reports, if any.
    void judge() const;
    /// A whole header: start, wait, judge.
    void agree(const Header& header, bool patiently = false);
    /// A whole header of a rank that leaves, with zeros for a step that others are in.
    void join(const Header& header);
    void send_zeros(const StepPlan& plan);
    /// Called while a bucket is pending: throws when it can never complete.
    void watch_step();
    /// Called outside of collective operations: throws when this rank has to give up or to leave.
    void look_out();
    /// Throws GroupLost, after poisoning the group, when another rank has told that its sums on a device are lost.
    void look_for_lost();
    /// Whether one has told; for any thread.
    [[nodiscard]] bool others_are_lost();
    void tell_lost() noexcept; ///< tells the others, and poisons the group
    [[nodiscard]] std::unique_ptr<DeviceSums> formed_sums(device::Accelerator& on);
    /// Calls `call`, which uses sums on a device: an exception poisons the group.
    void use_sums(const std::function<void()>& call);
    /// Waits for completion; `keep` owns the buffer and is kept to the exit when the wait is given up.
    void wait(Pending& pending, const std::shared_ptr<const void>& keep, bool patiently = false);
    [[noreturn]] void give_up();
    void poison() noexcept;
    void require_usable() const;
    void require_outside_step() const;
    /// Calls `call`. An exception poisons the group, except PeerFailed, with which all ranks leave together.
    template <class F>
    auto guarded(F&& call) {
        try {
            return call();
        } catch (const PeerFailed&) {
            throw;
        } catch (...) {
            poison();
            throw;
        }
    }

    std::unique_ptr<Fabric> fabric_;
    const std::atomic<bool>& abort_;
    Pieces pieces_;
    std::shared_ptr<Header> header_; ///< of the current operation, or the last one
    std::unique_ptr<Pending> header_pending_;
    std::uint64_t headers_ = 0; ///< number of headers started; equal on all ranks whenever one is complete
    std::vector<Plan> plans_;   ///< announced
    OpenStep* open_step_ = nullptr;
    std::size_t open_plan_ = 0;
    std::size_t started_buckets_ = 0; ///< of the open step
    Messages messages_;
    bool poisoned_ = false;
    std::atomic<bool> others_lost_{false};
    std::chrono::nanoseconds longest_wait_ = std::chrono::nanoseconds::max();
    std::vector<std::unique_ptr<Pending>> told_; ///< that this rank gives up
    struct Devices {
        DeviceGroups* groups = nullptr; ///< null: host memory only
        std::vector<base::Rank> roster;
        std::string name;
        std::map<const device::Accelerator*, std::unique_ptr<DeviceSums>> sums;
    } devices_; // last: sums end while the fabric lives
};

} // namespace ranktune::ddp
