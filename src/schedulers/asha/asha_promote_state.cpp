// SPDX-License-Identifier: Apache-2.0
// AshaPromote: snapshots and the check of its invariants.
#include <algorithm>

#include "schedulers/asha/asha_promote.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {

constexpr std::uint8_t promote_version = 1;

// One byte per trial; the rung and, with several brackets, the bracket follow.
constexpr std::uint8_t entered_bit = 1;
constexpr std::uint8_t paused_bit = 2;
constexpr std::uint8_t closed_bit = 4;
constexpr std::uint8_t finishing_bit = 8;

} // namespace

// The scores of trials at a rung and the heaps of paused trials are not written: they follow from the entries.
void AshaPromote::snapshot(study::Encoder& out) const {
    out.u8(promote_version);
    objective_.snapshot(out);
    out.varint(slots_.size());
    for (const Slot& at : slots_) {
        out.u8(static_cast<std::uint8_t>((at.entered ? entered_bit : 0) | (at.paused ? paused_bit : 0) |
                                         (at.closed ? closed_bit : 0) | (at.finishing ? finishing_bit : 0)));
        out.u8(at.rung);
        if (first_.size() > 1) out.u8(at.bracket);
    }
    out.varint(rungs_.size());
    for (const Rung& each : rungs_) {
        out.varint(each.level);
        out.varint(each.promoted);
        several() ? each.compared.snapshot(out) : each.entries.snapshot(out);
    }
    out.varint(completed_);
}

void AshaPromote::restore(study::Decoder& in) {
    require_format(in.u8() == promote_version, "asha", "has another version");
    objective_.restore(in);
    read_slots(in);
    read_rungs(in);
    completed_ = in.varint();
    require_invariants(*this, "asha");
}

void AshaPromote::read_slots(study::Decoder& in) {
    slots_.assign(in.count(), Slot{});
    active_ = 0;
    finishing_ = 0;
    for (Slot& at : slots_) {
        const std::uint8_t bits = in.u8();
        at.entered = (bits & entered_bit) != 0;
        at.paused = (bits & paused_bit) != 0;
        at.closed = (bits & closed_bit) != 0;
        at.finishing = (bits & finishing_bit) != 0;
        at.rung = in.u8();
        at.bracket = first_.size() > 1 ? in.u8() : std::uint8_t{0};
        require_format(at.bracket < first_.size(), "asha", "names an unknown bracket");
        const std::size_t end = at.bracket + 1U < first_.size() ? first_[at.bracket + 1U] : rungs_.size();
        require_format(first_[at.bracket] + at.rung < end, "asha", "names an unknown rung");
        if (!at.paused && !at.closed) ++active_;
        if (at.finishing) ++finishing_;
    }
}

void AshaPromote::read_rungs(study::Decoder& in) {
    require_format(in.varint() == rungs_.size(), "asha", "has other rungs");
    for (Rung& each : rungs_) {
        require_format(in.varint() == each.level, "asha", "has other rungs");
        each.promoted = in.varint();
        if (several()) {
            each.compared.restore(in);
            for (const base::TrialId trial : each.compared.order())
                require_format(trial.value() < slots_.size(), "asha", "names an unknown trial");
            rank_again(each);
            continue;
        }
        each.entries.restore(in);
        each.paused.clear();
        each.entries.for_each([this, &each](const study::Ranked& entry) {
            require_format(entry.trial.value() < slots_.size(), "asha", "names an unknown trial");
            Slot& at = slots_[entry.trial.value()];
            if (!at.entered || at.bracket != each.bracket || at.rung != each.index) return;
            at.score = entry.score;
            if (at.paused) each.paused.push(entry);
        });
        refresh(each);
        rebuild_reach(each);
    }
}

void AshaPromote::check_invariants() const {
    check_slots();
    check_rungs();
}

void AshaPromote::check_slots() const {
    std::uint64_t active = 0;
    std::uint64_t finishing = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& at = slots_[i];
        require(at.bracket < first_.size(), "asha: trial ", i, " is in an unknown bracket");
        const bool last = rung(at).last;
        require(!at.paused || (at.entered && !last), "asha: trial ", i, " is paused and stands at no rung");
        require(!at.paused || !at.closed, "asha: trial ", i, " is paused and closed");
        require(!at.finishing || (!at.closed && !at.paused), "asha: trial ", i,
                " is finishing and has ended or is paused");
        require(at.entered || at.score == 0.0, "asha: trial ", i, " stands at no rung and has a score");
        if (!at.paused && !at.closed) ++active;
        if (at.finishing) ++finishing;
    }
    require(active == active_, "asha: the count of active trials is wrong");
    require(finishing == finishing_, "asha: the count of finishing trials is wrong");
}

/// Every trial is entered exactly once at each rung of its bracket below its own, once at its own if it stands there,
/// and nowhere else.
void AshaPromote::check_rungs() const {
    struct Count {
        std::size_t passed = 0;
        std::size_t standing = 0;
        std::size_t paused = 0;
    };
    std::vector<Count> counts(rungs_.size());
    for (const Slot& at : slots_) {
        const std::size_t first = first_[at.bracket];
        for (std::size_t k = 0; k < at.rung; ++k) ++counts[first + k].passed;
        if (at.entered) ++counts[first + at.rung].standing;
        if (at.paused) ++counts[first + at.rung].paused;
    }
    MarkedTrials marked(slots_.size());
    std::uint64_t reached_ceiling = 0;
    for (std::size_t i = 0; i < rungs_.size(); ++i) {
        const Rung& each = rungs_[i];
        const auto holds = [&each](bool is, const char* what) {
            require(is, "asha: rung ", each.level, " of bracket ", unsigned{each.bracket}, " ", what);
        };
        holds(each.entries.valid(), "mixes up the best and the rest");
        holds(each.promoted == counts[i].passed, "counts its promotions wrong");
        const std::size_t came = counts[i].passed + counts[i].standing;
        holds(several() ? each.compared.size() <= came && each.entries.size() == each.compared.size()
                        : each.entries.size() == came,
              "counts its entries wrong");
        marked.clear();
        each.entries.for_each([&](const study::Ranked& entry) {
            holds(marked.mark(entry.trial.value()), "holds a trial twice or an unknown one");
            const Slot& at = slots_[entry.trial.value()];
            holds(at.bracket == each.bracket && (at.rung > each.index || (at.rung == each.index && at.entered)),
                  "holds a trial that has not been there");
            holds(at.rung != each.index || at.score == entry.score, "gives a trial another score than it has");
        });
        if (each.last) reached_ceiling += came;

        marked.clear();
        std::size_t paused = 0;
        for (const auto& entry : each.paused.items()) {
            if (waits_at(entry, each) && marked.mark(entry.trial.value())) ++paused;
        }
        holds(several() ? paused <= counts[i].paused : paused == counts[i].paused,
              "would never promote a trial that is paused there");
        holds(each.paused.valid(), "has its paused trials out of order");
        holds(!each.promotable || waits_at(each.paused.top(), each), "would promote a trial that has left");
        holds(each.promotable == (top_among_best(each) && may_promote(each, each.entries.size())),
              "does not know whether it can promote");
    }
    for (const Rung& each : rungs_) {
        require(each.within_reach.valid() &&
                    each.within_reach.size() == (each.last || several() ? 0 : std::min(reach(), each.entries.size())),
                "asha: rung ", each.level, " does not know what is within reach");
    }
    require(completed_ <= reached_ceiling, "asha: more trials completed than reached the ceiling");
}

} // namespace ranktune::schedulers
