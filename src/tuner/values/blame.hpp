// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the cause of failures: what deaths of the job, failures on hosts and failures in a row say about trials, hosts,
// their GPUs and the surroundings of the study.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tuner/rules/outcomes.hpp"
#include "tuner/values/placement.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

/// Deaths of the job at which a trial ran before it is suspected.
inline constexpr std::uint32_t deaths_to_suspect = 2;
/// Deaths of the job while a suspect was tried alone, after which it is closed as failed.
inline constexpr std::uint32_t deaths_to_convict = 2;
/// Different trials that fail in a row on a host, or a GPU, before it is taken out of service.
inline constexpr std::size_t failures_to_retire = 3;
/// Different failure messages that are remembered in an incarnation.
inline constexpr std::size_t max_failure_words = 256;
/// Trials that fail before any trial has reported, after which the study stops; or failure.in_a_row, if that is more.
inline constexpr std::uint64_t max_early_failures = 8;

/// What is known of a node of this incarnation, or of a GPU.
struct PlaceRecord {
    bool well = false; ///< a trial has reported from here
    struct Failure {
        TrialId trial;
        std::uint64_t words = 0;          ///< digest of the message without digits
        bool unstarted = false;           ///< ranktune could not set the attempt up
        std::uint32_t device = no_device; ///< the GPU where it failed, if that is known
        static void fields(auto&& each, auto& r) { each(r.trial, r.words, r.unstarted, r.device); }
    };
    /// Failures in a row with messages that no other host (or GPU) had: of different trials, and every attempt that
    /// could not be set up.
    std::vector<Failure> failed;
    static void fields(auto&& each, auto& r) { each(r.well, r.failed); }
};

/// Failure messages of this incarnation: a message from several hosts is no host's fault, and one from several GPUs no
/// GPU's.
struct FailureWords {
    std::uint64_t digest = 0;
    std::uint32_t host = 0;           ///< the first host that had it
    bool elsewhere = false;           ///< another host had it, too
    std::uint32_t device = no_device; ///< the first GPU that had it
    bool on_others = false;           ///< another GPU had it, too
    static void fields(auto&& each, auto& r) { each(r.digest, r.host, r.elsewhere, r.device, r.on_others); }
};

class Blame {
  public:
    [[nodiscard]] const std::vector<PlaceRecord>& hosts() const { return hosts_; }     ///< as in Placement::hosts()
    [[nodiscard]] const std::vector<PlaceRecord>& devices() const { return devices_; } ///< as in Placement::devices()
    /// Trials that ran at too many deaths of the job and are not over.
    [[nodiscard]] const std::set<TrialId>& suspects() const { return suspects_; }
    [[nodiscard]] std::uint64_t early_failures() const { return early_failures_; }
    /// Trials that failed before a report, with no report of any trial since the first of them failed.
    [[nodiscard]] const std::vector<TrialId>& in_a_row() const { return in_a_row_; }
    /// Deaths of the job while a suspect was tried.
    [[nodiscard]] std::uint64_t deaths_alone() const { return deaths_alone_; }
    /// A host on which one trial after the other fails while trials run well elsewhere is at fault. (If ranktune itself
    /// fails there, no trial needs to run well elsewhere: a configuration cannot be the cause.) A host with several
    /// GPUs is not bad when all failed on one of them.
    [[nodiscard]] bool is_bad(std::uint32_t host, const Placement& placement) const;
    /// The same for a GPU. The only one of its host is never at fault: its host is.
    [[nodiscard]] bool is_bad_device(std::uint32_t device, const Placement& placement) const;
    /// The trials that failed at this place, each once.
    [[nodiscard]] static std::vector<TrialId> failed_on(const PlaceRecord& place);
    /// Whether the trial could not be set up at this place, with a message that no other one had.
    [[nodiscard]] static bool alone_says(const PlaceRecord& place, TrialId trial);
    /// The message about failures in a row, with their most frequent cause.
    [[nodiscard]] std::string row_message(const Trials& trials, std::size_t limit) const;
    /// Whether the trial failed before at this iteration with this message. A third attempt would fail the same way.
    [[nodiscard]] static bool is_the_same(const Trial& t, Iteration at, const std::string& message);

    // ---- mutators
    void begin(std::size_t hosts, std::size_t devices);
    void forget_row() { early_failures_ = 0, in_a_row_.clear(); }
    /// No report of the trial has counted yet.
    static void begin_silence(Trial& t) { t.unheard = true; }
    /// The first report of the trial takes effect (see `unheard`): it clears the trials of the row that were started no
    /// later (`began_before`). Call before the times of the trial change.
    void heard(Trial& t, const Trials& trials, const std::function<bool(TrialId)>& began_before);
    void got_on(TrialId id, Trial& t, Iteration iteration, const Placement& placement);
    void attempt_ended(TrialId id, Trial& t, AttemptOutcome outcome, const Failure& failure,
                       const Placement& placement);
    void note_failure(Trial& t, Iteration at, const std::string& message);
    void closed(TrialId id, const Trial& t, TrialPhase phase, Reason reason, bool any_report);
    void reopened(TrialId id, Trial& t);
    void job_died(Trials& trials);
    void retired(std::uint32_t host) { hosts_[host].failed.clear(); }
    void retired_device(std::uint32_t device, const Placement& placement);
    static void forgive(Trial& t);

    static void fields(auto&& each, auto& r) {
        each(r.hosts_, r.devices_, r.words_, r.early_failures_, r.in_a_row_, r.deaths_alone_);
    }
    void restored(const Trials& trials);
    /// Throws std::logic_error naming what does not hold.
    void check_invariants(const Trials& trials) const;

  private:
    void clear_of_suspicion(TrialId id, Trial& t);
    void note(TrialId id, AttemptOutcome outcome, const Failure& failure, std::span<const Rank> ranks,
              const Placement& placement);

    std::vector<PlaceRecord> hosts_;
    std::vector<PlaceRecord> devices_;
    std::vector<FailureWords> words_; ///< at most max_failure_words
    std::uint64_t early_failures_ = 0;
    std::vector<TrialId> in_a_row_;
    std::uint64_t deaths_alone_ = 0;
    std::set<TrialId> suspects_; ///< derived
};

} // namespace ranktune::tuner
