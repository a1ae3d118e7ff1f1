// SPDX-License-Identifier: Apache-2.0
// When trials fail one after the other before they report, the cause lies outside of them: the study ends resumably,
// and none of them counts as failed.

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "ranktune/base/text.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {
namespace {

/// Beside the logarithm of the number of trials: where one configuration in three fails at once, chance makes such a
/// row in one study of half a million; where every second one does, in one of a thousand.
constexpr std::size_t basic_row = 10;

/// How many trials may run at the same time.
std::size_t groups_of(const study::StudySpec& spec, std::size_t ranks) {
    const std::size_t smallest = spec.resources.ranks_parameter.empty() ? spec.resources.ranks : 1;
    const std::size_t fit = std::max<std::size_t>(1, ranks / smallest);
    // What a deterministic study decides does not depend on its ranks.
    if (spec.deterministic) return spec.max_concurrent;
    return spec.max_concurrent == 0 ? fit : std::min<std::size_t>(fit, spec.max_concurrent);
}

} // namespace

std::size_t failures_to_drain(const study::StudySpec& spec, std::size_t ranks) {
    if (spec.failure.in_a_row) return *spec.failure.in_a_row;
    const std::uint32_t last = std::max(spec.num_trials, 1U) - 1;
    return basic_row + static_cast<std::size_t>(std::bit_width(last)) + groups_of(spec, ranks);
}

bool blames_surroundings(Reason reason) { return reason == Reason::unstarted || reason == Reason::failures_in_a_row; }

// ---- mutators ----

void Tuner::Impl::begin_silence(TrialId id) { trial(id).unheard = true; }

/// A first report tells how things were when its trial was started, and nothing about those that were started later.
void Tuner::Impl::end_silence(TrialId id) {
    TrialState& t = trial(id);
    if (!t.unheard) return;
    t.unheard = false;
    // (Time is no part of what a deterministic study decides. Nobody has reported yet: `since` is the start.)
    std::erase_if(state.in_a_row, [&](TrialId failed) {
        return spec.deterministic ? failed < id : state.trial(failed).since <= t.since;
    });
}

// ---- decisions ----

/// Ends the study when the row is long enough, and takes back the failures in it; while it ends for such a cause, also
/// those that follow.
void Tuner::Impl::forgive_failures_in_a_row(StudyTime now, Output& out) {
    const bool goes_on = !state.draining && state.in_a_row.size() < failures_to_drain(spec, ledger.alive());
    if (goes_on || (state.draining && !blames_surroundings(state.drain_reason))) return;
    const std::vector<TrialId> failed = state.in_a_row;
    if (!state.draining) drain(Reason::failures_in_a_row, row_message(), now, out);
    for (const TrialId id : failed) reopen(id, false, now, out);
}

/// What most of the failures in the row said, once.
std::string Tuner::Impl::row_message() const {
    struct Said {
        std::uint64_t words = 0;
        std::size_t times = 0;
        TrialId first;
    };
    std::vector<Said> all;
    for (const TrialId id : state.in_a_row) {
        const std::uint64_t words = digest_of_words(base::gist(state.trial(id).message));
        const auto known = std::find_if(all.begin(), all.end(), [&](const Said& said) { return said.words == words; });
        if (known == all.end())
            all.push_back({words, 1, id});
        else
            ++known->times;
    }
    const auto most = std::max_element(all.begin(), all.end(),
                                       [](const Said& one, const Said& other) { return one.times < other.times; });
    const std::string number = std::to_string(state.in_a_row.size());
    const std::string who = most->times == state.in_a_row.size() ? "They" : std::to_string(most->times) + " of them";
    const std::string words = base::gist(without_place(state.trial(most->first).message));
    return number + " trials in a row failed before their first report. " + who + " said: " + words +
           ". This looks like a fault of their surroundings, so none of them counts as failed: mend it, and the same "
           "command tries them again. When the configurations are at fault, a larger failure.in_a_row (now " +
           std::to_string(failures_to_drain(spec, ledger.alive())) + ") lets the study go on";
}

} // namespace ranktune::tuner
