// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long iterations and checkpoints take, learned from records, and what the job still has time for.

#include <algorithm>
#include <optional>

#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

class Pace {
  public:
    [[nodiscard]] const std::optional<StudyTime>& deadline() const { return deadline_; } ///< as the driver said
    [[nodiscard]] double iteration() const { return iteration_; } ///< of a new trial, s; 0: unknown
    [[nodiscard]] double saving() const; ///< from the last report of an attempt to its checkpoint, s
    /// Iterations from the start of an attempt until its work is saved.
    [[nodiscard]] Iteration stretch() const { return stretch_; }
    /// The same for an attempt of `t`, which is trained up to `end`; `supported`: trials can save.
    [[nodiscard]] Iteration stretch_of(const Trial& t, Iteration end, Iteration last, bool supported) const;
    /// Seconds from the start command of an attempt until its work is saved; 0: unknown.
    [[nodiscard]] double needed(double iteration, Iteration stretch) const {
        return iteration <= 0.0 ? 0.0 : starting_ + iteration * static_cast<double>(stretch) + saving();
    }
    /// Whether `needed` seconds are left. True for an unknown duration, so that it gets measured.
    [[nodiscard]] bool is_time_for(double needed, StudyTime now) const { return !deadline_ || left(now) >= needed; }
    [[nodiscard]] bool is_time_for_another(StudyTime now) const {
        return is_time_for(needed(iteration_, stretch_), now);
    }
    /// The latest start of a new trial; see tuner::last_start.
    [[nodiscard]] std::optional<StudyTime> last_start() const;
    /// Seconds until the deadline. Requires that there is one.
    [[nodiscard]] double left(StudyTime now) const { return base::to_seconds(*deadline_ - now); }
    /// When running trials must be told, so that each can end its iteration, which takes up to `slowest` seconds, and
    /// save. nullopt: no deadline.
    [[nodiscard]] std::optional<StudyTime> time_to_tell(double slowest) const;

    /// Throws std::logic_error.
    void check_invariants() const;

    // ---- mutators
    void set_deadline(std::optional<StudyTime> at) { deadline_ = at; }
    void set_stretch(Iteration stretch) { stretch_ = stretch; }
    /// Learns from training time, not from the time between two reports, of which several may be in flight. `before`:
    /// `seconds` of the previous report; `first`: the first report of this study.
    void learn_from_report(Trial& t, StudyTime at, Iteration iteration, double seconds, double before, bool first);
    /// Only the `last` checkpoint of an attempt tells how long saving takes: others are written while training goes on.
    /// `t` does not list the checkpoint yet.
    void learn_from_checkpoint(Trial& t, StudyTime at, Iteration iteration, bool last);
    /// The job ended before the trial reached a checkpoint, so a checkpoint takes more iterations than it trained. A
    /// program may save only with some reports; a trainable in this process that has no checkpoint when asked has none
    /// at all (`all`: the iterations of a whole trial).
    void learn_from_pause(Trial& t, bool program, Iteration all);
    /// A first iteration that did not end takes longer than the time it had. Assume a quarter more; otherwise the next
    /// job of the same length would end the same way. (A trial that reported before says nothing: it hung or was
    /// killed.)
    void learn_from_loss(Trial& t, StudyTime at, bool first);

    static void fields(auto&& each, auto& r) { each(r.deadline_, r.iteration_, r.starting_, r.saving_, r.stretch_); }

  private:
    std::optional<StudyTime> deadline_;
    double iteration_ = 0.0;
    double starting_ = 0.0; ///< from the start command of an attempt to its training, s
    double saving_ = 0.0;   ///< 0: unknown
    Iteration stretch_ = 1;
};

} // namespace ranktune::tuner
