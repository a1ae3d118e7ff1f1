// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective.hpp"
#include "ddp/gradients/device_groups.hpp"

#include <algorithm>
#include <deque>
#include <vector>

namespace ranktune::ddp {
namespace {

class Done final : public Pending {
  public:
    bool test() override { return true; }
};

class SelfCollective final : public Collective {
  public:
    explicit SelfCollective(const std::atomic<bool>* abort) : abort_(abort) {}

    int rank() const override { return 0; }
    int size() const override { return 1; }
    std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) override {
        look();
        return {value, value};
    }
    DeviceSums& sums_on(device::Accelerator&) override {
        look();
        if (!sums_) sums_ = make_self_sums(abort_);
        return *sums_;
    }
    std::size_t announce(const StepPlan&) override { return 0; }
    void begin_step(std::size_t, OpenStep& step) override {
        look();
        open_step_ = &step;
    }
    std::unique_ptr<Pending> start_sum(base::Buffer) override { return std::make_unique<Done>(); }
    std::unique_ptr<Pending> start_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        std::ranges::copy(mine, all.begin());
        return std::make_unique<Done>();
    }
    std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts, std::span<std::byte> all) override {
        return start_gather(parts, all);
    }
    void end_step() override {
        open_step_ = nullptr;
        look();
    }
    void fail() override {
        if (open_step_ != nullptr) open_step_->fail();
    }
    void part() noexcept override { messages_.clear(); }

  private:
    struct Message {
        base::DType type;
        std::vector<std::byte> bytes;
    };

    void do_barrier() override { look(); }
    void do_all_reduce(base::Buffer, Reduce) override { look(); }
    void do_broadcast(base::Buffer, int) override { look(); }
    void do_all_gather(base::ConstBuffer mine, base::Buffer all) override {
        look();
        base::copy(mine, all);
    }
    void do_send(base::ConstBuffer message, int) override {
        look();
        const auto bytes = message.host_bytes();
        messages_.push_back({message.type(), {bytes.begin(), bytes.end()}});
    }
    void do_receive(base::Buffer message, int) override {
        look();
        if (messages_.empty())
            throw base::UsageError("the only rank of the trial receives from itself, but has sent nothing");
        const Message next = std::move(messages_.front());
        messages_.pop_front();
        const auto sent = base::ConstBuffer::of_bytes(next.bytes, next.type);
        if (sent.type() != message.type() || sent.count() != message.count())
            throw base::UsageError("rank 0 sent " + sent.text() + ", and this rank receives " + message.text());
        base::copy(sent, message);
    }

    void look() const {
        if (abort_ != nullptr && abort_->load()) throw Aborted("the trial was told to give up");
        if (open_step_ != nullptr)
            throw base::UsageError("an operation of the group between the begin and the finish of a gradient step");
    }

    const std::atomic<bool>* abort_;
    OpenStep* open_step_ = nullptr;
    std::unique_ptr<DeviceSums> sums_;
    std::deque<Message> messages_; ///< to itself
};

} // namespace

std::unique_ptr<Collective> make_self_collective(const std::atomic<bool>* abort) {
    return std::make_unique<SelfCollective>(abort);
}

std::unique_ptr<Group> make_self_group() { return make_self_collective(); }

} // namespace ranktune::ddp
