// SPDX-License-Identifier: Apache-2.0
#include "simulate/transport/loopback.hpp"

#include <cassert>
#include <deque>
#include <mutex>
#include <utility>

namespace ranktune::simulate {

struct LoopbackHub::State {
    struct Mailbox {
        mutable std::mutex mutex;
        std::deque<comm::Packet> messages;
    };
    explicit State(std::uint32_t size) : mailboxes(size) {}
    std::vector<Mailbox> mailboxes;

    class Endpoint;
};

class LoopbackHub::State::Endpoint final : public comm::Transport {
  public:
    Endpoint(std::shared_ptr<State> state, base::Rank rank) : state_(std::move(state)), rank_(rank) {}

    base::Rank rank() const override { return rank_; }
    std::uint32_t size() const override { return static_cast<std::uint32_t>(state_->mailboxes.size()); }

    void send(base::Rank to, std::span<const std::byte> bytes) override {
        assert(to.value() < size());
        comm::Packet message{rank_, {bytes.begin(), bytes.end()}};
        auto& box = state_->mailboxes[to.value()];
        const std::lock_guard lock(box.mutex);
        box.messages.push_back(std::move(message));
    }

    std::optional<comm::Packet> poll() override {
        auto& box = state_->mailboxes[rank_.value()];
        const std::lock_guard lock(box.mutex);
        if (box.messages.empty()) return std::nullopt;
        std::optional<comm::Packet> message(std::move(box.messages.front()));
        box.messages.pop_front();
        return message;
    }

    bool flushed() override { return true; }

  private:
    std::shared_ptr<State> state_;
    base::Rank rank_;
};

LoopbackHub::LoopbackHub(std::uint32_t size) : state_(std::make_shared<State>(size)) { assert(size > 0); }

LoopbackHub::~LoopbackHub() = default;

std::unique_ptr<comm::Transport> LoopbackHub::endpoint(base::Rank rank) {
    assert(rank.value() < size());
    return std::make_unique<State::Endpoint>(state_, rank);
}

std::uint32_t LoopbackHub::size() const { return static_cast<std::uint32_t>(state_->mailboxes.size()); }

std::size_t LoopbackHub::in_flight() const {
    std::size_t count = 0;
    for (const auto& box : state_->mailboxes) {
        const std::lock_guard lock(box.mutex);
        count += box.messages.size();
    }
    return count;
}

} // namespace ranktune::simulate
