// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which checkpoints are kept. Every query looks at the list of one trial, so its cost does not grow with the study.

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

class Retention {
  public:
    /// The trial whose checkpoints are the study's result: the trial that was best when it last saved.
    [[nodiscard]] const std::optional<TrialId>& keeper() const { return keeper_; }
    [[nodiscard]] bool ever_saved() const { return ever_saved_; } ///< a checkpoint of some trial was committed
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  ///< of all that are committed and not released

    /// The first checkpoint of the trial that is no longer needed; null: none. A trial that may go on keeps its newest
    /// two, which include the one that it starts from; a trial paused at a rung that it cannot be promoted from
    /// (`hopeless`) keeps none. A trial that trains, and the study's result, also keep the best checkpoint.keep by the
    /// objective. A failed trial keeps its newest (--resume-errored). `is_read`: a task after the trial reads the best,
    /// which is kept for it. `donated`: the iteration of one that others may want.
    [[nodiscard]] const CheckpointRef* of_no_use(TrialId id, const Trial& t, const study::StudySpec& spec,
                                                 bool hopeless, bool is_result, bool is_read,
                                                 std::optional<Iteration> donated) const;
    /// If checkpoint.max_bytes is exceeded, the trial whose oldest checkpoint is released next: one that is over, or
    /// paused. Running and starting trials need theirs. A trial without a checkpoint that goes on after all starts from
    /// another trial's if the scheduler has one for it, else from scratch, with its first configuration.
    struct Evictable {
        bool paused = false;     ///< what only a task after the trial would read goes first
        bool last = false;       ///< its only one: the others go first, which are there in case the newest is damaged
        Iteration iteration = 0; ///< what is cheap to train again goes first
        double score = 0.0;      ///< then the worst
        TrialId trial;
        friend bool operator<(const Evictable& a, const Evictable& b) {
            if (a.paused != b.paused) return b.paused;
            if (a.last != b.last) return b.last;
            if (a.iteration != b.iteration) return a.iteration < b.iteration;
            return a.score != b.score ? a.score < b.score : b.trial < a.trial;
        }
    };
    /// `is_wanted`: trials whose checkpoints stay: results, and what other trials, or tasks that have not failed, may
    /// want.
    [[nodiscard]] std::optional<TrialId> to_evict(const study::StudySpec& spec, const Trials& trials,
                                                  const std::optional<TrialId>& best,
                                                  const std::function<bool(TrialId)>& is_wanted = {}) const;

    /// Trials some of whose checkpoints the last record may have made useless: they no longer lead, or no other trial
    /// needs their states any more.
    [[nodiscard]] const std::vector<TrialId>& doubtful() const { return doubtful_; }
    /// Whether another trial goes on from this checkpoint of trial `of`.
    [[nodiscard]] bool is_pinned(TrialId of, const std::string& path) const;

    // ---- mutators
    void begin() { doubtful_.clear(); } ///< of a record
    void doubt(TrialId id) { doubtful_.push_back(id); }
    void committed(Trial& t, const CheckpointRef& checkpoint);
    /// Throws base::FormatError when there is no such checkpoint.
    void released(Trial& t, const std::string& path);
    void keep(TrialId id) {
        if (keeper_ && keeper_ != id) doubt(*keeper_);
        keeper_ = id;
    }
    /// Call whenever the phase or the checkpoints of a trial have changed, or the last report of a paused one.
    void list(TrialId id, const Trial& t, const study::StudySpec& spec);
    void list_all(const Trials& trials, const study::StudySpec& spec);

    static void fields(auto&& each, auto& r) { each(r.keeper_, r.ever_saved_, r.bytes_); }
    /// Throws std::logic_error naming what does not hold.
    void check_invariants(const Trials& trials, const study::StudySpec& spec) const;

  private:
    struct Pin {
        std::string path;
        std::uint32_t trials = 0; ///< that depend on it
        friend auto operator<=>(const Pin&, const Pin&) = default;
    };
    struct Dependence {
        TrialId on;
        std::string path;
        friend bool operator==(const Dependence&, const Dependence&) = default;
    };
    void pin(TrialId id, const Trial& t);

    std::optional<TrialId> keeper_;
    bool ever_saved_ = false;
    std::uint64_t bytes_ = 0;
    std::vector<TrialId> doubtful_;
    // Derived.
    std::set<Evictable> evictable_;                ///< empty without checkpoint.max_bytes
    std::vector<std::optional<Evictable>> listed_; ///< by trial, its entry among them
    /// By trial, as far as needed: those of its checkpoints that others depend on, and the checkpoints of others that
    /// it depends on.
    std::vector<std::vector<Pin>> pins_;
    std::vector<std::vector<Dependence>> depends_;
};

} // namespace ranktune::tuner
