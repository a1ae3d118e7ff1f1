// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group that also accepts device memory, as one over NCCL would, to test the code between a trainable and the group.

#include <memory>
#include <utility>
#include <vector>

#include "ddp/collective.hpp"

namespace ranktune::testing {

/// Performs operations on device memory over `inner`, with copies on the host.
class DeviceGroup final : public ddp::Collective {
  public:
    explicit DeviceGroup(ddp::Collective& inner) : inner_(inner) {}

    [[nodiscard]] int rank() const override { return inner_.rank(); }
    [[nodiscard]] int size() const override { return inner_.size(); }
    [[nodiscard]] bool reaches(const base::Place&) const override { return true; }
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override {
        return inner_.min_max(value);
    }
    [[nodiscard]] std::size_t announce(const ddp::StepPlan& plan) override { return inner_.announce(plan); }
    void begin_step(std::size_t plan, ddp::OpenStep& step) override { inner_.begin_step(plan, step); }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_sum(base::Buffer values) override {
        return std::make_unique<Sum>(inner_, values);
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_gather(std::span<const std::byte> mine,
                                                             std::span<std::byte> all) override {
        return inner_.start_gather(mine, all);
    }
    [[nodiscard]] std::unique_ptr<ddp::Pending> start_exchange(std::span<const std::byte> parts,
                                                               std::span<std::byte> all) override {
        return inner_.start_exchange(parts, all);
    }
    void end_step() override { inner_.end_step(); }
    void fail() override { inner_.fail(); }
    void part() noexcept override { inner_.part(); }

  private:
    /// A copy on the host.
    class Copy {
      public:
        explicit Copy(base::ConstBuffer values) : type_(values.type()), bytes_(values.bytes()) {
            base::copy(values, buffer());
        }
        [[nodiscard]] base::Buffer buffer() { return base::Buffer::of_bytes(bytes_, type_); }

      private:
        base::DType type_;
        std::vector<std::byte> bytes_;
    };
    class Sum final : public ddp::Pending {
      public:
        Sum(ddp::Collective& inner, base::Buffer values)
            : values_(values), copy_(values), pending_(inner.start_sum(copy_.buffer())) {}
        bool test() override {
            if (done_) return true;
            done_ = pending_->test();
            if (done_) base::copy(copy_.buffer(), values_);
            return done_;
        }

      private:
        base::Buffer values_;
        Copy copy_;
        std::unique_ptr<ddp::Pending> pending_;
        bool done_ = false;
    };

    void do_barrier() override { inner_.barrier(); }
    void do_all_reduce(base::Buffer values, ddp::Reduce how) override {
        Copy copy(values);
        inner_.all_reduce(copy.buffer(), how);
        base::copy(copy.buffer(), values);
    }
    void do_broadcast(base::Buffer values, int root) override {
        Copy copy(values);
        inner_.broadcast(copy.buffer(), root);
        base::copy(copy.buffer(), values);
    }
    void do_all_gather(base::ConstBuffer mine, base::Buffer all) override {
        Copy part(mine);
        Copy whole(all);
        inner_.all_gather(part.buffer(), whole.buffer());
        base::copy(whole.buffer(), all);
    }
    void do_send(base::ConstBuffer message, int to) override { inner_.send(Copy(message).buffer(), to); }
    void do_receive(base::Buffer message, int from) override {
        Copy copy(message);
        inner_.receive(copy.buffer(), from);
        base::copy(copy.buffer(), message);
    }

    ddp::Collective& inner_;
};

} // namespace ranktune::testing
