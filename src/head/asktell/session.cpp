// SPDX-License-Identifier: Apache-2.0
#include "head/asktell/session.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "process/program/json_input.hpp"
#include "process/program/messages.hpp"
#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "studydir/control.hpp"

namespace ranktune::head {
namespace {

using study::AttemptOutcome;
using study::TrialId;

constexpr std::chrono::seconds between_signs{1}; ///< of life

/// What is wrong with a request; nothing was done.
class Refused final : public base::Error {
  public:
    using base::Error::Error;
};

std::string numbered(TrialId trial) { return "trial " + std::to_string(trial.value()); }

std::string in_words(const study::Verdict& verdict) { return study::describe(verdict.reason, verdict.a, verdict.b); }

/// As the programs of trials get it: with the constants of [trainable].
space::Configuration whole_configuration(const study::StartTrial& start, const study::StudySpec& spec) {
    space::Configuration all = start.configuration;
    study::add_options(all, spec);
    return all;
}

/// What every report must have.
std::vector<std::string> needed_metrics(const study::Objective& objective) {
    std::vector<std::string> names;
    for (const auto& goal : objective.goals()) names.push_back(goal.metric);
    for (const auto& constraint : objective.constraints)
        if (std::ranges::find(names, constraint.metric) == names.end()) names.push_back(constraint.metric);
    return names;
}

} // namespace

void AskSession::set_head(head::HeadMachine& head, const tuner::Tuner& tuner, const process::ProcessClock& clock) {
    head_ = &head;
    tuner_ = &tuner;
    clock_ = &clock;
}

void AskSession::head_is_gone(const std::string& why, bool failed) {
    head_ = nullptr;
    why_gone_ = why;
    failed_ = failed;
}

std::optional<std::string> AskSession::answer(const std::string& line) {
    Json answer;
    Json id;
    try {
        const Json request = process::read_json(line);
        if (!request.is_object()) throw Refused("a request is an object of JSON in one line");
        id = request.value("id", Json());
        if (!id.is_null() && id == last_id_) return last_answer_;
        auto made = dispatch(request);
        if (!made) return std::nullopt;
        answer = std::move(*made);
    } catch (const Refused& refused) {
        answer = {{"error", refused.what()}};
    } catch (const base::FormatError& error) {
        answer = {{"error", error.what()}};
    } catch (const Json::exception& error) { // a value of another type than expected
        answer = {{"error", std::string("the request cannot be read: ") + error.what()}};
    }
    last_id_ = id;
    Json whole{{"id", std::move(id)}};
    whole.update(answer);
    last_answer_ = whole.dump(-1, ' ', false, Json::error_handler_t::replace);
    return last_answer_;
}

std::optional<AskSession::Json> AskSession::dispatch(const Json& request) {
    if (request.contains("ask")) return ask();
    if (request.contains("report")) return report(request);
    if (request.contains("tell")) return tell(request);
    if (request.contains("fail")) return fail(request);
    if (request.contains("close")) {
        closed_ = true;
        return Json::object();
    }
    throw Refused("unknown request; there are ask, report, tell, fail and close");
}

// ---- ask

/// Hands out a trial that waits, or makes room for the next one.
std::optional<AskSession::Json> AskSession::ask() {
    for (;;) {
        if (head_ == nullptr) return nothing_left();
        refuse_what_is_not_written();
        const bool takes_results = head_->may_be_steered();
        if (Seat* seat = ranks_.offered()) {
            if (takes_results && !seat->interrupt) return hand_out(*seat);
            give_back(*seat, AttemptOutcome::stopped);
            continue;
        }
        if (state().ended || state().draining) return nothing_left();
        if (!takes_results || computes()) return std::nullopt; // a head that ends at once will say why
        const auto told = std::ranges::find_if(ranks_.seats(), [](const Seat& seat) { return seat.held && seat.told; });
        if (told != ranks_.seats().end())
            give_back(*told, AttemptOutcome::stopped);
        else if (!grow())
            return nothing_left();
    }
}

/// A suggestion for the next trial is being computed, and none is ready.
bool AskSession::computes() const {
    const auto& tickets = state().tickets;
    return tickets.oldest_ready() == nullptr &&
           std::ranges::any_of(tickets.open(), [](const auto& ticket) { return !ticket.answered; });
}

/// One more trial at once. False: nothing is left for it.
bool AskSession::grow() {
    const study::StudySpec& spec = tuner_->spec();
    const auto live = state().trials.live_attempts();
    if (state().trials.size() >= spec.num_trials || live < spec.max_concurrent) return false;
    if (live >= ranks_.seats().size())
        throw Refused(std::to_string(live) +
                      " trials are asked for and not told yet, and there is no place for more: "
                      "tell one of them first");
    study::Steering ask{studydir::random_request(), study::SteerVerb::set, {}, {}, {}};
    ask.settings.push_back("study.max_concurrent=" + std::to_string(live + 1));
    if (!head_->may_be_steered() || !tuner_->objection(ask).empty()) return false;
    head_->on_steering({"ask", std::move(ask)}, clock_->now());
    write();
    return true;
}

AskSession::Json AskSession::hand_out(Seat& seat) {
    seat.asked = true;
    seat.asked_at = clock_->now();
    send(seat.rank, comm::Heartbeat{comm::key_of(seat.start), 1});
    const auto configuration = whole_configuration(seat.start, tuner_->spec());
    return {{"trial", seat.start.trial.value()},
            {"attempt", seat.start.attempt.value()},
            {"iteration", seat.start.iteration},
            {"seed", tuner_->spec().seed_of(seat.start.trial)},
            {"configuration", Json::parse(process::configuration_json(configuration))}};
}

AskSession::Json AskSession::nothing_left() const {
    if (head_ == nullptr && failed_) throw Refused(why_gone_);
    std::string why = why_gone_;
    if (head_ != nullptr) {
        const bool over = state().ended || state().draining;
        const auto reason = state().ended ? state().end_reason : state().drain_reason;
        const std::string& message = state().ended ? state().end_message : state().drain_message;
        why = !over             ? "all trials are asked for: tell those that are not told yet"
              : message.empty() ? study::describe(reason, 0, 0)
                                : message;
    }
    return {{"trial", nullptr}, {"why", why}};
}

// ---- report, tell, fail

/// The place of the trial that a request is about.
Seat& AskSession::seat_of(const Json& request, const char* verb) {
    const Json& number = request.at(verb);
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > 0xFFFF'FFFFU)
        throw Refused(std::string(verb) + " needs the number of a trial, such as 3");
    const TrialId trial{number.get<std::uint32_t>()};
    if (head_ == nullptr) throw Refused(numbered(trial) + ": the study is over: " + why_gone_);
    Seat* seat = ranks_.taken(trial);
    if (seat != nullptr && !seat->told) return *seat;
    if (trial.value() >= state().trials.size())
        throw Refused("there is no trial " + std::to_string(trial.value()) + "; so far " +
                      base::counted(state().trials.size(), "trial") + " began");
    const tuner::Trial& known = state().trial(trial);
    if (seat != nullptr || is_final(known.phase))
        throw Refused(numbered(trial) + " was told already: it is " + std::string(name(known.phase)));
    throw Refused(numbered(trial) + " is not asked for (it is " + std::string(name(known.phase)) +
                  "): ask() hands it out");
}

std::vector<study::NamedMetric> AskSession::metrics_of(const Json& request, TrialId trial) const {
    const auto given = request.find("metrics");
    if (given == request.end() || !given->is_object())
        throw Refused(numbered(trial) + ": metrics need to be an object: {\"loss\": 0.5}");
    std::vector<study::NamedMetric> metrics;
    for (const auto& [name, value] : given->items()) {
        if (!value.is_number() || !std::isfinite(value.get<double>()))
            throw Refused(numbered(trial) + ": " + name + " is " + value.dump() +
                          ", which is no finite number; a trial that failed is told with error=\"...\"");
        metrics.push_back({name, value.get<double>()});
    }
    const auto needed = needed_metrics(tuner_->spec().objective);
    for (const std::string& name : needed) {
        if (given->contains(name)) continue;
        std::vector<std::string> names;
        for (const auto& metric : metrics) names.push_back(metric.name);
        throw Refused(numbered(trial) + ": the result lacks '" + name + "'; the study needs " + base::join(needed) +
                      (names.empty() ? "" : ", and was given " + base::join(names)));
    }
    return metrics;
}

void AskSession::take_report(Seat& seat, std::vector<study::NamedMetric> metrics) {
    const auto& start = seat.start;
    const study::Iteration iteration = seat.iteration + 1;
    const double seconds = start.seconds + base::to_seconds(clock_->now() - seat.asked_at);
    send(seat.rank, study::ReportArrived{start.trial, start.attempt, start.incarnation, iteration, seconds, metrics});
    write();
    refuse_what_is_not_written();
    if (!seat.verdict) seat.verdict = seat.interrupt;
    const tuner::Attempt& attempt = state().trial(start.trial).attempt;
    if (attempt.id != start.attempt || attempt.iteration < iteration) {
        const std::string trial = numbered(start.trial); // which `seat` has no more
        const std::string why = seat.verdict ? in_words(*seat.verdict) : "the study is ending";
        give_back(seat, AttemptOutcome::stopped);
        throw Refused(trial + " is over, and this result is not recorded: " + why);
    }
    seat.iteration = iteration;
    seat.last = std::move(metrics);
}

AskSession::Json AskSession::report(const Json& request) {
    Seat& seat = seat_of(request, "report");
    const TrialId trial = seat.start.trial;
    auto metrics = metrics_of(request, trial);
    if (seat.verdict)
        throw Refused(numbered(trial) + " was to stop at iteration " + std::to_string(seat.iteration) + " (" +
                      in_words(*seat.verdict) + "): tell it");
    const auto given = request.find("iteration");
    if (given != request.end() && !given->is_null() && *given != seat.iteration + 1)
        throw Refused(numbered(trial) + ": iterations are reported one after the other; the next is " +
                      std::to_string(seat.iteration + 1) + ", not " + given->dump());
    take_report(seat, std::move(metrics));
    Json answer{{"stop", seat.verdict.has_value()}, {"iteration", seat.iteration}};
    if (seat.verdict) answer["why"] = in_words(*seat.verdict);
    return answer;
}

/// The result is one more report, unless the last one said the same.
AskSession::Json AskSession::tell(const Json& request) {
    Seat& seat = seat_of(request, "tell");
    const TrialId trial = seat.start.trial;
    const bool has_metrics = request.contains("metrics") && !request.at("metrics").is_null();
    if (!has_metrics && seat.last.empty())
        throw Refused(numbered(trial) + " has reported nothing: tell it with its result, or with error=\"...\"");
    if (has_metrics) {
        auto metrics = metrics_of(request, trial);
        const bool known = std::ranges::all_of(
            metrics, [&](const auto& metric) { return std::ranges::find(seat.last, metric) != seat.last.end(); });
        if (!known && seat.verdict)
            throw Refused(numbered(trial) + " was to stop at iteration " + std::to_string(seat.iteration) + " (" +
                          in_words(*seat.verdict) + "), and its last report is its result: tell it without a value");
        if (!known) take_report(seat, std::move(metrics));
    }
    // A trial that was only to pause would wait for another attempt; told, it has finished.
    if (seat.verdict && seat.verdict->verb != study::Verb::pause)
        seat.told = true;
    else
        record_end(seat, AttemptOutcome::finished);
    refuse_what_is_not_written();
    tend();
    return Json::object();
}

AskSession::Json AskSession::fail(const Json& request) {
    Seat& seat = seat_of(request, "fail");
    const auto message = request.find("message");
    if (message == request.end() || !message->is_string()) throw Refused("fail needs a message");
    record_end(seat, AttemptOutcome::failed, message->get<std::string>());
    tend();
    return Json::object();
}

// ---- to the head

template <class T>
void AskSession::send(base::Rank from, const T& message) {
    comm::encode_message(message, buffer_);
    head_->on_message(from, buffer_, clock_->now());
}

/// Writes what the head has decided; its commands come back through the ranks.
void AskSession::write() { head_->on_tick(clock_->now()); }

void AskSession::refuse_what_is_not_written() const {
    if (written_ != state().records)
        throw Refused(
            "the journal cannot be written, so nothing more is recorded: make room, and open the study again");
}

void AskSession::give_back(Seat& seat, AttemptOutcome outcome, const std::string& failure) {
    comm::GroupOver over;
    over.over = {seat.start.trial, seat.start.attempt, seat.start.incarnation, outcome, {failure, std::nullopt}};
    over.training_s = base::to_seconds(clock_->now() - seat.asked_at);
    const base::Rank rank = seat.rank;
    seat = {.rank = rank};
    send(rank, over);
    write();
}

/// give_back, for an end that is acknowledged.
void AskSession::record_end(Seat& seat, AttemptOutcome outcome, const std::string& failure) {
    const TrialId trial = seat.start.trial;
    const base::AttemptId attempt = seat.start.attempt;
    give_back(seat, outcome, failure);
    refuse_what_is_not_written();
    const tuner::Attempt& now = state().trial(trial).attempt;
    if (now.id == attempt && now.live)
        throw Refused(numbered(trial) + " is handed out again: the study is ending at once, and this is not recorded");
}

void AskSession::tend() {
    write(); // the head may have begun, or a suggestion be ready
    if (clock_->now() >= next_sign_) {
        next_sign_ = clock_->now() + between_signs;
        for (const Seat& seat : ranks_.seats()) {
            const bool trains = seat.held && seat.asked;
            send(seat.rank, trains ? comm::Heartbeat{comm::key_of(seat.start), 1} : comm::Heartbeat{});
        }
    }
    // No trial that nobody asked for can begin any more: the study may end.
    if (!state().draining && state().trials.size() < tuner_->spec().num_trials) return;
    for (Seat& seat : ranks_.seats())
        if (seat.held && seat.told) give_back(seat, AttemptOutcome::stopped);
}

void AskSession::leave() {
    if (state().ended) return;
    head_->on_stop_request({"the loop that asked for trials has ended", study::Reason::draining, study::Asker::none},
                           clock_->now());
    for (Seat& seat : ranks_.seats())
        if (seat.held) give_back(seat, AttemptOutcome::stopped);
}

} // namespace ranktune::head
