// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProtocolCollective: the failure protocol of Collective, over any Fabric.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "ddp/fabric.hpp"
#include "ranktune/ddp/collective.hpp"

namespace ranktune::ddp {

/// Every operation begins with the maximum over a *header* of ten 64-bit words:
///
///     what, ~what       operation and root; the lowest value for a rank that fails
///     count, ~count     elements; likewise
///     failed            rank + 1 of a rank that fails, else 0
///     aborted           1: this rank was told to give up
///     unplanned         1: this rank fails and does not know which buckets it owes
///     step              1: this rank is in a step
///     value, ~value     the number of min_max (sign bit flipped, so that unsigned numbers keep their order)
///
/// Because ~x reverses the order, the pairs give minimum and maximum at once: a rank that calls another operation or
/// passes another size is found by all ranks, and all throw base::Error.
///
/// Example, three ranks; rank 2 throws in user code before its step:
///
///     rank 0  begin_step: header{step}   bucket  bucket   end_step -> PeerFailed("rank 2 of the trial failed")
///     rank 1  begin_step: header{step}   bucket  bucket   end_step -> PeerFailed
///     rank 2  fail(owed): header{failed} zeros   zeros    returns
///
/// All operations are complete everywhere, so the communicator can be used again.
///
/// Waiting polls the abort flag. When it is raised in the middle of an operation (a peer died), or ranks in a step
/// cannot be joined, the operation is given up: the fabric is poisoned, buffers in flight are buried, Aborted or
/// base::Error is thrown, and every later operation throws Aborted at once. What the fabric throws ends the same way.
class ProtocolCollective final : public Collective {
  public:
    /// `abort` outlives this object; raised by another thread.
    ProtocolCollective(std::unique_ptr<Fabric> fabric, const std::atomic<bool>& abort);

    [[nodiscard]] int rank() const override { return fabric_->rank(); }
    [[nodiscard]] int size() const override { return fabric_->size(); }
    void barrier() override;
    void broadcast(std::span<std::byte> bytes, int root) override;
    void all_reduce_sum(std::span<double> values) override;
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override;
    void begin_step() override;
    [[nodiscard]] std::unique_ptr<Pending> start_sum(std::span<float> values) override;
    void end_step() override;
    void fail(std::span<const std::size_t> owed) override;

    /// Operations were given up; the group is lost for further trials.
    [[nodiscard]] bool poisoned() const { return poisoned_; }

  private:
    enum class Operation : std::int64_t { barrier = 1, broadcast, sum, min_max, step };
    enum Word : std::size_t {
        what,
        not_what,
        count,
        not_count,
        failed,
        aborted,
        unplanned,
        step,
        value,
        not_value,
        words
    };
    using Header = std::array<std::int64_t, words>;
    class StepPending;

    [[nodiscard]] Header make_header(Operation operation, std::uint64_t elements, int root) const;
    void start_header(const Header& header);
    void wait_header();
    /// Whether the ranks in a step can be joined by all others; else its buckets will never be complete.
    [[nodiscard]] bool joinable() const;
    /// Throws what the completed header says.
    void judge() const;
    /// A whole header: start, wait, judge.
    void agree(const Header& header);
    /// While a bucket is not complete: throws when it never will be.
    void watch_step();
    /// Waits; `keep` owns the buffer and is buried when the wait is given up.
    void wait(Pending& pending, const std::shared_ptr<const void>& keep);
    [[noreturn]] void give_up();
    void poison() noexcept;
    void require_usable() const;
    /// Calls `call`; what it throws poisons the group.
    template <class F>
    auto guarded(F&& call) {
        try {
            return call();
        } catch (...) {
            poison();
            throw;
        }
    }

    std::unique_ptr<Fabric> fabric_;
    const std::atomic<bool>& abort_;
    std::shared_ptr<Header> header_; ///< of the operation under way
    std::unique_ptr<Pending> header_pending_;
    bool poisoned_ = false;
};

} // namespace ranktune::ddp
