// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tuning core: events in, records and commands out. No clock, no files, no network, no threads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/study/command.hpp"
#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/scheduler.hpp"
#include "searchers/searcher.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// What one step wants done, in this order:
///   1. append `records` to the journal; they must be *written* before
///   2. any of `commands` leaves.
/// The driver clears it between steps, or lets several steps collect in it (group commit).
struct Output {
    std::vector<study::Record> records;
    std::vector<study::Command> commands;
    void clear() {
        records.clear();
        commands.clear();
    }
};

/// One study. The same object runs under a driver, a simulator and a replay.
///
/// Duties of a driver: (1) `create` once for a new study, or `apply` every record of the journal (from a `restore`d
/// snapshot on), then `change` and `reopen` as asked; (2) `step` with
/// Began; (3) `step` with every event, `now` never decreasing; (4) the order above; (5) after a command was lost with
/// its connection, send `pending_commands()` again: each is idempotent.
class Tuner {
  public:
    explicit Tuner(study::StudySpec spec);
    ~Tuner();
    Tuner(Tuner&&) noexcept;
    Tuner& operator=(Tuner&&) noexcept;

    /// The first record of a new study.
    void create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out);
    /// Between two lives (after `apply` of the journal, before Began): the study file changed. Only keys that may
    /// change take effect. Throws base::FormatError when `resolved_spec` cannot be parsed.
    void change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out);
    /// Between two lives: the failed trial `id` waits again, from its last checkpoint if it has one and not
    /// `from_scratch`. Requires that it failed.
    void reopen(TrialId id, bool from_scratch, StudyTime now, Output& out);
    /// Decides and applies. Stale events (another incarnation, attempt, or an iteration already reported) are counted
    /// and dropped.
    void step(const study::Event& event, Output& out);
    /// The only mutator, live and in replay. Throws base::FormatError when the record cannot follow the state it meets.
    void apply(const study::Record& record);
    /// Commands that the state implies and whose effect has not been seen: StartTrial of attempts without a sign of
    /// life, Decide for verdicts that trials wait for or must obey, EndStudy after the end. Changes nothing.
    [[nodiscard]] std::vector<study::Command> pending_commands() const;

    [[nodiscard]] const State& state() const;
    [[nodiscard]] const study::StudySpec& spec() const;
    [[nodiscard]] const schedulers::Scheduler& scheduler() const;

    /// Throws std::logic_error naming what does not hold. O(trials + ranks).
    void check_invariants() const;
    /// XXH64 of the whole state: equal after `step` and after applying the same records.
    [[nodiscard]] std::uint64_t digest() const;
    void snapshot(study::Encoder& out) const;
    void restore(study::Decoder& in);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::tuner
