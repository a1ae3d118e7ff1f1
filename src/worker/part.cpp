// SPDX-License-Identifier: Apache-2.0
#include "worker/part.hpp"

#include <algorithm>

namespace ranktune::worker {

using study::AttemptOutcome;

std::optional<Part> Part::make(const study::StartTrial& start, base::Rank self, base::StudyTime now) {
    const auto at = std::find(start.ranks.begin(), start.ranks.end(), self);
    if (at == start.ranks.end()) return std::nullopt;
    Part part;
    part.assignment = {start, static_cast<int>(at - start.ranks.begin())};
    part.key = comm::key_of(start);
    part.received = now;
    if (part.leads()) {
        part.members.resize(start.ranks.size());
        for (std::size_t i = 0; i < start.ranks.size(); ++i) part.members[i].rank = start.ranks[i];
    }
    return part;
}

Part::Member* Part::member(base::Rank rank) {
    const auto at = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.rank == rank; });
    return at == members.end() ? nullptr : &*at;
}

bool Part::may_go() const {
    return stage == Stage::ready && !abandoned &&
           std::all_of(members.begin(), members.end(), [](const Member& m) { return m.alive && m.ready && !m.over; });
}

bool Part::all_over() const {
    return std::all_of(members.begin(), members.end(), [](const Member& m) { return m.over || !m.alive; });
}

void Part::close() {
    for (Member& m : members) {
        if (!m.over) m.outcome = AttemptOutcome::lost;
        m.over = true;
    }
}

void Part::abandon(const std::vector<base::Rank>& living) {
    abandoned = true;
    for (Member& m : members) m.alive = std::find(living.begin(), living.end(), m.rank) != living.end();
}

comm::GroupOver Part::summary() const {
    comm::GroupOver summary;
    summary.over.trial = key.trial;
    summary.over.attempt = key.attempt;
    summary.over.incarnation = key.incarnation;
    summary.over.outcome = members.front().outcome;
    const base::StudyTime training = progressed.value_or(ended);
    summary.starting_s = base::to_seconds(training - received) + program_start_s;
    // `trained_s` ends with the last report; after it the trial waited for verdicts.
    summary.training_s = trained_s.value_or(base::to_seconds(ended - training)) - program_start_s;
    if (abandoned) {
        summary.over.outcome = AttemptOutcome::lost;
        return summary;
    }
    // A rank that heard of another's failure does not know its kind; one that is lost and says why does.
    const bool cause_is_loss = std::any_of(members.begin(), members.end(), [](const Member& m) {
        return m.outcome == AttemptOutcome::lost && !m.failure.empty();
    });
    for (const AttemptOutcome worst :
         {AttemptOutcome::unstarted, AttemptOutcome::unreachable, AttemptOutcome::unreadable, AttemptOutcome::unsaved,
          AttemptOutcome::stateless, AttemptOutcome::oversized, AttemptOutcome::disturbed, AttemptOutcome::permanent,
          AttemptOutcome::failed, AttemptOutcome::lost}) {
        bool found = false;
        for (const Member& m : members) {
            if (m.outcome != worst) continue;
            if (cause_is_loss && worst == AttemptOutcome::failed && m.failure.empty()) continue;
            found = true;
            if (summary.over.failure.empty()) summary.over.failure = m.failure;
        }
        if (found) {
            summary.over.outcome = worst;
            return summary;
        }
    }
    summary.over.failure = members.front().failure;
    summary.unread = unread;
    return summary;
}

} // namespace ranktune::worker
