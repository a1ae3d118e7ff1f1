// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long things take, learned from records, and what there is still time for before the deadline of the job.

#include <algorithm>
#include <optional>

#include "tuner/values/trial_state.hpp"

namespace ranktune::tuner {

class Pace {
  public:
    [[nodiscard]] const std::optional<StudyTime>& deadline() const { return deadline_; } ///< as the driver said
    [[nodiscard]] double iteration() const { return iteration_; } ///< of a new trial, s; 0: nobody knows
    [[nodiscard]] double saving() const; ///< from the last report of an attempt to its checkpoint, s
    /// Iterations from the start of an attempt to where its work is safe.
    [[nodiscard]] Iteration stretch() const { return stretch_; }
    /// The same of an attempt of `t`, which is trained up to `end`; `supported`: trials can save.
    [[nodiscard]] Iteration stretch_of(const TrialState& t, Iteration end, Iteration last, bool supported) const;
    /// Seconds from the start command of an attempt to a place where its work is safe; 0: nobody knows.
    [[nodiscard]] double needed(double iteration, Iteration stretch) const {
        return iteration <= 0.0 ? 0.0 : starting_ + iteration * static_cast<double>(stretch) + saving();
    }
    /// Whether so many seconds are left. A duration that nobody knows is found out.
    [[nodiscard]] bool is_time_for(double needed, StudyTime now) const { return !deadline_ || left(now) >= needed; }
    [[nodiscard]] bool is_time_for_another(StudyTime now) const {
        return is_time_for(needed(iteration_, stretch_), now);
    }
    /// Until when a new trial may begin; see tuner::last_start.
    [[nodiscard]] std::optional<StudyTime> last_start() const;
    /// Seconds until the deadline. Requires that there is one.
    [[nodiscard]] double left(StudyTime now) const { return base::to_seconds(*deadline_ - now); }
    /// When trials that run have to be told, so that each ends its iteration, which takes up to `slowest` seconds, and
    /// saves. Nothing: there is no deadline.
    [[nodiscard]] std::optional<StudyTime> time_to_tell(double slowest) const;

    // ---- mutators
    void set_deadline(std::optional<StudyTime> at) { deadline_ = at; }
    void set_stretch(Iteration stretch) { stretch_ = stretch; }
    /// A report. Training time counts, not the time between two reports: a leader may have several on the way.
    /// `before`: `seconds` of the report before; `first`: nobody has reported before in this study.
    void learn_from_report(TrialState& t, StudyTime at, Iteration iteration, double seconds, double before, bool first);
    /// How long saving takes only the last checkpoint of an attempt tells: one that is written beside the training says
    /// nothing about how long that waits. `t` does not have it yet.
    void learn_from_checkpoint(TrialState& t, StudyTime at, Iteration iteration);
    /// The end of a job that found no checkpoint to take: it lies further away than the trial got. A program may pass
    /// one with every so many reports; a trainable in this process that has none when it is asked has none at all
    /// (`all`: what a new trial is trained for).
    void learn_from_pause(TrialState& t, bool program, Iteration all);
    /// A first iteration that did not end takes longer than the time it got: a quarter more is assumed, or the next job
    /// of the same length would try it again, and end the same way. (One that was as fast as others before says
    /// nothing: it hung, or was killed.)
    void learn_from_loss(TrialState& t, StudyTime at, bool first);

    template <class Archive, class Self>
    static void fields(Archive& archive, Self& self) {
        archive(self.deadline_);
        archive(self.iteration_);
        archive(self.starting_);
        archive(self.saving_);
        archive(self.stretch_);
    }

  private:
    std::optional<StudyTime> deadline_;
    double iteration_ = 0.0;
    double starting_ = 0.0; ///< from the start command of an attempt to its training, s
    double saving_ = 0.0;   ///< 0: nobody knows
    Iteration stretch_ = 1;
};

} // namespace ranktune::tuner
