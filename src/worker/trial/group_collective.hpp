// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupCollective: the Group that user code gets. Counts progress, and stays closed after a failure.

#include <memory>
#include <new>
#include <utility>

#include "ddp/collective.hpp"
#include "worker/trial/attempt_port.hpp"

namespace ranktune::worker {

/// Forwards to the trial's Collective. Once the ranks have parted (an operation threw on all of them, or `fail` was
/// called), every operation throws PeerFailed and `fail` returns at once: user code that catches the exception cannot
/// make another rank hang. An operation that fails on this rank alone (base::UsageError, out of memory) has sent
/// nothing and does not part the ranks: `fail` then tells the others.
class GroupCollective final : public ddp::Collective {
  public:
    GroupCollective(std::unique_ptr<ddp::Collective> inner, AttemptPort& port)
        : inner_(std::move(inner)), port_(port) {}

    [[nodiscard]] int rank() const override { return inner_->rank(); }
    [[nodiscard]] int size() const override { return inner_->size(); }
    [[nodiscard]] bool reaches(const base::Place& place) const override { return inner_->reaches(place); }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override {
        std::pair<std::uint64_t, std::uint64_t> result;
        forward([&] { result = inner_->min_max(value); });
        return result;
    }
    [[nodiscard]] ddp::DeviceSums& sums_on(device::Accelerator& on) override {
        ddp::DeviceSums* sums = nullptr;
        forward([&] { sums = &inner_->sums_on(on); });
        return *sums;
    }
    [[nodiscard]] std::size_t announce(const ddp::StepPlan& plan) override { return inner_->announce(plan); }
    void begin_step(std::size_t plan, ddp::OpenStep& step) override {
        forward([&] { inner_->begin_step(plan, step); });
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_sum(base::Buffer values) override {
        return inner_->start_sum(values);
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_gather(std::span<const std::byte> mine,
                                                             std::span<std::byte> all) override {
        return inner_->start_gather(mine, all);
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_exchange(std::span<const std::byte> parts,
                                                               std::span<std::byte> all) override {
        return inner_->start_exchange(parts, all);
    }
    void end_step() override {
        forward([&] { inner_->end_step(); });
    }
    void fail() override {
        if (parted_) return;
        try {
            inner_->fail();
        } catch (...) {
            parted_ = true;
            throw;
        }
        parted_ = true;
    }
    void check_wait(std::chrono::steady_clock::time_point begin) override { inner_->check_wait(begin); }
    void limit_waits(std::chrono::nanoseconds longest) override { inner_->limit_waits(longest); }
    void check_sums() override {
        if (!parted_) inner_->check_sums();
    }
    /// No further operations: all ranks call this at the same place.
    void part() noexcept override { parted_ = true; }

  private:
    void do_barrier() override {
        forward([&] { inner_->barrier(); });
    }
    void do_all_reduce(base::Buffer values, ddp::Reduce how) override {
        forward([&] { inner_->all_reduce(values, how); });
    }
    void do_broadcast(base::Buffer values, int root) override {
        forward([&] { inner_->broadcast(values, root); });
    }
    void do_all_gather(base::ConstBuffer mine, base::Buffer all) override {
        forward([&] { inner_->all_gather(mine, all); });
    }
    void do_send(base::ConstBuffer message, int to) override {
        forward([&] { inner_->send(message, to); });
    }
    void do_receive(base::Buffer message, int from) override {
        forward([&] { inner_->receive(message, from); });
    }

    template <class F>
    void forward(F&& operation) {
        if (parted_) throw ddp::PeerFailed("the trial's ranks have parted after a failure");
        try {
            operation();
        } catch (const base::UsageError&) {
            throw;
        } catch (const std::bad_alloc&) {
            throw;
        } catch (...) {
            parted_ = true;
            throw;
        }
        port_.progressed();
    }

    std::unique_ptr<ddp::Collective> inner_;
    AttemptPort& port_;
    bool parted_ = false;
};

} // namespace ranktune::worker
