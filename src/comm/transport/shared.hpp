// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared transport: one endpoint for several threads.

#include <mutex>

#include "comm/transport/transport.hpp"

namespace ranktune::comm {

/// A decorator that any thread may call; a mutex serialises the calls. No call of a transport waits for a peer, so
/// waits are short.
class SharedTransport final : public Transport {
  public:
    /// `wire` must outlive this object and may only be used through it.
    explicit SharedTransport(Transport& wire) : wire_(wire) {}

    [[nodiscard]] base::Rank rank() const override { return wire_.rank(); }
    [[nodiscard]] std::uint32_t size() const override { return wire_.size(); }
    void send(base::Rank to, std::span<const std::byte> bytes) override {
        const std::lock_guard lock(mutex_);
        wire_.send(to, bytes);
    }
    [[nodiscard]] std::optional<Packet> poll() override {
        const std::lock_guard lock(mutex_);
        return wire_.poll();
    }
    [[nodiscard]] bool flushed() override {
        const std::lock_guard lock(mutex_);
        return wire_.flushed();
    }

    [[nodiscard]] int bell() const override { return wire_.bell(); }
    [[nodiscard]] bool is_quiet() override {
        const std::lock_guard lock(mutex_);
        return wire_.is_quiet();
    }

  private:
    Transport& wire_;
    std::mutex mutex_;
};

} // namespace ranktune::comm
