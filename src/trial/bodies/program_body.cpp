// SPDX-License-Identifier: Apache-2.0
#include "trial/bodies/program_body.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "process/pages.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "studydir/lone_reports.hpp"
#include "trial/attempt_errors.hpp"

namespace ranktune::trial {

using study::AttemptOutcome;
using study::Verb;
using End = ProgramOrder::End;
namespace fs = std::filesystem;

namespace {

// While nothing happens, turns become rarer and leave the cores to the programs.
constexpr std::chrono::microseconds shortest_turn{100};
constexpr std::chrono::milliseconds longest_turn{50};
constexpr int idle_share = 32; // a turn lasts this fraction of the quiet time
constexpr std::chrono::milliseconds verdict_turn{1};

std::string rounded(std::chrono::nanoseconds time) {
    if (time >= std::chrono::seconds(10)) return study::duration_text(std::chrono::round<std::chrono::seconds>(time));
    return study::duration_text(std::chrono::round<std::chrono::milliseconds>(time));
}

} // namespace

ProgramBody::ProgramBody(const AttemptParts& parts, Spare& spare)
    : setting_(parts.setting),
      assignment_(parts.assignment),
      configuration_(parts.configuration),
      group_(parts.group),
      port_(parts.port),
      loop_(parts.loop),
      spare_(spare),
      base_(parts.assignment.first_iteration()),
      ranks_(static_cast<std::size_t>(parts.group.size())) {}

ProgramBody::~ProgramBody() = default;

Verb ProgramBody::train(const Report& report) {
    if (leads()) {
        lead(report);
    } else {
        do {
            listen(until_next_turn());
            exchange();
        } while (!is_over());
    }
    group_.part(); // all ranks leave after the same exchange
    // (A process that has gone on in the meantime is stopped like one that ignores its verdict.)
    if (order_.end == End::keep && own_.reports == order_.decided + 1) keep_process();
    return order_.verb;
}

// ---- first half of a turn: read the program's messages

void ProgramBody::listen(Clock::duration patience) {
    if (child().exited())
        std::this_thread::sleep_for(patience);
    else
        child().wait(patience);
    while (const auto line = child().next_line()) take_line(*line);
    if (printed_) take_printed();
}

void ProgramBody::take_printed() {
    const auto made = [this](trainables::ProgramReport report) {
        port_.progressed();
        reported(std::move(report));
    };
    if (told_to_end_) return; // all results are in
    const auto& exit = child().exited();
    if (exit && exit->signal != 0 && child().ends_within_line()) printed_->forget_last_line();
    while (auto report = printed_->next()) made(*std::move(report));
    if (exit)
        if (auto report = printed_->at_end(child())) made(*std::move(report));
}

ProgramBody::Clock::duration ProgramBody::until_next_turn() const {
    const auto quiet = (Clock::now() - news_) / idle_share;
    return std::clamp<Clock::duration>(quiet, shortest_turn, longest_turn);
}

void ProgramBody::take_line(const std::string& line) {
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

void ProgramBody::on_message(trainables::ProgramReport report) {
    if (program().prints())
        throw base::Error("the program makes reports itself: leave out report and result in [trainable]");
    reported(std::move(report));
}

void ProgramBody::reported(trainables::ProgramReport report) {
    ++own_.reports;
    failed_.reset(); // the program has caught the exception
    can_save_ = report.can_save;
    refused_before_ = child().take_refusal();
    own_.exploits = report.exploits;
    if (report.pending) pending_[own_.reports] = {*report.pending, false, {}};
    if (!leads()) return;
    note(texts_.keep(report.texts, assignment_.start.trial, setting_.spec->objective, *setting_.program));
    if (later_ && report.checkpoint)
        later_->again = later_->again || path_of(*report.checkpoint) == path_of(later_->checkpoint);
    if (leader_->stopping())
        overwritten_ = overwritten_ || is_named_again(report);
    else
        queue_.push_back(std::move(report));
}

void ProgramBody::on_message(const trainables::ProgramResult& /*result*/) {
    throw base::Error("the program sends the result of a task, as kept programs do: say kept = true in [trainable]");
}

void ProgramBody::on_message(const trainables::ProgramPredicted& /*predicted*/) {
    throw base::Error("the program sends predictions, as programs of `ranktune predict` do: a trial trains");
}

/// A rank has saved before it makes its next report, so it is known to which answer this belongs.
void ProgramBody::on_message(trainables::ProgramSaved saved) {
    failed_.reset(); // it has tried again
    const bool on_the_way = is_saving_on_the_way();
    if (on_the_way) own_.saved = order_.save_at;
    if (on_the_way && on_the_way_) {
        on_the_way_->checkpoint = std::move(saved.checkpoint);
        on_the_way_->named = Clock::now();
        leader_->saved_on_the_way(Clock::now());
    }
    if (on_the_way || saved_ || !next().save) return;
    saved_ = std::move(saved.checkpoint);
    if (leads()) leader_->saved(Clock::now());
}

/// Counts when the process ends with an error, and instead of the state that it was asked for.
void ProgramBody::on_message(trainables::ProgramFailed failed) {
    failed_ = std::move(failed);
    if (is_saving_on_the_way()) lack_state_on_the_way(failed_->text);
}

// ---- the leader, between the two halves

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
    if (current_->checkpoint) look_at_path(*current_->checkpoint);
    leader_->reported(Clock::now());
    return true;
}

/// The head may have decided about the next report already (an interrupt): then the wait for that report is limited.
void ProgramBody::look_for_order() {
    const auto order = port_.verdict_within(loop_.iteration() + 1, std::chrono::milliseconds(0));
    if (!order || order->verb == Verb::go_on) return;
    asked_ = without_state(*order);
    leader_->will_stop(Clock::now());
}

/// Waits until every process has ended.
void ProgramBody::wait_for_end() {
    while (true) {
        if (child().exited()) {
            need_a_report();
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

void ProgramBody::need_a_report() const {
    if (base_ > 0 || own_.reports > 0 || !child().exited()->clean() || told_to_end_) return;
    const std::string& metric = setting_.spec->objective.metric;
    const std::string output = child().last_output();
    const std::string how =
        !program().report.empty()
            ? "no line that it printed matches '" + program().report.front() + "' (report in [trainable])"
            : "each iteration ends with report(" + metric +
                  "=...), or, if it prints its values, [trainable] says how to find them: report = '" + metric +
                  ": ([-+.0-9eE]+)'; " + process::documentation_page("guides/programs.md") + " shows how";
    throw base::Error("the program ended without a single report: " + how +
                      (output.empty() ? "" : "\nlast lines of its standard output:\n" + output));
}

bool ProgramBody::others_report() const {
    return std::any_of(ranks_.begin() + 1, ranks_.end(), [](const RankFacts& rank) { return rank.reports > 0; });
}

/// Once the leader may have to wait for other ranks: uses what earlier attempts learned about them.
void ProgramBody::recall() {
    if (recalled_ || ranks_.size() == 1 || others_report()) return;
    recalled_ = true;
    if (studydir::lone_reports(setting_.program->directory) > 0) leader_->rank_zero_is_alone();
}

/// Lets the leader check the ranks. Logs whom it waits for, and gives up in the end.
void ProgramBody::watch_ranks() {
    const auto now = Clock::now();
    ranks_[0] = own_;
    ranks_[0].ended = child().exited().has_value();
    take_state_on_the_way();
    take_pending_state();
    if (!heard_others_ && others_report()) {
        heard_others_ = true;
        studydir::forget_lone_reports(setting_.program->directory);
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
        studydir::note_lone_reports(setting_.program->directory);
    }
    if (!in_vain && leader_->in_vain()) give_up_waiting(limit, for_whom);
    if (said_waiting_ || !since || leader_->waits_since() != since) return; // a new wait begins
    if (now - *since < std::min<ProgramLeader::Duration>(setting_.program->alone_grace, limit / 2)) return;
    said_waiting_ = true;
    note("waiting for #" + std::to_string(assignment_.start.trial.value()) + ", " + for_whom + ", for another " +
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

// ---- the leader, after a report

std::optional<std::chrono::milliseconds> ProgramBody::patience() const { return verdict_turn; }

void ProgramBody::idle() {
    leader_->undecided(Clock::now());
    turn(Clock::duration::zero());
}

/// A path counts if it is taken over before its report is answered. A program that continues without the answer may be
/// overwriting it, and has done so if it names it again.
Saves ProgramBody::saves() {
    if (!program().checkpoints) return Saves::never;
    listen(Clock::duration::zero()); // it may have sent its next report
    const auto again = [this](const auto& report) { return is_named_again(report); };
    overwritten_ = std::ranges::any_of(queue_, again);
    if (overwritten_ || port_.contested()) return Saves::missing;
    const bool on_the_way = current_->can_save && current_->can_go_on;
    if (current_->checkpoint && !later_ && queue_.empty()) return Saves::now;
    if (on_the_way && queue_.empty()) return on_the_way_ ? Saves::soon : Saves::now;
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
    while (later && on_the_way_) turn(until_next_turn()); // the state before
    if (later) ask_for_state(point);
    if (word.save && !later) current_->pending ? want_pending_state(point) : save_at_rest(point);
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
    ranks_[0] = own_;
    while (!std::ranges::all_of(ranks_, is_here)) {
        if (Clock::now() - since >= leader_->alone_grace()) return;
        turn(until_next_turn());
        recall();
    }
    if (!queue_.empty()) return;
    const auto began = Clock::now();
    loop_.checkpoints().taken(point);
    try {
        adopt(*current_->checkpoint, point, false);
    } catch (const base::Error& error) {
        loop_.checkpoints().missed(error.what());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    loop_.checkpoints().measured(seconds, seconds);
}

void ProgramBody::ask_for_state(const TrialPoint& point) {
    loop_.checkpoints().taken(point);
    on_the_way_ = {point, next().decided + 1, Clock::now(), {}, {}, {}};
}

/// Takes over what the program has saved before it went on, once every rank has saved its part. A failed copy, and a
/// rank that has gone on without saving, are only reported.
void ProgramBody::take_state_on_the_way() {
    if (!on_the_way_) return;
    const auto goes_on = [&](const RankFacts& rank) { return rank.ended || rank.reports > on_the_way_->report; };
    const bool others_are_silent =
        on_the_way_->named && Clock::now() - *on_the_way_->named >= leader_->alone_grace(); // only rank 0 reports
    std::string why = on_the_way_->failed;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const RankFacts& rank = ranks_[r];
        if (rank.saved >= on_the_way_->report || (rank.reports == 0 && others_are_silent)) continue;
        const bool lacks = rank.unsaved >= on_the_way_->report;
        if (!lacks && !goes_on(rank)) return limit_best_save(r);
        if (why.empty())
            why = "rank " + std::to_string(r) + " of the program " +
                  (lacks ? "could not save its part of the state; the log of the trial says why"
                         : "was told to save its state, and did not say that it has");
    }
    const OnTheWay state = *std::exchange(on_the_way_, std::nullopt);
    const auto seconds_until = [&](Clock::time_point end) {
        return std::chrono::duration<double>(end - state.since).count();
    };
    try {
        if (why.empty() && !lies_in(folder_of(state.point.iteration), path_of(state.checkpoint)))
            why = "the program, which goes on, named a checkpoint outside of the folder that it was given: " +
                  state.checkpoint;
        if (!why.empty()) throw base::Error(why);
        if (const auto link = look_at_links(state.checkpoint))
            throw base::Error("the program, which goes on, saved a link to what it may change: '" + link->path +
                              "' leads to '" + link->target + "'; save a copy");
        adopt(state.checkpoint, state.point);
    } catch (const base::Error& error) {
        if (!end_) loop_.checkpoints().missed(error.what());
    }
    const auto now = Clock::now();
    loop_.checkpoints().measured(seconds_until(state.named.value_or(now)), seconds_until(now));
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
    if (!saved_ && failed_ && !failed_->text.empty()) lack_last_state(failure_text());
    if (!saved_) end_without_state();
    adopted_ = true;
    adopt_last(*saved_);
}

std::string ProgramBody::path_of(const std::string& checkpoint) const {
    return (fs::path(works_in_) / checkpoint).lexically_normal();
}

/// Tells the head where the checkpoint lies, if another trial could name the same place.
void ProgramBody::look_at_path(const std::string& checkpoint) {
    if (auto place = names_->look_at(checkpoint, path_of(checkpoint))) port_.named(std::move(*place));
}

/// The same for the places that links in the checkpoint lead to. Returns one of the links.
std::optional<NamedPaths::Link> ProgramBody::look_at_links(const std::string& checkpoint) {
    const auto links = names_->links_out_of(path_of(checkpoint));
    for (const auto& link : links)
        if (auto place = names_->look_at(link.path, link.target)) port_.named(std::move(*place));
    return links.empty() ? std::nullopt : std::optional(links.front());
}

bool ProgramBody::is_named_again(const trainables::ProgramReport& later) const {
    return current_ && current_->checkpoint && later.checkpoint &&
           path_of(*later.checkpoint) == path_of(*current_->checkpoint);
}

void ProgramBody::adopt(const std::string& checkpoint, const TrialPoint& point, bool may_move) {
    const fs::path source = path_of(checkpoint);
    const auto& start = assignment_.start;
    const storage::CheckpointKey key{start.trial, point.iteration, start.incarnation, start.attempt};
    look_at_path(checkpoint);
    static_cast<void>(look_at_links(checkpoint));
    try {
        auto reference =
            setting_.checkpoints->adopt(key, source.string(), may_move && lies_in(checkpoint_directory_, source));
        loop_.checkpoints().saved(std::move(reference), point.value);
    } catch (const base::IoError& error) { // a full disk is no fault of the trial
        throw CheckpointError(AttemptOutcome::unsaved, error.what());
    } catch (const base::Error& error) {
        throw base::Error("cannot take over the checkpoint that the program named: " + std::string(error.what()));
    }
}

// ---- second half of a turn: the ranks exchange their facts

/// Collective.
void ProgramBody::exchange() {
    check_end();
    settle();
    tell_others();
    obey();
}

void ProgramBody::check_end() {
    if (own_.ended || !child().exited()) return;
    own_.ended = true;
    const process::ChildExit& exit = *child().exited();
    using What = trainables::ProgramFailed::What;
    // A state that lacks the part of one rank is none; sys.exit() has a code of its own.
    const bool by_saving = failed_ && (failed_->what == What::saving || failed_->what == What::storage);
    if (by_saving && told_to_end_ && order_.save) lack_last_state(failure_text());
    if (is_saving_best() && (by_saving || own_.unsaved < best_asked_))
        throw CheckpointError(AttemptOutcome::unsaved,
                              by_saving ? failure_text() : while_saving(base_ + best_asked_, failure_text()));
    if (ended_well(exit, program())) return;
    need_own_part();
    if (!told_to_end_ && order_.end == End::go_on) process_failed(failure_text());
    // All results are in: an error during shutdown is logged and does not fail the trial.
    if (exit.signal == 0)
        note("rank " + std::to_string(group_.rank()) + " of the trial, told to end: " + exit.text() +
             (failed_ && !failed_->text.empty() ? ": " + failed_->text : ""));
}

/// Collective. Sums a vector in which each rank fills in its own part, and the leader its order.
void ProgramBody::tell_others() {
    if (group_.size() == 1) {
        if (port_.abort_flag().load()) throw ddp::Aborted("the trial was told to give up");
        if (own_ != ranks_[0] || next() != order_) news_ = Clock::now();
        ranks_[0] = own_;
        order_ = next();
        return;
    }
    const bool news = own_ != told_ || (leads() && next() != order_);
    if (group_.min_max(news ? 1 : 0).second == 0) return;
    constexpr std::size_t head = 8;
    constexpr std::size_t width = 7;
    std::vector<double> words(head + width * ranks_.size(), 0.0);
    if (leads()) {
        words[0] = static_cast<double>(next().decided);
        words[1] = static_cast<double>(next().end);
        words[2] = static_cast<double>(next().verb);
        words[3] = next().save ? 1.0 : 0.0;
        words[4] = next().needed ? 1.0 : 0.0;
        words[5] = static_cast<double>(next().save_at);
        words[6] = static_cast<double>(next().wanted);
        words[7] = next().is_best ? 1.0 : 0.0;
    }
    const std::size_t mine = head + width * static_cast<std::size_t>(group_.rank());
    words[mine] = static_cast<double>(own_.reports);
    words[mine + 1] = own_.ended ? 1.0 : 0.0;
    words[mine + 2] = own_.exploits ? 1.0 : 0.0;
    words[mine + 3] = static_cast<double>(own_.saved);
    words[mine + 4] = static_cast<double>(own_.settled);
    words[mine + 5] = own_.failed ? 1.0 : 0.0;
    words[mine + 6] = static_cast<double>(own_.unsaved);
    group_.all_reduce(words);
    order_ = {static_cast<std::uint64_t>(words[0]),
              static_cast<End>(words[1]),
              static_cast<Verb>(words[2]),
              words[3] != 0.0,
              words[4] != 0.0,
              static_cast<std::uint64_t>(words[5]),
              words[7] != 0.0,
              static_cast<std::uint64_t>(words[6])};
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const double* facts = &words[head + width * r];
        ranks_[r] = {static_cast<std::uint64_t>(facts[0]),
                     facts[1] != 0.0,
                     facts[2] != 0.0,
                     static_cast<std::uint64_t>(facts[3]),
                     static_cast<std::uint64_t>(facts[6]),
                     static_cast<std::uint64_t>(facts[4]),
                     facts[5] != 0.0};
    }
    told_ = own_;
    news_ = Clock::now();
}

/// A new folder each time, so that earlier checkpoints of the program are not adopted with it.
std::string ProgramBody::folder_of(base::Iteration iteration) const {
    return checkpoint_directory_ + "/" + std::to_string(iteration);
}

void ProgramBody::obey() {
    const auto answer = [this](Verb verb, bool save) {
        ++answered_;
        if (program().prints()) return;
        const auto folder = save ? make_folder(base_ + answered_) : std::nullopt;
        child().send(trainables::decision_line(verb, base_ + answered_, folder));
    };
    while (answered_ < std::min(own_.reports, order_.decided)) {
        const bool save = answered_ + 1 == order_.save_at;
        if (save && order_.is_best) best_asked_ = order_.save_at;
        answer(Verb::go_on, save);
    }
    const bool told = order_.end == End::deliver || (order_.end == End::deliver_to_first && leads());
    if (told && answered_ == order_.decided && own_.reports > order_.decided) {
        told_to_end_ = true;
        answer(order_.verb, order_.save);
    }
    if (order_.end == End::signal) {
        told_to_end_ = true;
        child().stop();
    }
}

} // namespace ranktune::trial
