// SPDX-License-Identifier: Apache-2.0
#pragma once
// Logical time of a deterministic study: slots with clocks, units with keys, and reports that came before their turn.

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/record.hpp"

namespace ranktune::tuner {

using namespace study; // the vocabulary (private header)

/// Place of a unit (what a trial does from one report to the next) in the one order of a deterministic study: the time
/// at which it ends, ties to the lower slot.
struct UnitKey {
    double end = 0.0;
    std::uint32_t slot = 0;
    friend auto operator<=>(const UnitKey&, const UnitKey&) = default;
};

/// How a trial ended by itself, before its turn.
struct HeldEnd {
    AttemptOutcome outcome = AttemptOutcome::finished; ///< finished, failed, lost or disturbed
    Failure failure;
    static void fields(auto&& each, auto& r) { each(r.outcome, r.failure); }
};

/// One of the study's `max_concurrent` places for trials. Independent of ranks.
struct LogicalSlot {
    std::optional<TrialId> trial; ///< nullopt: empty
    double clock = 0.0;           ///< time of the last admitted unit
    Iteration received = 0;       ///< newest report of the trial, admitted or held
    std::deque<ReportHeld> held;  ///< ascending iterations, all after the last admitted one
    std::optional<HeldEnd> end;   ///< after all of `held`
    static void fields(auto&& each, auto& r) { each(r.trial, r.clock, r.received, r.held, r.end); }
};

/// Every unit costs 1. Cost of each call: O(log slots).
class LogicalTime {
  public:
    static constexpr double unit_cost = 1.0;

    /// `slots` empty slots at time 0.
    explicit LogicalTime(std::uint32_t slots = 0) : slots_(slots) { rebuild(); }

    /// Time of the last admitted unit. An empty slot starts from here.
    [[nodiscard]] double now() const { return now_; }
    [[nodiscard]] const std::vector<LogicalSlot>& slots() const { return slots_; }
    [[nodiscard]] LogicalSlot& slot(std::uint32_t position) { return slots_.at(position); }
    [[nodiscard]] bool has_empty_slot() const { return !empty_.empty(); }
    [[nodiscard]] bool any_busy() const { return !busy_.empty(); }
    [[nodiscard]] UnitKey key(std::uint32_t position) const { return {slots_[position].clock + unit_cost, position}; }
    /// The busy slot whose unit is admitted next. Requires any_busy().
    [[nodiscard]] std::uint32_t next() const { return busy_.begin()->slot; }

    /// Puts a trial into the lowest empty slot and returns it. Requires has_empty_slot().
    std::uint32_t enter(TrialId trial, Iteration received);
    /// Admits the unit of a busy slot: the slot's clock and the time become the end of the unit.
    void admit(std::uint32_t position);
    /// The trial of a busy slot leaves it; its held reports are dropped.
    void leave(std::uint32_t position);

    // Which busy slots wait for ranks, and which have ranks but nothing to do with them until their turn comes.
    void set_needs_ranks(std::uint32_t position, bool needs) { put(needy_, position, needs); }
    void set_parked(std::uint32_t position, bool parked) { put(parked_, position, parked); }
    /// In the order of their keys.
    [[nodiscard]] const std::set<UnitKey>& needy() const { return needy_; }
    [[nodiscard]] const std::set<UnitKey>& parked() const { return parked_; }

    /// Sets what a snapshot kept. No slot is needy or parked yet.
    void restored(double now, std::vector<LogicalSlot> slots);

  private:
    void put(std::set<UnitKey>& set, std::uint32_t position, bool in);
    void rebuild();

    double now_ = 0.0;
    std::vector<LogicalSlot> slots_;
    // derived
    std::set<UnitKey> busy_;
    std::set<std::uint32_t> empty_;
    std::set<UnitKey> needy_;
    std::set<UnitKey> parked_;
};

} // namespace ranktune::tuner
