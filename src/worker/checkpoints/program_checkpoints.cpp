// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/program_checkpoints.hpp"

#include <filesystem>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {

using study::AttemptOutcome;
namespace fs = std::filesystem;

ProgramCheckpoints::ProgramCheckpoints(const AttemptParts& parts, const ProgramRank& rank, const ProgramLeader& leader)
    : parts_(parts),
      rank_(rank),
      leader_(leader),
      names_(rank.started().folders, parts.setting.program->host, rank.started().began) {}

void ProgramCheckpoints::step(std::span<const RankFacts> ranks, bool ends) {
    take_asked(ranks, ends);
    take_wanted(ranks, ends);
}

// ---- saved before the program goes on

void ProgramCheckpoints::ask(const TrialPoint& point, std::uint64_t report) {
    parts_.loop.checkpoints().taken(point);
    asked_ = {point, report, Clock::now()};
}

/// Takes over what the program has saved before it went on, once every rank has saved its part. A failed copy, and a
/// rank that has gone on without saving, are only reported.
void ProgramCheckpoints::take_asked(std::span<const RankFacts> ranks, bool ends) {
    if (!asked_) return;
    const ProgramRank::OnTheWay& said = rank_.on_the_way();
    const bool has_said = said.report == asked_->report;
    const auto goes_on = [&](const RankFacts& rank) { return rank.ended || rank.reports > asked_->report; };
    const bool others_are_silent = has_said && Clock::now() - said.at >= leader_.alone_grace(); // only rank 0 reports
    std::string why = has_said ? said.failed : "";
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankFacts& rank = ranks[r];
        if (rank.saved >= asked_->report || (rank.reports == 0 && others_are_silent)) continue;
        const bool lacks = rank.unsaved >= asked_->report;
        if (!lacks && !goes_on(rank)) return limit_best_save(rank, r);
        if (why.empty())
            why = "rank " + std::to_string(r) + " of the program " +
                  (lacks ? "could not save its part of the state; the log of the trial says why"
                         : "was told to save its state, and did not say that it has");
    }
    const Expected state = *std::exchange(asked_, std::nullopt);
    const auto seconds_until = [&](Clock::time_point end) {
        return std::chrono::duration<double>(end - state.since).count();
    };
    try {
        if (why.empty() &&
            !lies_in(rank_.started().folder_of(state.point.iteration), rank_.started().path_of(said.checkpoint)))
            why = "the program, which goes on, named a checkpoint outside of the folder that it was given: " +
                  said.checkpoint;
        if (!why.empty()) throw base::Error(why);
        if (const auto link = look_at_links(said.checkpoint))
            throw base::Error("the program, which goes on, saved a link to what it may change: '" + link->path +
                              "' leads to '" + link->target + "'; save a copy");
        adopt(said.checkpoint, state.point);
    } catch (const base::Error& error) {
        if (!ends) parts_.loop.checkpoints().missed(error.what());
    }
    const auto now = Clock::now();
    parts_.loop.checkpoints().measured(seconds_until(has_said ? said.at : now), seconds_until(now));
}

/// The state of the best report is what the study is for. As at the end of the trial, a program that does not come back
/// from saving it is given up, and the trial has not failed.
void ProgramCheckpoints::limit_best_save(const RankFacts& rank, std::size_t number) const {
    if (!leader_.order().is_best || rank.reports != asked_->report) return;
    if (Clock::now() - asked_->since < leader_.saving_patience()) return;
    const auto limit = std::chrono::round<std::chrono::milliseconds>(leader_.saving_patience());
    throw CheckpointError(
        AttemptOutcome::unsaved,
        while_saving(asked_->point.iteration,
                     "waited " + study::duration_text(limit) + " in vain for rank " + std::to_string(number) +
                         "; the program is stopped by signal (a longer run.abort_grace makes the "
                         "wait longer)"),
        static_cast<std::uint32_t>(number));
}

// ---- named before it is complete

void ProgramCheckpoints::want(const TrialPoint& point, std::uint64_t report, const std::string& checkpoint) {
    parts_.loop.checkpoints().taken(point);
    wanted_ = {point, report, Clock::now(), checkpoint};
}

void ProgramCheckpoints::named(const std::string& checkpoint) {
    const auto path = [&](const std::string& each) { return rank_.started().path_of(each); };
    if (wanted_ && path(checkpoint) == path(wanted_->checkpoint)) wanted_->again = true;
}

/// Takes over what the program has gone on without, once it is complete. If it never is, the trial only misses it.
void ProgramCheckpoints::take_wanted(std::span<const RankFacts> ranks, bool ends) {
    if (!wanted_) return;
    if (leader_.order().wanted != wanted_->report) return wanted_.reset(); // the trial ends with a newer state
    const auto trouble = trouble_with_wanted(ranks);
    if (trouble && trouble->empty()) return;
    const Expected state = *std::exchange(wanted_, std::nullopt);
    try {
        if (trouble) throw base::Error(*trouble);
        adopt(state.checkpoint, state.point);
    } catch (const base::Error& error) {
        if (!ends) parts_.loop.checkpoints().missed(error.what());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - state.since).count();
    parts_.loop.checkpoints().measured(0.0, seconds);
}

/// Nothing: the checkpoint is complete. An empty text: not yet.
std::optional<std::string> ProgramCheckpoints::trouble_with_wanted(std::span<const RankFacts> ranks) const {
    if (wanted_->again) return "the program named the same path again before its checkpoint was complete";
    const auto waited = Clock::now() - wanted_->since;
    bool complete = true;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankFacts& rank = ranks[r];
        const std::string who = "rank " + std::to_string(r) + " of the program ";
        if (rank.settled == wanted_->report) {
            if (rank.failed) return who + "could not complete its checkpoint";
        } else if (rank.ended) {
            return who + "ended before its checkpoint was complete";
        } else if (rank.reports > 0 || waited < leader_.alone_grace()) { // otherwise only rank 0 reports
            complete = false;
        }
    }
    if (complete) return std::nullopt;
    const auto limit = 10 * parts_.setting.spec->output.abort_grace;
    if (waited < limit) return "";
    return "the program has not completed its checkpoint for " + study::duration_text(limit) +
           " (ten times run.abort_grace)";
}

/// (A rank that failed has said so itself.)
void ProgramCheckpoints::need_complete(std::span<const RankFacts> ranks) const {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const bool is_silent = ranks[r].reports == 0;
        if (is_silent || (ranks[r].settled == leader_.order().wanted && !ranks[r].failed)) continue;
        throw base::Error("rank " + std::to_string(r) + " of the program ended before its checkpoint was complete");
    }
}

// ---- files

void ProgramCheckpoints::look_at(const std::string& checkpoint) {
    if (auto place = names_.look_at(checkpoint, rank_.started().path_of(checkpoint)))
        parts_.port.named(std::move(*place));
}

/// The same for the places that links in the checkpoint lead to. Returns one of the links.
std::optional<NamedPaths::Link> ProgramCheckpoints::look_at_links(const std::string& checkpoint) {
    const auto links = names_.links_out_of(rank_.started().path_of(checkpoint));
    for (const auto& link : links)
        if (auto place = names_.look_at(link.path, link.target)) parts_.port.named(std::move(*place));
    return links.empty() ? std::nullopt : std::optional(links.front());
}

void ProgramCheckpoints::adopt(const std::string& checkpoint, const TrialPoint& point, bool may_move) {
    const fs::path source = rank_.started().path_of(checkpoint);
    const auto& start = parts_.assignment.start;
    const storage::CheckpointKey key{start.trial, point.iteration, start.incarnation, start.attempt};
    look_at(checkpoint);
    static_cast<void>(look_at_links(checkpoint));
    try {
        auto reference = parts_.setting.checkpoints->adopt(
            key, source.string(), may_move && lies_in(rank_.started().folders.checkpoints, source));
        parts_.loop.checkpoints().saved(std::move(reference), point.value);
    } catch (const base::IoError& error) { // a full disk is no fault of the trial
        throw CheckpointError(AttemptOutcome::unsaved, error.what());
    } catch (const base::Error& error) {
        throw base::Error("cannot take over the checkpoint that the program named: " + std::string(error.what()));
    }
}

} // namespace ranktune::worker
