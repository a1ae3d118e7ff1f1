// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the weights of trials have been through, followed from attempt to attempt by what each was started from. For
// comparison with what the core tells of takeovers (tuner/lineage.hpp).

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulate/cluster/memory_journal.hpp"
#include "tuner/lineage.hpp"

namespace ranktune::simulate {

/// Configurations, and for how many iterations weights were trained with each, in this order.
using Training = std::vector<std::pair<space::Configuration, base::Iteration>>;

class Weights {
  public:
    /// Every record of a journal, in its order.
    void see(const study::Record& record);
    /// Of the trial's newest report.
    [[nodiscard]] const Training& newest(base::TrialId trial) const { return members_.at(trial).newest; }
    [[nodiscard]] const Training& saved_in(const std::string& path) const { return saved_.at(path); }

  private:
    struct Attempt {
        Training before;
        base::Iteration from = 0; ///< of the trial
        space::Configuration configuration;
    };
    struct Member {
        std::vector<space::Configuration> configurations; ///< of each generation
        std::vector<base::Iteration> taken_at;            ///< of each generation but the first
        std::map<base::AttemptId, Attempt> attempts;
        Training newest;
    };
    [[nodiscard]] static Training trained(const Attempt& attempt, base::Iteration iteration);

    std::map<base::TrialId, Member> members_;
    std::map<std::string, Training> saved_; ///< by the path of a checkpoint
};

/// Compares at every report and checkpoint of the journal, and of the best reports and the checkpoints that are left at
/// its end. Returns what differs, in words.
[[nodiscard]] std::vector<std::string> wrong_schedules(const MemoryJournal& journal, const study::StudySpec& spec);

} // namespace ranktune::simulate
