// SPDX-License-Identifier: Apache-2.0
#pragma once
// OutsideRanks: stands for the workers of a study whose trials run outside of all ranks. For the head it is a transport
// to many idle ranks; each that gets a trial is a seat, from which somebody takes the trial.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"

namespace ranktune::head {

/// A rank with the trial that the head has started there.
struct Seat {
    base::Rank rank;
    study::StartTrial start = {};
    bool held = false;  ///< there is a trial
    bool asked = false; ///< somebody has taken it
    bool told = false;  ///< its result is known; the rank is kept until the next trial is asked for
    study::Iteration iteration = 0;
    base::StudyTime asked_at = {};
    std::vector<study::NamedMetric> last = {};    ///< report
    std::optional<study::Verdict> verdict = {};   ///< pause, stop or discard; nullopt: it goes on
    std::optional<study::Verdict> interrupt = {}; ///< takes effect at the next report
};

/// Hello and Bye of all ranks wait for `poll`; everything else is up to the caller. Only messages `Alive` may be sent
/// by another thread.
class OutsideRanks final : public comm::Transport {
  public:
    /// `version`: of this program.
    OutsideRanks(std::uint32_t ranks, const std::string& version, const std::string& host);

    [[nodiscard]] base::Rank rank() const override { return base::head_rank; }
    [[nodiscard]] std::uint32_t size() const override { return static_cast<std::uint32_t>(seats_.size()) + 1; }
    void send(base::Rank to, std::span<const std::byte> bytes) override;
    [[nodiscard]] std::optional<comm::Packet> poll() override;
    [[nodiscard]] bool flushed() override { return true; }

    [[nodiscard]] std::vector<Seat>& seats() { return seats_; }
    /// With the lowest trial that nobody has taken; null: none.
    [[nodiscard]] Seat* offered();
    /// With this trial, which somebody has taken; null: none.
    [[nodiscard]] Seat* taken(study::TrialId trial);

  private:
    template <class T>
    void queue(base::Rank from, const T& message);

    std::vector<Seat> seats_; ///< by rank - 1
    std::deque<comm::Packet> to_head_;
};

} // namespace ranktune::head
