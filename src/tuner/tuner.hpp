// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tuning core: events in, records and commands out. No clock, no files, no network, no threads.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/command.hpp"
#include "ranktune/study/event.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/core.hpp"
#include "tuner/decide.hpp"
#include "tuner/round.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// What the driver must do after a step, in this order:
///   1. append `records` to the journal; they must be *written* before
///   2. any of `commands` leaves.
/// The driver clears it between steps, or lets several steps collect in it (group commit).
struct Output {
    std::vector<study::Record> records;
    std::vector<study::Command> commands;
    /// Events that were dropped: of another incarnation or attempt, or reported before. A running count, never cleared.
    std::uint64_t stale = 0;
    void clear() {
        records.clear();
        commands.clear();
    }
};

/// One study. The same object runs under a driver, a simulator and a replay.
///
/// Duties of a driver: (1) `create` once for a new study, or `apply` every record of the journal (from a `restore`d
/// snapshot on), then `change` and `reopen` as asked; (2) `step` with
/// Began; (3) `step` with every event, `now` never decreasing, and with TimerFired at `timer()`; (4) the order above;
/// (5) after a command was lost with its connection, send `pending_commands()` again: each is idempotent.
///
/// Inside, deciding is const and yields records, and `apply` alone changes the state. A round takes the next record
/// until there is none.
class Tuner {
  public:
    explicit Tuner(study::StudySpec spec);
    /// With the given algorithms; null: as the study file says. Throws base::UsageError for a combination that cannot
    /// work.
    Tuner(study::StudySpec spec, std::unique_ptr<schedulers::Scheduler> scheduler,
          std::unique_ptr<searchers::Searcher> searcher);
    Tuner(const Tuner&) = delete;
    Tuner& operator=(const Tuner&) = delete;

    /// The first record of a new study. `simulation`: what is simulated, in words; empty: a real study.
    void create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out,
                const std::string& simulation = {});
    /// Right after `create`: results of earlier studies, which the searcher learns from.
    void warm_start(study::WarmStarted earlier, Output& out);
    /// Between two lives (after `apply` of the journal, before Began): the study file changed. Only keys that may
    /// change take effect. Throws base::FormatError when `resolved_spec` cannot be parsed.
    void change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out);
    /// Between two lives: the failed trial `id` waits again, from its last checkpoint if it has one and not
    /// `from_scratch`. Or the failed task after a trial, by study::unit_of. Requires that it failed.
    void reopen(TrialId id, bool from_scratch, StudyTime now, Output& out);
    /// Decides and applies. Stale events (another incarnation, attempt, or an iteration already reported) are counted
    /// and dropped.
    void step(const study::Event& event, Output& out);
    /// Why this request of a user cannot take effect, in words that end in what to do; empty: it can. A request that
    /// took effect before has no objection, and does nothing.
    [[nodiscard]] std::string objection(const study::Steering& ask) const;
    /// The only mutator, live and in replay. Throws base::FormatError when the record contradicts the state.
    void apply(const study::Record& record);
    /// All commands that the state implies and whose effect has not been seen: StartTrial of attempts without a sign of
    /// life, the last Decide of each, Interrupt, Abandon, Prepare, EndStudy after the end. Changes nothing.
    [[nodiscard]] std::vector<study::Command> pending_commands() const;
    /// The work that the command Prepare asks for. It may run on another thread: it does not use this object. nullopt:
    /// nobody waits for this ticket (any more).
    [[nodiscard]] std::optional<searchers::Searcher::Preparation> preparation(std::uint64_t ticket) const;
    /// What the searcher's suggestion for the next trial rests on, if it has this origin (of kind searcher); for
    /// readers.
    [[nodiscard]] study::SuggestionBasis basis_of(const study::Origin& origin) const;
    /// When an event TimerFired is due; nullopt: never. May change with every record. O(1).
    [[nodiscard]] std::optional<StudyTime> timer() const;

    [[nodiscard]] const State& state() const { return core_.state; }
    [[nodiscard]] const study::StudySpec& spec() const { return core_.spec; }
    [[nodiscard]] const schedulers::Scheduler& scheduler() const { return *core_.scheduler; }

    /// Throws std::logic_error naming what does not hold. O(trials + ranks).
    void check_invariants() const;
    /// XXH64 of the whole state: equal after `step` and after applying the same records.
    [[nodiscard]] std::uint64_t digest() const;
    void snapshot(study::Encoder& out) const;
    void restore(study::Decoder& in);

  private:
    // step.cpp: the round.
    void take_in(const study::Event& event, Round& round, Output& out);
    void run(Round& round, Output& out);
    void commit(const study::Record& record, Round& round, Output& out);
    void send(const study::Record& record, Output& out);
    void tell(TrialId id, Output& out);
    /// What was sent to the group of the trial's attempt, which is live.
    Sent& sent_to(TrialId id);

    /// To the group of an attempt.
    struct SentTo {
        TrialId trial;
        AttemptId attempt; ///< zero: nobody
        Sent sent;
    };
    Core core_;
    std::vector<Task> spare_;  ///< empty: memory of the round before
    std::vector<SentTo> sent_; ///< by the rank of the leader
};

} // namespace ranktune::tuner
