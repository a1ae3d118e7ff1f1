// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_body.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "studydir/lone_reports.hpp"
#include "worker/bodies/kept_program.hpp"
#include "worker/bodies/program_facts.hpp"
#include "worker/bodies/program_start.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {

using study::AttemptOutcome;
using study::Verb;
using End = ProgramOrder::End;

namespace {

// While nothing happens, turns become rarer and leave the cores to the programs.
constexpr std::chrono::microseconds shortest_turn{100};
constexpr std::chrono::milliseconds longest_turn{50};
constexpr int idle_share = 32; // a turn lasts this fraction of the quiet time
constexpr std::chrono::microseconds shortest_alone{500};
constexpr std::chrono::milliseconds verdict_turn{1};

std::string rounded(std::chrono::nanoseconds time) {
    if (time >= std::chrono::seconds(10)) return study::duration_text(std::chrono::round<std::chrono::seconds>(time));
    return study::duration_text(std::chrono::round<std::chrono::milliseconds>(time));
}

// Facts and orders as numbers. Those of other ranks are all zero here, so a sum over the ranks has everybody's.
template <class T>
void add_words(const T& what, std::vector<double>& words) {
    T::fields([&](const auto&... each) { (words.push_back(static_cast<double>(each)), ...); }, what);
}
template <class T>
void read_words(T& what, const double*& word) {
    T::fields([&](auto&... each) { ((each = static_cast<std::remove_reference_t<decltype(each)>>(*word++)), ...); },
              what);
}

} // namespace

ProgramBody::ProgramBody(const AttemptParts& parts, Spare& spare)
    : parts_(parts),
      spare_(spare),
      base_(parts.assignment.first_iteration()),
      ranks_(static_cast<std::size_t>(parts.group.size())) {}

void ProgramBody::start(const study::CheckpointRef* checkpoint) {
    StartedProgram started = ProgramStart(parts_, spare_).start(checkpoint);
    if (leads()) {
        const study::StudySpec& spec = *parts_.setting.spec;
        ProgramLeader::Limits limits{parts_.setting.program->alone_grace, spec.output.abort_grace,
                                     spec.failure.report_timeout, spec.failure.iteration_timeout};
        if (base_ > 0) {
            const std::chrono::duration<double> before(parts_.assignment.start.seconds / static_cast<double>(base_));
            limits.iteration = std::chrono::duration_cast<ProgramLeader::Duration>(before);
        }
        limits.hears = !program().prints();
        leader_.emplace(limits, Clock::now());
    }
    rank_.emplace(parts_, std::move(started), order_, next());
    if (leads()) checkpoints_.emplace(parts_, *rank_, *leader_);
    news_ = Clock::now();
}

Verb ProgramBody::train(const Report& report) {
    if (leads()) {
        lead(report);
    } else {
        do {
            listen(until_next_turn());
            exchange();
        } while (!is_over());
    }
    parts_.group.part(); // all ranks leave after the same exchange
    // (A process that has gone on in the meantime is stopped like one that ignores its verdict.)
    if (order_.end == End::keep && rank_->facts().reports == order_.decided + 1) keep_process();
    return order_.verb;
}

// ---- a turn

/// First half: reads the program's messages.
void ProgramBody::listen(Clock::duration patience) {
    rank_->listen(patience);
    while (auto report = rank_->next_report()) take(*std::move(report));
}

/// Second half, collective: the ranks exchange their facts.
void ProgramBody::exchange() {
    rank_->look();
    tell_others();
    rank_->obey();
}

/// What happens to a rank alone ends its wait at once: a turn is for limits of time, and for files that are written.
bool ProgramBody::is_told_all() const { return parts_.group.size() == 1 && parts_.port.news() >= 0; }

ProgramBody::Clock::duration ProgramBody::until_next_turn() const {
    const auto quiet = Clock::now() - news_;
    if (is_told_all()) return std::clamp<Clock::duration>(quiet / 2, shortest_alone, longest_turn);
    return std::clamp<Clock::duration>(quiet / idle_share, shortest_turn, longest_turn);
}

// ---- the leader, between the two halves

void ProgramBody::take(process::ProgramReport report) {
    note(texts_.keep(report.texts, parts_.assignment.start.trial, parts_.setting.spec->objective,
                     *parts_.setting.program));
    if (report.checkpoint) checkpoints_->named(*report.checkpoint);
    if (leader_->stopping())
        overwritten_ = overwritten_ || is_named_again(report);
    else
        queue_.push_back(std::move(report));
}

void ProgramBody::lead(const Report& report) {
    listen(until_next_turn());
    while (next_report() && report(current_->metrics) == Verb::go_on) {
    }
    wait_for_end();
    exchange(); // tells all ranks that the attempt is over
}

void ProgramBody::turn(Clock::duration patience) {
    watch_ranks();
    exchange();
    listen(patience);
}

/// Waits for the next report of this rank's program. False: none, because the program has ended or was given up.
bool ProgramBody::next_report() {
    while (queue_.empty()) {
        if (child().exited() || leader_->stopping()) return false;
        look_for_order();
        turn(until_next_turn());
    }
    current_ = std::move(queue_.front());
    queue_.pop_front();
    gives_state_ = gives_state_ || current_->checkpoint || current_->can_save;
    if (current_->checkpoint) checkpoints_->look_at(*current_->checkpoint);
    leader_->reported(Clock::now());
    return true;
}

/// The head may have decided about the next report already (an interrupt): then the wait for that report is limited.
void ProgramBody::look_for_order() {
    const auto order = parts_.port.verdict_within(parts_.loop.iteration() + 1, std::chrono::milliseconds(0));
    if (!order || order->verb == Verb::go_on) return;
    asked_ = without_state(*order);
    leader_->will_stop(Clock::now());
}

/// Waits until every process has ended.
void ProgramBody::wait_for_end() {
    while (true) {
        if (child().exited()) {
            rank_->need_a_report();
            leader_->done(Clock::now());
        }
        watch_ranks();
        if (next().end != End::go_on && !adopted_) keep_reported_state();
        if (next().end == End::keep) return;
        if (std::ranges::all_of(ranks_, [](const RankFacts& rank) { return rank.ended; })) break;
        exchange();
        listen(until_next_turn());
        if (leader_->stopping()) recall();
    }
    keep_state_asked_for();
    leader_->close();
}

bool ProgramBody::others_report() const {
    return std::any_of(ranks_.begin() + 1, ranks_.end(), [](const RankFacts& rank) { return rank.reports > 0; });
}

/// Once the leader may have to wait for other ranks: uses what earlier attempts learned about them.
void ProgramBody::recall() {
    if (recalled_ || ranks_.size() == 1 || others_report()) return;
    recalled_ = true;
    if (studydir::lone_reports(parts_.setting.program->directory) > 0) leader_->rank_zero_is_alone();
}

/// Lets the leader check the ranks. Logs whom it waits for, and gives up in the end.
void ProgramBody::watch_ranks() {
    const auto now = Clock::now();
    ranks_[0] = rank_->facts();
    ranks_[0].ended = child().exited().has_value();
    leader_->saved_on_the_way(rank_->on_the_way().at);
    if (const auto& last = rank_->last()) leader_->saved(last->at);
    checkpoints_->step(ranks_, end_.has_value());
    if (!heard_others_ && others_report()) {
        heard_others_ = true;
        studydir::forget_lone_reports(parts_.setting.program->directory);
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
        studydir::note_lone_reports(parts_.setting.program->directory);
    }
    if (!in_vain && leader_->in_vain()) give_up_waiting(limit, for_whom);
    if (said_waiting_ || !since || leader_->waits_since() != since) return; // a new wait begins
    if (now - *since < std::min<ProgramLeader::Duration>(parts_.setting.program->alone_grace, limit / 2)) return;
    said_waiting_ = true;
    note("waiting for #" + std::to_string(parts_.assignment.start.trial.value()) + ", " + for_whom + ", for another " +
         rounded(limit - (now - *since)) + " at most");
}

/// The program seems to hang: it is stopped by signal, and its present state is incomplete.
void ProgramBody::give_up_waiting(ProgramLeader::Duration limit, const std::string& for_whom) {
    const std::string text = "waited " + rounded(limit) + " in vain for " + for_whom +
                             "; the program is stopped by signal (a longer run.abort_grace makes the wait longer)";
    const Word& word = end_ ? *end_ : *asked_;
    if (needs_state(word)) throw base::Error(text);
    // Without a report since the request, the head must learn that the trial has to continue later. A trial that leads
    // loses the state that it was to end with.
    const bool loses_state = word.verb == Verb::stop && word.save;
    if (loses_state || (word.verb == Verb::pause && !end_)) throw CheckpointError(AttemptOutcome::unsaved, text);
    adopted_ = true; // no state to adopt
    if (!end_) leader_->stop(word.verb, false, Clock::now());
    note(text);
}

/// The attempt is over, and the process waits for its answer.
void ProgramBody::keep_process() {
    const Clock::duration to_end = parts_.setting.spec->output.abort_grace;
    spare_.program = std::make_unique<KeptProgram>(
        std::move(*rank_).take(), parts_.assignment, base_ + order_.decided + 1,
        KeptProgram::Limits{std::min<Clock::duration>(parts_.setting.program->unclaimed, to_end), to_end,
                            term_grace_of(*parts_.setting.spec)});
}

// ---- the leader, after a report

std::optional<std::chrono::milliseconds> ProgramBody::patience() const {
    return is_told_all() ? std::chrono::milliseconds::zero() : verdict_turn;
}

void ProgramBody::idle() {
    leader_->undecided(Clock::now());
    turn(is_told_all() ? until_next_turn() : Clock::duration::zero());
}

/// A path counts if it is taken over before its report is answered. A program that continues without the answer may be
/// overwriting it, and has done so if it names it again.
Saves ProgramBody::saves() {
    if (!program().checkpoints) return Saves::never;
    listen(Clock::duration::zero()); // it may have sent its next report
    const auto again = [this](const auto& report) { return is_named_again(report); };
    overwritten_ = std::ranges::any_of(queue_, again);
    if (overwritten_ || parts_.port.contested()) return Saves::missing;
    const bool on_the_way = current_->can_save && current_->can_go_on;
    if (current_->checkpoint && !checkpoints_->is_wanted() && queue_.empty()) return Saves::now;
    if (on_the_way && queue_.empty()) return checkpoints_->is_asked() ? Saves::soon : Saves::now;
    if (current_->checkpoint || current_->can_save) return Saves::at_end;
    return gives_state_ ? Saves::missing : Saves::none;
}

std::string ProgramBody::why_no_state() const {
    if (overwritten_)
        return "its program made the next report without waiting for the answer to this one, and named the same "
               "checkpoint again: wait for the answers, or name another path with each report";
    return "its program gave no checkpoint: pass one with each report, report(..., checkpoint=path); or say "
           "checkpoints = false in [trainable]";
}

Word ProgramBody::tell(const Word& word, const TrialPoint& point) {
    point_ = point;
    if (word.verb != Verb::go_on) return word; // `end` follows
    const bool later = word.save && !current_->checkpoint;
    while (later && checkpoints_->is_asked()) turn(until_next_turn()); // the state before
    const std::uint64_t report = next().decided + 1;
    if (later) {
        checkpoints_->ask(point, report);
    } else if (word.save && current_->pending) {
        checkpoints_->want(point, report, *current_->checkpoint);
        leader_->want(report);
    } else if (word.save) {
        save_at_rest(point);
    }
    leader_->go_on(Clock::now(), later, word.is_best);
    return word;
}

/// Once every rank has made the report, the checkpoint is complete: copies it, then lets the program continue. A failed
/// copy is only reported.
void ProgramBody::save_at_rest(const TrialPoint& point) {
    const auto since = Clock::now();
    const std::uint64_t wanted = next().decided + 1;
    // Ranks that were silent at earlier reports stay silent: only rank 0 reports.
    const auto is_here = [&](const RankFacts& rank) {
        return rank.ended || rank.reports >= wanted || (rank.reports == 0 && wanted > 1);
    };
    ranks_[0] = rank_->facts();
    while (!std::ranges::all_of(ranks_, is_here)) {
        if (Clock::now() - since >= leader_->alone_grace()) return;
        turn(until_next_turn());
        recall();
    }
    if (!queue_.empty()) return;
    const auto began = Clock::now();
    parts_.loop.checkpoints().taken(point);
    try {
        checkpoints_->adopt(*current_->checkpoint, point, false);
    } catch (const base::Error& error) {
        parts_.loop.checkpoints().missed(error.what());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    parts_.loop.checkpoints().measured(seconds, seconds);
}

/// A trial that is given up starts again elsewhere: nothing waits for it.
void ProgramBody::close(bool abandoned) {
    if (abandoned) spare_.program.reset();
}

void ProgramBody::end(const Word& word, const TrialPoint& point) {
    end_ = word;
    point_ = point;
    queue_.clear();
    const bool pending = word.save && current_->checkpoint && current_->pending;
    leader_->stop(word.verb, word.save && !current_->checkpoint && current_->can_save, Clock::now(), word.exploits,
                  pending, needs_state(word));
}

// ---- the leader: checkpoints of the program

/// Every rank has made the report, so the checkpoint that came with it is complete.
void ProgramBody::keep_reported_state() {
    listen(Clock::duration::zero());
    const bool there = end_ && end_->save && current_->checkpoint;
    adopted_ = there || !next().save; // a checkpoint that was asked for comes later
    if (there && overwritten_ && needs_state(*end_)) throw base::Error(why_no_state());
    if (there && overwritten_)
        throw CheckpointError(AttemptOutcome::unsaved, while_saving(point_.iteration, why_no_state()));
    if (there) adopt_last(*current_->checkpoint);
}

/// All processes have ended.
void ProgramBody::keep_state_asked_for() {
    if (!next().save || adopted_) return;
    rank_->need_last();
    adopted_ = true;
    adopt_last(rank_->last()->checkpoint);
}

void ProgramBody::adopt_last(const std::string& checkpoint) {
    try {
        if (current_->pending) checkpoints_->need_complete(ranks_);
        checkpoints_->adopt(checkpoint, point_);
    } catch (...) {
        last_save_failed(needs_state(*end_) && !rank_->refusal(), point_.iteration);
    }
}

bool ProgramBody::is_named_again(const process::ProgramReport& later) const {
    return current_ && current_->checkpoint && later.checkpoint &&
           rank_->started().path_of(*later.checkpoint) == rank_->started().path_of(*current_->checkpoint);
}

/// Collective. Sums a vector in which each rank fills in its own part, and the leader its order.
void ProgramBody::tell_others() {
    if (parts_.group.size() == 1) {
        if (parts_.port.abort_flag().load()) throw ddp::Aborted("the trial was told to give up");
        if (rank_->facts() != ranks_[0] || next() != order_) news_ = Clock::now();
        ranks_[0] = rank_->facts();
        order_ = next();
        return;
    }
    const bool news = rank_->facts() != told_ || (leads() && next() != order_);
    if (parts_.group.min_max(news ? 1 : 0).second == 0) return;
    std::vector<double> words;
    add_words(leads() ? next() : ProgramOrder{}, words);
    for (int r = 0; r < parts_.group.size(); ++r)
        add_words(r == parts_.group.rank() ? rank_->facts() : RankFacts{}, words);
    parts_.group.all_reduce(words);
    const double* word = words.data();
    read_words(order_, word);
    for (RankFacts& rank : ranks_) read_words(rank, word);
    told_ = rank_->facts();
    news_ = Clock::now();
}

} // namespace ranktune::worker
