// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupCollective: what user code gets as its Collective. Counts progress, and stays closed after a failure.

#include <memory>
#include <utility>

#include "drivers/group/attempt_port.hpp"
#include "ranktune/ddp/collective.hpp"

namespace ranktune::drivers {

/// Forwards to the group's Collective. Once an operation threw or `fail` was called, the ranks have parted: every later
/// operation throws PeerFailed at once and `fail` returns at once, so user code that catches the exception and goes on,
/// or throws another one, cannot strand anybody.
class GroupCollective final : public ddp::Collective {
  public:
    GroupCollective(std::unique_ptr<ddp::Collective> inner, AttemptPort& port)
        : inner_(std::move(inner)), port_(port) {}

    [[nodiscard]] int rank() const override { return inner_->rank(); }
    [[nodiscard]] int size() const override { return inner_->size(); }
    void barrier() override {
        forward([&] { inner_->barrier(); });
    }
    void broadcast(std::span<std::byte> bytes, int root = 0) override {
        forward([&] { inner_->broadcast(bytes, root); });
    }
    void all_reduce_sum(std::span<double> values) override {
        forward([&] { inner_->all_reduce_sum(values); });
    }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override {
        std::pair<std::uint64_t, std::uint64_t> result;
        forward([&] { result = inner_->min_max(value); });
        return result;
    }
    void begin_step() override {
        forward([&] { inner_->begin_step(); });
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_sum(std::span<float> values) override {
        return inner_->start_sum(values);
    }
    void end_step() override {
        forward([&] { inner_->end_step(); });
    }
    void fail(std::span<const std::size_t> owed) override {
        if (parted_) return;
        parted_ = true;
        inner_->fail(owed);
    }
    /// No further operation: the ranks part here, all at the same place.
    void part() noexcept override { parted_ = true; }

  private:
    template <class F>
    void forward(F&& operation) {
        if (parted_) throw ddp::PeerFailed("the trial's ranks have parted after a failure");
        try {
            operation();
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

} // namespace ranktune::drivers
