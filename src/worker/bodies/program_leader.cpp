// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_leader.hpp"

#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {

using End = ProgramOrder::End;

ProgramLeader::Duration ProgramLeader::alone_grace() const {
    constexpr Duration least = std::chrono::milliseconds(100);
    if (!known_alone_) return limits_.alone_grace;
    return std::min(std::max<Duration>(longest_ / 10, least), limits_.alone_grace);
}

void ProgramLeader::stop(study::Verb verb, bool save, Time now, bool exploits, bool pending, bool needed) {
    pending_ = pending;
    if (pending) order_.wanted = order_.decided + 1;
    order_.verb = verb;
    order_.save = save;
    order_.needed = needed;
    exploits_ = exploits;
    stopped_at_ = heard_ = now;
}

void ProgramLeader::saved(Time at) {
    if (std::exchange(saved_, true)) return;
    heard_ = std::max(heard_, at);
    if (order_.end == End::deliver) delivered_at_ = at; // the grace to end begins now
}

void ProgramLeader::done(Time now) {
    if (!done_at_) done_at_ = now;
}

void ProgramLeader::step(Time now, std::span<const RankFacts> ranks) {
    if (order_.end == End::go_on && stopped_at_) begin_end(now, ranks);
    if (order_.end == End::deliver || order_.end == End::deliver_to_first) watch_end(now, ranks);
    give_up_if_late(now);
    if (order_.end == End::go_on && done_at_ && now - *done_at_ >= limits_.abort_grace) order_.end = End::signal;
    const bool is_settled = order_.end == End::signal || order_.end == End::over || order_.end == End::keep;
    if (!is_settled) check_timeout(now, ranks);
}

void ProgramLeader::begin_end(Time now, std::span<const RankFacts> ranks) {
    if (is_incomplete(ranks)) return;
    if (!limits_.hears) {
        order_.end = End::signal;
        return;
    }
    bool all_here = true;
    bool only_silent = true; // all missing ranks have never reported
    for (const RankFacts& rank : ranks) {
        if (rank.ended || rank.reports > order_.decided) continue;
        all_here = false;
        only_silent = only_silent && rank.reports == 0;
    }
    const auto waits = [&](const RankFacts& rank) {
        return !rank.ended && rank.exploits && rank.reports == order_.decided + 1;
    };
    if (all_here && exploits_ && std::ranges::all_of(ranks, waits)) {
        order_.end = End::keep;
    } else if (all_here) {
        order_.end = End::deliver;
        delivered_at_ = now;
    } else if (only_silent && now - *stopped_at_ >= alone_grace()) {
        alone_ = true;
        order_.end = order_.save ? End::deliver_to_first : End::signal;
        delivered_at_ = now;
    }
}

void ProgramLeader::watch_end(Time now, std::span<const RankFacts> ranks) {
    const bool ignored =
        std::ranges::any_of(ranks, [&](const RankFacts& rank) { return rank.reports > order_.decided + 1; });
    const bool saving = is_saving() && !ranks.front().ended;
    if (order_.end == End::deliver_to_first && (saved_ || ranks.front().ended)) order_.end = End::signal;
    if (ignored || (!saving && now - *delivered_at_ >= limits_.abort_grace)) order_.end = End::signal;
}

bool ProgramLeader::is_saving() const {
    return (order_.end == End::deliver || order_.end == End::deliver_to_first) && order_.save && !saved_;
}

bool ProgramLeader::is_incomplete(std::span<const RankFacts> ranks) const {
    return pending_ && order_.end == End::go_on && std::ranges::any_of(ranks, [&](const RankFacts& rank) {
               return !rank.ended && rank.reports > order_.decided && rank.settled != order_.wanted;
           });
}

std::optional<ProgramLeader::Time> ProgramLeader::waits_since() const {
    if (is_saving()) return delivered_at_;
    if (order_.end != End::go_on || done_at_) return std::nullopt;
    return stopped_at_ ? stopped_at_ : asked_at_;
}

std::string ProgramLeader::waits_for(std::span<const RankFacts> ranks) const {
    if (is_saving()) return "rank 0 (to save its state)";
    std::string text;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const bool has_reported = ranks[r].reports > order_.decided;
        if (ranks[r].ended || (has_reported && (!pending_ || ranks[r].settled == order_.wanted))) continue;
        text +=
            (text.empty() ? "rank " : ", rank ") + std::to_string(r) +
            (has_reported ? " (to complete its checkpoint)" : " (report " + std::to_string(ranks[r].reports + 1) + ")");
    }
    return text;
}

ProgramLeader::Duration ProgramLeader::patience() const {
    // One iteration may be slow for a reason; three are too long.
    return is_saving() || pending_ ? saving_patience() : limits_.abort_grace + 3 * longest_;
}

void ProgramLeader::give_up_if_late(Time now) {
    const auto since = waits_since();
    if (!since || now - *since < patience()) return;
    in_vain_ = true;
    order_.end = End::signal;
}

void ProgramLeader::check_timeout(Time now, std::span<const RankFacts> ranks) const {
    if (limits_.iteration_timeout && in_iteration_ && !stopped_at_ && !done_at_ &&
        now - iteration_began_ >= *limits_.iteration_timeout)
        throw base::Error("iteration " + std::to_string(order_.decided + 1) + " of this attempt took longer than " +
                          study::duration_text(std::chrono::duration_cast<base::Duration>(*limits_.iteration_timeout)) +
                          " (failure.iteration_timeout)");
    if (!limits_.report_timeout || now - heard_ < *limits_.report_timeout) return;
    if (std::ranges::all_of(ranks, [](const RankFacts& rank) { return rank.ended; })) return;
    std::string text = "no sign of progress for " +
                       study::duration_text(std::chrono::duration_cast<base::Duration>(*limits_.report_timeout)) +
                       " (failure.report_timeout); reports made:";
    for (std::size_t r = 0; r < ranks.size(); ++r)
        text += (r == 0 ? " " : ", ") + std::to_string(ranks[r].reports) + " by rank " + std::to_string(r) +
                (ranks[r].ended ? " (ended)" : "");
    throw DisturbedError(text);
}

} // namespace ranktune::worker
