// SPDX-License-Identifier: Apache-2.0
#pragma once
// All trials of a study, with their phases and which of them wait.

#include <set>
#include <utility>

#include "ranktune/study/record.hpp"
#include "tuner/values/chunked_vector.hpp"
#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

/// By TrialId. A row never moves.
class Trials {
  public:
    using Table = ChunkedVector<Trial>;

    [[nodiscard]] std::size_t size() const { return table_.size(); }
    [[nodiscard]] bool empty() const { return table_.empty(); }
    [[nodiscard]] Table::ConstIterator begin() const { return table_.begin(); }
    [[nodiscard]] Table::ConstIterator end() const { return table_.end(); }
    [[nodiscard]] const Trial& back() const { return table_.back(); }
    [[nodiscard]] const Trial& operator[](std::size_t position) const { return table_[position]; }
    [[nodiscard]] const Trial& operator[](TrialId id) const { return table_[id.value()]; }
    /// Throws base::FormatError: a record is about a trial that was never created.
    [[nodiscard]] const Trial& at(TrialId id) const {
        if (id.value() >= table_.size()) unknown(id);
        return table_[id.value()];
    }
    [[nodiscard]] std::uint64_t in(TrialPhase phase) const { return count_[static_cast<std::size_t>(phase)]; }
    /// Attempts whose ranks are not back yet.
    [[nodiscard]] std::uint64_t live_attempts() const { return live_; }
    /// Those in phase `waiting` that can be started: not on hold, and without an attempt that winds down. Ascending.
    [[nodiscard]] const std::set<TrialId>& waiting() const { return waiting_; }

    /// Those that users have paused, ascending.
    [[nodiscard]] const std::set<TrialId>& on_hold() const { return on_hold_; }

    // ---- mutators
    [[nodiscard]] Trial& at(TrialId id) { return const_cast<Trial&>(std::as_const(*this).at(id)); }
    void add(Trial trial);
    /// A trial in a final phase is not on hold.
    void set_phase(TrialId id, TrialPhase phase);
    void set_on_hold(TrialId id, bool held);
    /// The trial runs.
    void begin_attempt(const study::TrialStarted& started, Iteration from);
    /// The ranks of its attempt are back. The phase of the trial stays.
    void end_attempt(TrialId id);
    void snapshot(study::Encoder& out) const;
    /// Restores the table and derives the rest.
    void restore(study::Decoder& in);
    /// Throws std::logic_error naming what does not hold.
    void check_invariants() const;

  private:
    [[noreturn]] static void unknown(TrialId id);
    [[nodiscard]] static bool can_start(const Trial& t) {
        return t.phase == TrialPhase::waiting && !t.on_hold && !t.attempt.live;
    }
    void list(TrialId id);
    void recount();

    Table table_;
    // Derived.
    std::uint64_t count_[phase_count] = {};
    std::uint64_t live_ = 0;
    std::set<TrialId> waiting_;
    std::set<TrialId> on_hold_;
};

} // namespace ranktune::tuner
