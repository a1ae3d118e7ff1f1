// SPDX-License-Identifier: Apache-2.0
#include "drivers/program/program_trial.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "drivers/group/checkpoint_error.hpp"
#include "drivers/group/disturbed_error.hpp"
#include "drivers/group/objective_value.hpp"
#include "drivers/pages.hpp"
#include "drivers/program/lone_reports.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::drivers {

using study::AttemptOutcome;
using study::Verb;
using End = ProgramOrder::End;
namespace fs = std::filesystem;

namespace {

// While nothing happens, turns become rarer: the cores belong to the programs.
constexpr std::chrono::microseconds shortest_turn{100};
constexpr std::chrono::milliseconds longest_turn{50};
constexpr int idle_share = 32; // a turn is as long as this part of the time in which nothing happened
constexpr std::chrono::milliseconds verdict_turn{1};

/// Many programs print what is wrong on standard output, and then leave with a code. What one that was killed has
/// printed there is its usual progress.
std::string failure_text(const ChildExit& exit, const Child& child) {
    std::string words = child.last_words();
    const char* where = "error";
    if (words.empty() && exit.signal == 0) {
        words = child.last_output();
        where = "output";
    }
    std::string text = exit.text();
    if (words.empty()) return text;
    const auto last = words.rfind('\n');
    if (last == std::string::npos) return text + ": " + words;
    return text + ": " + words.substr(last + 1) + "\nlast lines of its standard " + where + ":\n" + words;
}

std::string rounded(std::chrono::nanoseconds time) {
    if (time >= std::chrono::seconds(10)) return study::duration_text(std::chrono::round<std::chrono::seconds>(time));
    return study::duration_text(std::chrono::round<std::chrono::milliseconds>(time));
}

} // namespace

ProgramTrial::ProgramTrial(const AttemptSetting& setting, const Assignment& assignment,
                           const space::Configuration& configuration, ddp::Collective& group, AttemptPort& port,
                           Stopwatch& watch)
    : setting_(setting),
      assignment_(assignment),
      configuration_(configuration),
      group_(group),
      port_(port),
      watch_(watch),
      output_({}, [this](std::string_view line) { setting_.program->output(assignment_.start.trial, line); }),
      ranks_(static_cast<std::size_t>(group.size())) {}

ProgramTrial::~ProgramTrial() {
    child_.reset(); // stops it
    output_.finish();
    if (!leads() || scratch_.empty()) return;
    // The programs of other ranks may still be about to end.
    std::error_code error;
    for (int turn = 0; turn < 5; ++turn) {
        fs::remove_all(scratch_, error);
        if (!error) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

AttemptOutcome ProgramTrial::run() {
    prepare();
    while (!is_over()) turn();
    group_.part(); // all ranks leave after the same exchange
    if (order_.verb == Verb::go_on) return AttemptOutcome::finished;
    return order_.verb == Verb::pause ? AttemptOutcome::paused : AttemptOutcome::stopped;
}

void ProgramTrial::turn() {
    if (child_->exited())
        std::this_thread::sleep_for(patience());
    else
        child_->wait(patience());
    take_in();
    if (leads()) lead();
    check_end();
    tell_others();
    obey();
}

ProgramTrial::Clock::duration ProgramTrial::patience() const {
    if (awaiting_) return Clock::duration::zero(); // the verdict is waited for instead
    const auto quiet = (Clock::now() - news_) / idle_share;
    return std::clamp<Clock::duration>(quiet, shortest_turn, longest_turn);
}

// ---- what the program says ----

void ProgramTrial::take_in() {
    while (const auto line = child_->next_line()) take_line(*line);
}

void ProgramTrial::take_line(const std::string& line) {
    if (line.empty()) return;
    std::vector<std::string> unknown;
    auto message = trainables::parse_program_message(line, unknown);
    if (!unknown.empty() && !said_unknown_) {
        said_unknown_ = true;
        note("the program sends '" + unknown.front() + "', which means nothing to this version and is ignored");
    }
    port_.progressed();
    std::visit([this](auto& said) { on_message(std::move(said)); }, message);
}

void ProgramTrial::on_message(trainables::ProgramReport report) {
    ++own_.reports;
    if (leads() && !leader_->stopping()) queue_.push_back(std::move(report));
}

void ProgramTrial::on_message(trainables::ProgramSaved saved) {
    if (!leads() || saved_ || !next().save) return;
    saved_ = std::move(saved.checkpoint);
    leader_->saved(Clock::now());
}

void ProgramTrial::check_end() {
    if (own_.ended || !child_->exited()) return;
    own_.ended = true;
    const ChildExit& exit = *child_->exited();
    if (exit.clean()) return;
    if (!told_to_end_ && order_.end == End::go_on) {
        const std::string text = failure_text(exit, *child_);
        // What kills like this is the kernel, short of memory, or a person; a page that cannot be read gives SIGBUS.
        if (exit.signal == SIGKILL || exit.signal == SIGBUS) throw DisturbedError(text);
        throw base::Error(text);
    }
    // Its results are in: what goes wrong while it closes down is worth a line, not the trial.
    if (exit.signal == 0) note("rank " + std::to_string(group_.rank()) + " of the trial, told to end: " + exit.text());
}

// ---- the leader ----

void ProgramTrial::lead() {
    ranks_[0] = own_;
    recall();
    if (due_since_) save_on_the_way();
    while (settle_report()) {
    }
    const auto now = Clock::now();
    if (child_->exited() && queue_.empty() && !awaiting_ && !due_since_) {
        if (base_ == 0 && own_.reports == 0 && child_->exited()->clean() && !end_ && !told_to_end_)
            throw base::Error("the program ended without a single report: each iteration ends with report(" +
                              setting_.spec->objective.metric + "=...); " + documentation_page("guides/programs.md") +
                              " shows how");
        leader_->done(now);
    }
    watch_end();
    if (next().end != End::go_on && !adopted_) keep_reported_state();
    const bool all_ended = std::ranges::all_of(ranks_, [](const RankFacts& rank) { return rank.ended; });
    if (all_ended && queue_.empty() && !awaiting_ && !due_since_) close();
}

/// What earlier attempts have found out about the other ranks, once the leader may have to wait for them; and what this
/// one shows.
void ProgramTrial::recall() {
    const std::string& study = setting_.program->directory;
    const bool others =
        std::any_of(ranks_.begin() + 1, ranks_.end(), [](const RankFacts& rank) { return rank.reports > 0; });
    if (others && !heard_others_) {
        heard_others_ = true;
        forget_lone_reports(study);
    }
    const bool may_wait = ranks_.size() > 1 && (leader_->stopping() || due_since_);
    if (others || recalled_ || !may_wait) return;
    recalled_ = true;
    if (lone_reports(study) > 0) leader_->rank_zero_is_alone();
}

/// Lets the leader look at the ranks. Whoever is waited for is named in the log, and given up in the end.
void ProgramTrial::watch_end() {
    const auto now = Clock::now();
    ranks_[0] = own_;
    ranks_[0].ended = child_->exited().has_value();
    if (!awaiting_ && !due_since_ && !leader_->stopping() && queue_.empty()) {
        const auto order = port_.verdict_within(undecided(), std::chrono::milliseconds(0));
        if (order && order->verb != Verb::go_on) {
            asked_ = order;
            leader_->will_stop(now);
        }
    }
    const auto since = leader_->waits_since();
    const auto limit = leader_->patience();
    const std::string for_whom = since ? leader_->waits_for(ranks_) : "";
    const bool alone = leader_->rank_zero_alone();
    const bool in_vain = leader_->in_vain();
    leader_->step(now, ranks_);
    if (!alone && leader_->rank_zero_alone()) {
        note(
            "only rank 0 of the program reports: its ranks are stopped by signal (call report on every rank to let "
            "them end by themselves)");
        note_lone_reports(setting_.program->directory);
    }
    if (!in_vain && leader_->in_vain()) give_up_waiting(limit, for_whom);
    if (said_waiting_ || !since || leader_->waits_since() != since) return; // another wait begins
    if (now - *since < std::min<ProgramLeader::Duration>(setting_.program->alone_grace, limit / 2)) return;
    said_waiting_ = true;
    note("waiting for #" + std::to_string(assignment_.start.trial.value()) + ", " + for_whom + ", for another " +
         rounded(limit - (now - *since)) + " at most");
}

/// The program hangs, or seems to: it is stopped by signal, and the state that it has now is not complete.
void ProgramTrial::give_up_waiting(ProgramLeader::Duration limit, const std::string& for_whom) {
    const std::string text = "waited " + rounded(limit) + " in vain for " + for_whom +
                             "; the program is stopped by signal (a longer run.abort_grace makes the wait longer)";
    const study::Verdict& verdict = end_ ? *end_ : *asked_;
    if (verdict.verb == Verb::pause && !goes_on_later(verdict)) throw base::Error(text);
    // Without a report since it was asked, the head has to hear that the trial is to train on later.
    if (verdict.verb == Verb::pause && !end_) throw CheckpointError(AttemptOutcome::unsaved, text);
    adopted_ = true; // there is nothing to take over
    if (!end_) leader_->stop(verdict.verb, false, Clock::now());
    note(text);
}

/// Whether there may be more to do at once.
bool ProgramTrial::settle_report() {
    if (awaiting_) {
        const auto verdict = port_.verdict_within(undecided(), verdict_turn);
        if (!verdict) {
            leader_->undecided(Clock::now());
            return false;
        }
        awaiting_ = false;
        apply(*verdict);
        return true;
    }
    if (leader_->stopping() || due_since_ || queue_.empty()) return false;
    current_ = std::move(queue_.front());
    queue_.pop_front();
    gives_state_ = gives_state_ || current_->checkpoint || current_->can_save;
    leader_->reported(Clock::now());
    watch_.stop();
    RunnerReported report{undecided(), watch_.seconds(), {}};
    for (auto& [name, value] : current_->metrics) report.metrics.push_back({name, value});
    port_.reported(std::move(report));
    awaiting_ = true;
    return true;
}

void ProgramTrial::apply(const study::Verdict& verdict) {
    const auto now = Clock::now();
    if (verdict.verb == Verb::go_on) {
        if (state_is_due(verdict)) {
            due_since_ = now;
        } else {
            leader_->go_on(now);
            watch_.start();
        }
        return;
    }
    end_ = verdict;
    queue_.clear();
    leader_->stop(verdict.verb, keeps_state() && !current_->checkpoint && current_->can_save, now);
}

/// Whether the state after the last report is wanted, and can be had.
bool ProgramTrial::keeps_state() const {
    if (!program().checkpoints || end_->verb == Verb::discard) return false;
    if (current_->checkpoint || current_->can_save || end_->verb != Verb::pause) return true;
    // The end of a job is no reason to fail a trial that cannot be paused.
    if (goes_on_later(*end_) || setting_.spec->scheduler.restart_paused) return false;
    const std::string text = without_state_text(
        undecided(),
        "its program gave no checkpoint: pass one with each report, report(..., checkpoint=path); or say checkpoints = "
        "false in [trainable]",
        setting_.spec->scheduler);
    if (gives_state_) throw base::Error(text);
    throw CheckpointError(AttemptOutcome::stateless, text);
}

/// Whether what the program saved for this report should be kept, although it goes on. A program that has gone on
/// already may be writing to it again.
bool ProgramTrial::state_is_due(const study::Verdict& verdict) {
    const bool due = clock_->due(undecided(), watch_.seconds(), verdict);
    return due && current_->checkpoint && program().checkpoints && queue_.empty();
}

/// Once every rank has made the report, what was saved for it is complete: it is copied, then the program goes on. One
/// that cannot be kept is only said.
void ProgramTrial::save_on_the_way() {
    const auto now = Clock::now();
    const std::uint64_t wanted = next().decided + 1;
    // Ranks that were silent at earlier reports will be so at this one: only rank 0 reports.
    const bool all_here = std::ranges::all_of(ranks_, [&](const RankFacts& rank) {
        return rank.ended || rank.reports >= wanted || (rank.reports == 0 && wanted > 1);
    });
    if (!all_here && now - *due_since_ < leader_->alone_grace()) return;
    due_since_.reset();
    if (all_here && queue_.empty()) {
        clock_->taken(undecided(), watch_.seconds());
        try {
            adopt(*current_->checkpoint, false);
        } catch (const base::Error& error) {
            if (++missed_ == 1) note("no checkpoint: " + std::string(error.what()) + "; training goes on");
            port_.unsaved(error.what());
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - now).count();
        clock_->measured(seconds, seconds);
    }
    leader_->go_on(Clock::now());
    watch_.start();
}

/// Every rank has made the report: what was saved for it is complete.
void ProgramTrial::keep_reported_state() {
    if (!end_ || !current_ || !current_->checkpoint || !keeps_state()) {
        adopted_ = !next().save; // nothing to take over now
        return;
    }
    adopted_ = true;
    adopt(*current_->checkpoint);
}

void ProgramTrial::adopt(const std::string& checkpoint, bool may_move) {
    const fs::path source = (fs::path(program().directory) / checkpoint).lexically_normal();
    const auto [inside, rest] = std::ranges::mismatch(fs::path(checkpoint_directory_), source);
    const auto& start = assignment_.start;
    const storage::CheckpointKey key{start.trial, undecided(), start.incarnation, start.attempt};
    try {
        auto reference = setting_.checkpoints->adopt(key, source.string(),
                                                     may_move && inside == fs::path(checkpoint_directory_).end());
        if (current_) reference.value = objective_value(current_->metrics, setting_.spec->objective);
        port_.saved(std::move(reference));
    } catch (const base::IoError& error) { // a full disk is no fault of the trial
        throw CheckpointError(AttemptOutcome::unsaved, error.what());
    } catch (const base::Error& error) {
        throw base::Error("cannot take over the checkpoint that the program named: " + std::string(error.what()));
    }
}

/// All processes have ended.
void ProgramTrial::close() {
    if (next().save && !adopted_) {
        if (saved_) {
            adopted_ = true;
            adopt(*saved_);
        } else if (end_->verb == Verb::pause) {
            throw base::Error("the program was told to save its state and to pause at iteration " +
                              std::to_string(undecided()) + ", and ended without having saved it");
        }
    }
    leader_->close();
}

// ---- the other ranks ----

/// Collective. Sums of a vector in which each rank fills in its own part, and the leader its order.
void ProgramTrial::tell_others() {
    if (group_.size() == 1) {
        if (port_.abort_flag().load()) throw ddp::Aborted("the trial was told to give up");
        if (own_ != ranks_[0] || next() != order_) news_ = Clock::now();
        ranks_[0] = own_;
        order_ = next();
        return;
    }
    const bool news = own_ != told_ || (leads() && next() != order_);
    if (group_.min_max(news ? 1 : 0).second == 0) return;
    constexpr std::size_t head = 4;
    std::vector<double> words(head + 2 * ranks_.size(), 0.0);
    if (leads()) {
        words[0] = static_cast<double>(next().decided);
        words[1] = static_cast<double>(next().end);
        words[2] = static_cast<double>(next().verb);
        words[3] = next().save ? 1.0 : 0.0;
    }
    const std::size_t mine = head + 2 * static_cast<std::size_t>(group_.rank());
    words[mine] = static_cast<double>(own_.reports);
    words[mine + 1] = own_.ended ? 1.0 : 0.0;
    group_.all_reduce_sum(words);
    order_ = {static_cast<std::uint64_t>(words[0]), static_cast<End>(words[1]), static_cast<Verb>(words[2]),
              words[3] != 0.0};
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        ranks_[r] = {static_cast<std::uint64_t>(words[head + 2 * r]), words[head + 2 * r + 1] != 0.0};
    told_ = own_;
    news_ = Clock::now();
}

/// A folder of its own, so that what the program has saved there before is not taken over along with it.
std::optional<std::string> ProgramTrial::save_to() const {
    if (!order_.save) return std::nullopt;
    const std::string folder = checkpoint_directory_ + "/" + std::to_string(base_ + answered_);
    std::error_code error; // the program will tell
    fs::create_directories(folder, error);
    return folder;
}

void ProgramTrial::obey() {
    for (; answered_ < std::min(own_.reports, order_.decided); ++answered_)
        child_->send(trainables::decision_line(Verb::go_on, base_ + answered_ + 1));
    const bool told = order_.end == End::deliver || (order_.end == End::deliver_to_first && leads());
    if (told && answered_ == order_.decided && own_.reports > order_.decided) {
        ++answered_;
        told_to_end_ = true;
        child_->send(trainables::decision_line(order_.verb, base_ + answered_, save_to()));
    }
    if (order_.end == End::signal) {
        told_to_end_ = true;
        child_->stop();
    }
}

} // namespace ranktune::drivers
