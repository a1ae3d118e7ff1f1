// SPDX-License-Identifier: Apache-2.0
// Halving: snapshots, and the check of its invariants. All else follows from the slots.
#include <cmath>
#include <vector>

#include "schedulers/checks.hpp"
#include "schedulers/halving/halving.hpp"

namespace ranktune::schedulers {
namespace {

constexpr std::uint8_t halving_version = 1;

// One byte per trial: its phase and these.
constexpr std::uint8_t phase_bits = 3;
constexpr std::uint8_t entered_flag = 4;
constexpr std::uint8_t failed_bit = 8;

void require_equal(const Ranking& kept, const Ranking& right, const char* what) {
    const auto entries = [](const Ranking& ranking) {
        std::vector<study::Ranked> all;
        ranking.for_each([&all](const study::Ranked& entry) { all.push_back(entry); });
        return all;
    };
    require(kept.valid() && entries(kept) == entries(right), "halving: a rung does not know ", what);
}

} // namespace

void Halving::snapshot(study::Encoder& out) const {
    out.u8(halving_version);
    out.varint(options_.eta);
    out.varint(options_.keep);
    out.varint(options_.brackets.size());
    for (const BracketShape& each : options_.brackets) {
        out.varint(each.trials);
        out.varint(each.levels.size());
        for (const base::Iteration level : each.levels) out.varint(level);
    }
    objective_.snapshot(out);
    out.varint(slots_.size());
    for (const Slot& at : slots_) {
        out.u8(static_cast<std::uint8_t>(static_cast<std::uint8_t>(at.phase) | (at.entered ? entered_flag : 0) |
                                         (at.failed ? failed_bit : 0)));
        out.u8(at.rung);
        out.varint(at.bracket);
        if (at.stands()) out.f64(at.score);
    }
}

void Halving::restore(study::Decoder& in) {
    const char* const who = options_.name.c_str();
    require_format(in.u8() == halving_version, who, "has another version");
    bool same = in.varint() == options_.eta && in.varint() == options_.keep;
    require_format(same && in.varint() == options_.brackets.size(), who, "has other brackets");
    for (const BracketShape& each : options_.brackets) {
        same = in.varint() == each.trials && in.varint() == each.levels.size();
        require_format(same, who, "has other brackets");
        for (const base::Iteration level : each.levels) require_format(in.varint() == level, who, "has other rungs");
    }
    objective_.restore(in);
    read_slots(in);
    derive();
    require_invariants(*this, who);
}

void Halving::read_slots(study::Decoder& in) {
    const char* const who = options_.name.c_str();
    slots_.assign(in.count(), Slot{});
    std::uint64_t bracket = 0;
    for (Slot& at : slots_) {
        const std::uint8_t bits = in.u8();
        require_format(bits < 2 * failed_bit, who, "has a phase that there is not");
        at.phase = static_cast<Phase>(bits & phase_bits);
        require_format(at.phase <= Phase::closed, who, "has a phase that there is not");
        at.entered = (bits & entered_flag) != 0;
        at.failed = (bits & failed_bit) != 0;
        at.rung = in.u8();
        const std::uint64_t here = in.varint();
        require_format(here == bracket || (here == bracket + 1 && &at != &slots_.front()), who,
                       "names an unknown bracket");
        bracket = here;
        at.bracket = static_cast<std::uint32_t>(here);
        const std::size_t rungs = shape(at.bracket).levels.size();
        require_format(at.rung < rungs, who, "names an unknown rung");
        if (at.stands()) at.score = in.f64();
        require_format(!std::isnan(at.score), who, "has a score that is no number");
        require_format(!at.stands() || (at.entered && at.rung + 1U < rungs), who, "lets a trial stand at no rung");
        require_format(!at.failed || at.phase == Phase::closed, who, "has a trial that failed and is open");
    }
}

/// Everything but the slots.
void Halving::derive() {
    brackets_.clear();
    runnable_.clear();
    for (RungView& each : views_) each = {each.iteration, 0, 0};
    for (std::uint32_t i = 0; i < slots_.size(); ++i) place(base::TrialId(i));
    for (std::size_t b = 0; b < brackets_.size(); ++b) refresh(b);
}

/// Counts a trial in the rungs of its bracket.
void Halving::place(base::TrialId trial) {
    const Slot& at = slots_[trial.value()];
    if (at.bracket >= brackets_.size()) brackets_.resize(at.bracket + 1U);
    Bracket& rungs = brackets_[at.bracket];
    if (rungs.empty()) rungs.resize(shape(at.bracket).levels.size());
    for (std::size_t i = 0; i <= at.rung; ++i) {
        const bool passed = i < at.rung;
        RungView& seen = view(shape(at.bracket).levels[i]);
        ++rungs[i].arrived;
        if (at.failed) ++rungs[i].failed;
        if (passed) ++seen.promoted;
        if (!passed && !at.entered) continue;
        ++rungs[i].entries;
        ++seen.entries;
    }
    Rung& here = rungs[at.rung];
    if (at.phase == Phase::heading) ++here.heading;
    if (at.stands()) here.standing.insert({at.score, trial});
}

void Halving::check_invariants() const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& at = slots_[i];
        require(at.stands() || at.score == 0.0, "halving: trial ", i, " stands at no rung and has a score");
        require(!at.stands() || (at.entered && !is_last(at)), "halving: trial ", i,
                " stands where it has not reported");
        require(!at.failed || at.phase == Phase::closed, "halving: trial ", i, " failed and is open");
    }
    Halving right = *this;
    right.derive();
    require(brackets_.size() == right.brackets_.size(), "halving: a bracket is missing");
    for (std::size_t b = 0; b < brackets_.size(); ++b) {
        require(b + 1 == brackets_.size() || brackets_[b].front().arrived == shape(b).trials ||
                    (brackets_[b].size() > 1 && brackets_[b][1].arrived > 0),
                "halving: bracket ", b, " is not full and takes no trials");
        for (std::size_t i = 0; i < brackets_[b].size(); ++i) {
            const Rung& kept = brackets_[b][i];
            const Rung& counted = right.brackets_[b][i];
            require(kept.arrived == counted.arrived && kept.heading == counted.heading &&
                        kept.entries == counted.entries && kept.failed == counted.failed,
                    "halving: rung ", i, " of bracket ", b, " counts its trials wrong");
            require_equal(kept.standing, counted.standing, "who is paused there");
        }
    }
    require(runnable_ == right.runnable_, "halving: it does not know which brackets have somebody to promote");
    for (std::size_t i = 0; i < views_.size(); ++i)
        require(views_[i].entries == right.views_[i].entries && views_[i].promoted == right.views_[i].promoted,
                "halving: the rungs of all brackets are counted wrong");
}

} // namespace ranktune::schedulers
