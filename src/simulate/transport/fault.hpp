// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fault transport: a decorator that delays and drops messages and lets its rank die, reproducibly from a seed. Those
// that arrive do so once and in order per link, as with MPI.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "comm/transport/transport.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/base/time.hpp"

namespace ranktune::simulate {

/// The faults to inject.
struct FaultPlan {
    std::uint64_t seed = 0;
    base::Duration min_delay{0}; ///< delay of each message, uniform in [min_delay, max_delay]
    base::Duration max_delay{0};
    double drop = 0.0;                    ///< probability in [0, 1] that a message never arrives
    std::optional<base::StudyTime> death; ///< after it this rank neither sends nor receives
};

/// Decorates one rank's endpoint. Time advances only by `advance`. The faults of the n-th message from one rank to
/// another depend on (seed, from, to, n) alone, not on other links, so a run can be repeated from its seed. Used by the
/// endpoint's thread.
class FaultTransport final : public comm::Transport {
  public:
    FaultTransport(std::unique_ptr<comm::Transport> wire, const FaultPlan& plan);

    /// Sets the time, which must not decrease, and sends due messages.
    void advance(base::StudyTime now);
    /// The earliest time at which a held message is due; none: nothing is held.
    [[nodiscard]] std::optional<base::StudyTime> next_due() const;
    /// The process dies now; held messages are lost.
    void die();
    [[nodiscard]] bool dead() const { return dead_; }

    [[nodiscard]] base::Rank rank() const override { return wire_->rank(); }
    [[nodiscard]] std::uint32_t size() const override { return wire_->size(); }
    void send(base::Rank to, std::span<const std::byte> bytes) override;
    [[nodiscard]] std::optional<comm::Packet> poll() override;
    [[nodiscard]] bool flushed() override;

    struct Counts {
        std::uint64_t sent = 0; ///< calls of send while alive
        std::uint64_t dropped = 0;
    };
    [[nodiscard]] const Counts& counts() const { return counts_; }

  private:
    struct Link {
        base::RngStream stream;
        base::StudyTime last_due{};
    };
    struct Due {
        base::StudyTime at;
        std::uint64_t sequence;
        friend auto operator<=>(const Due&, const Due&) = default;
    };
    struct Held {
        base::Rank to;
        std::vector<std::byte> bytes;
    };

    Link& link(base::Rank to);
    void release_due();

    std::unique_ptr<comm::Transport> wire_;
    FaultPlan plan_;
    base::StudyTime now_{};
    bool dead_ = false;
    std::uint64_t next_sequence_ = 0;
    std::map<base::Rank, Link> links_;
    std::map<Due, Held> held_;
    Counts counts_;
};

} // namespace ranktune::simulate
