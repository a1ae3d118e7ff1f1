// SPDX-License-Identifier: Apache-2.0
// AshaStop: snapshots and the check of its invariants.
#include <bit>

#include "schedulers/asha/asha_stop.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {
constexpr std::uint8_t stop_version = 1;
} // namespace

void AshaStop::snapshot(study::Encoder& out) const {
    out.u8(stop_version);
    objective_.snapshot(out);
    out.varint(slots_.size());
    for (const Slot& at : slots_) {
        out.varint(at.entered);
        out.u8(static_cast<std::uint8_t>(at.closed ? 1 : 0));
        if (options_.brackets > 1) out.u8(at.bracket);
    }
    out.varint(rungs_.size());
    for (const Rung& each : rungs_) {
        out.varint(each.level);
        out.varint(each.entries);
        out.varint(each.promoted);
        several() ? each.compared.snapshot(out) : each.ranked.snapshot(out);
    }
}

void AshaStop::restore(study::Decoder& in) {
    require_format(in.u8() == stop_version, "asha", "has another version");
    objective_.restore(in);
    slots_.assign(in.count(), Slot{});
    for (Slot& at : slots_) {
        at.entered = in.varint();
        at.closed = in.boolean();
        at.bracket = options_.brackets > 1 ? in.u8() : std::uint8_t{0};
    }
    require_format(in.varint() == rungs_.size(), "asha", "has other rungs");
    for (Rung& each : rungs_) {
        require_format(in.varint() == each.level, "asha", "has other rungs");
        each.entries = in.varint();
        each.promoted = in.varint();
        several() ? each.compared.restore(in) : each.ranked.restore(in);
    }
    require_invariants(*this, "asha");
}

void AshaStop::check_invariants() const {
    std::vector<std::size_t> marks(rungs_.size(), 0);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& at = slots_[i];
        require(at.bracket + 1U < first_.size(), "asha: trial ", i, " is in an unknown bracket");
        const std::size_t count = rungs_of(at.bracket);
        const auto highest = static_cast<std::size_t>(std::bit_width(at.entered));
        require(highest <= count, "asha: trial ", i, " was at an unknown rung");
        const auto passed = static_cast<std::size_t>(std::popcount(at.entered));
        require(options_.rule == Rule::ray || passed == highest, "asha: trial ", i, " skipped a rung");
        for (std::size_t k = 0; k < highest; ++k) marks[first_[at.bracket] + k] += at.entered >> k & 1U;
    }
    MarkedTrials marked(slots_.size());
    for (std::size_t b = 0; b + 1 < first_.size(); ++b) {
        for (std::size_t i = first_[b]; i < first_[b + 1]; ++i) {
            const Rung& each = rungs_[i];
            const auto holds = [&each, b](bool is, const char* what) {
                require(is, "asha: rung ", each.level, " of bracket ", b, " ", what);
            };
            holds(each.ranked.valid(), "mixes up the best and the rest");
            holds(each.promoted <= each.entries, "let more trials go on than were there");
            if (several()) {
                holds(each.compared.size() <= each.entries && each.entries <= marks[i], "counts its entries wrong");
            } else if (options_.rule == Rule::ray) { // all entries, and NaN is not ranked
                holds(each.ranked.size() <= each.entries && each.entries == marks[i], "counts its entries wrong");
            } else { // a skipped rung is marked, and has no entry
                holds(each.ranked.size() == each.entries && each.entries <= marks[i], "counts its entries wrong");
            }
            marked.clear();
            each.ranked.for_each([&](const study::Ranked& entry) {
                holds(marked.mark(entry.trial.value()), "holds a trial twice or an unknown one");
                const Slot& at = slots_[entry.trial.value()];
                holds(at.bracket == b && (at.entered >> (i - first_[b]) & 1U) != 0,
                      "holds a trial that has not been there");
            });
        }
    }
}

} // namespace ranktune::schedulers
