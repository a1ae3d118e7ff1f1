// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.hpp"

#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "ranktune/study/parse.hpp"
#include "report/replay/replay.hpp"
#include "study/steering_file.hpp"
#include "support/known.hpp"

namespace ranktune::scenarios {
namespace {

study::Known known() {
    study::TrainableInfo stateless = ranktune::testing::any_trainable("stateless");
    stateless.can_checkpoint = false;
    return ranktune::testing::known({ranktune::testing::any_trainable("scenario"), stateless});
}

double value_of(const std::string& text) {
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::stod(text);
}

study::AttemptOutcome outcome_of(const std::string& text) {
    using O = study::AttemptOutcome;
    for (const O outcome : {O::paused, O::stopped, O::finished, O::failed, O::lost, O::unreadable, O::unsaved,
                            O::disturbed, O::unreachable, O::unstarted, O::stateless, O::oversized, O::permanent}) {
        if (study::name(outcome) == text) return outcome;
    }
    throw std::runtime_error("unknown outcome " + text);
}

std::string rest_of(std::istringstream& words) {
    std::string rest;
    std::getline(words >> std::ws, rest);
    return rest;
}

/// "rank 3: disk full", or without a rank.
study::Failure failure_of(std::istringstream& words) {
    study::Failure failure{rest_of(words)};
    std::istringstream place(failure.message);
    std::string word;
    std::uint32_t rank = 0;
    char colon = ' ';
    if (place >> word >> rank >> colon && word == "rank" && colon == ':') failure = {rest_of(place), rank};
    return failure;
}

std::string checkpoint_name(std::uint32_t trial, base::Iteration iteration) {
    return "checkpoints/" + std::to_string(trial) + "/" + std::to_string(iteration);
}

std::string seconds_of(base::StudyTime at) {
    std::ostringstream text;
    text << base::to_seconds(at.time_since_epoch());
    return text.str();
}

std::string text_of(const tuner::Output& output) {
    std::string text;
    for (const auto& record : output.records) text += render(record);
    for (const auto& command : output.commands) text += render(command);
    return text;
}

} // namespace

std::string Player::play(const std::string& command, const std::string& body) {
    Line line{std::istringstream(command), {}, {}};
    line.words >> line.verb;
    if (!live_ && line.verb != "study") throw std::runtime_error("a scenario begins with `study`");
    if (!begins(line, body) && !happens(line) && !shows(line))
        throw std::runtime_error("unknown scenario command: " + command);
    return line.text;
}

/// A study, its lives, and what is done between them. Returns whether the command is one of these, as do the others.
bool Player::begins(Line& line, const std::string& body) {
    auto& [words, verb, text] = line;
    if (verb == "study") {
        create(body, text);
    } else if (verb == "began") {
        begin(cluster_of(words), text);
    } else if (verb == "died") {
        Cluster cluster;
        std::uint32_t trial = 0;
        words >> cluster.workers;
        study::JobDeath death;
        if (words >> trial) death.notes.push_back({base::TrialId{trial}, attempt_of(trial), failure_of(words)});
        reload();
        begin(cluster, text, std::move(death));
    } else if (verb == "resume") {
        reload();
        begin(cluster_of(words), text);
    } else if (verb == "reload") {
        reload();
    } else if (verb == "change") {
        const auto later =
            study::parse_study(study::resolved_toml(live_->spec()), "scenario.toml", {rest_of(words)}, known());
        const std::string resolved = study::resolved_toml(later);
        everywhere([&](tuner::Tuner& core, tuner::Output& output) { core.change(resolved, "test", now_, output); },
                   text);
    } else if (verb == "reopen") {
        std::uint32_t trial = 0;
        std::string from;
        words >> trial >> from;
        everywhere([&](tuner::Tuner& core,
                       tuner::Output& output) { core.reopen(base::TrialId{trial}, from == "scratch", now_, output); },
                   text);
    } else {
        return false;
    }
    return true;
}

/// Events.
bool Player::happens(Line& line) {
    auto& [words, verb, text] = line;
    std::uint32_t number = 0; // of a trial or rank
    std::string word;
    double seconds = 0.0;
    if (verb == "report" || verb == "train") {
        report(words, verb == "train", text);
    } else if (verb == "saved") {
        base::Iteration iteration = 0;
        words >> number >> iteration >> word;
        save(number, iteration, word.empty() ? std::nullopt : std::optional(value_of(word)), text);
    } else if (verb == "over") {
        words >> number >> word;
        end(number, outcome_of(word), failure_of(words), text);
    } else if (verb == "rank_gone") {
        words >> number;
        event(study::RankGone{base::Rank{number}, "node down"}, text);
    } else if (verb == "rank_hung") {
        words >> number;
        event(study::RankGone{base::Rank{number}, "no report within 5 s", true}, text);
    } else if (verb == "stop") {
        event(study::StopRequested{rest_of(words)}, text);
    } else if (verb == "person_stops") {
        event(study::StopRequested{rest_of(words), study::Reason::draining, study::Asker::verb}, text);
    } else if (verb == "steer") {
        steer(words, text);
    } else if (verb == "timer" || verb == "at") {
        words >> seconds;
        now_ = base::from_ns(static_cast<std::int64_t>(seconds * 1e9));
        if (verb == "timer") event(study::TimerFired{}, text);
    } else if (verb == "deadline") {
        words >> word;
        study::DeadlineKnown known_deadline;
        if (word != "none") known_deadline.at = base::from_ns(static_cast<std::int64_t>(std::stod(word) * 1e9));
        event(known_deadline, text);
    } else {
        return false;
    }
    return true;
}

/// Views.
bool Player::shows(Line& line) const {
    auto& [words, verb, text] = line;
    if (verb == "mark") {
        const auto until = live_->state().deterministic_until;
        text = until ? "deterministic up to record " + std::to_string(*until) + "\n" : "deterministic\n";
    } else if (verb == "failures") {
        const base::Duration between = tuner::mean_time_between_failures(live_->state(), live_->spec().checkpoint);
        text = std::to_string(live_->state().interruptions) + ", one in " +
               study::duration_text(std::chrono::floor<std::chrono::milliseconds>(between)) + "\n";
    } else if (verb == "trials") {
        text = trials();
    } else if (verb == "digest") {
        report::LogicalDigest digest;
        for (const auto& record : journal_) digest.add(record);
        std::ostringstream hex;
        hex << std::hex << digest.value() << "\n";
        text = hex.str();
    } else if (verb == "rungs") {
        text = rungs();
    } else {
        return false;
    }
    return true;
}

void Player::create(const std::string& body, std::string& text) {
    journal_.clear();
    now_ = {};
    incarnation_ = 0;
    spec_ = study::parse_study(body, "scenario.toml", {}, known());
    live_ = std::make_unique<tuner::Tuner>(spec_);
    replayed_ = std::make_unique<tuner::Tuner>(spec_);
    restored_.clear();
    tuner::Output output;
    live_->create("uuid", study::resolved_toml(spec_), "test", output);
    check(text, output);
}

base::AttemptId Player::attempt_of(std::uint32_t trial) const {
    return live_->state().trial(base::TrialId{trial}).attempt.id;
}

void Player::report(std::istringstream& words, bool trains, std::string& text) {
    std::uint32_t trial = 0;
    base::Iteration iteration = 0;
    std::string word;
    words >> trial >> iteration >> word;
    const base::TrialId id{trial};
    std::vector<study::NamedMetric> metrics;
    if (word != "-")
        metrics.push_back({live_->spec().objective.metric, value_of(word)});
    else
        metrics.push_back({"something_else", 1.0});
    event(study::ReportArrived{id, attempt_of(trial), base::Incarnation{incarnation_}, iteration,
                               base::to_seconds(now_.time_since_epoch()), metrics},
          text);
    const auto verdict = live_->state().trial(id).verdict;
    if (!trains || verdict.verb == study::Verb::go_on) return;
    const bool best = live_->state().best == id;
    const bool pauses = verdict.verb == study::Verb::pause && (best || !live_->scheduler().out_of_reach(id));
    const bool is_finite = word != "-" && std::isfinite(value_of(word));
    if (pauses || best) save(trial, iteration, is_finite ? std::optional(value_of(word)) : std::nullopt, text);
    end(trial, pauses ? study::AttemptOutcome::paused : study::AttemptOutcome::stopped, {}, text);
}

void Player::save(std::uint32_t trial, base::Iteration iteration, std::optional<double> value, std::string& text) {
    study::CheckpointRef checkpoint{iteration, checkpoint_name(trial, iteration), 1, 1};
    checkpoint.generation = live_->state().trial(base::TrialId{trial}).generation();
    if (value) checkpoint.value = *value;
    event(study::CheckpointSaved{base::TrialId{trial}, attempt_of(trial), base::Incarnation{incarnation_}, checkpoint},
          text);
}

void Player::end(std::uint32_t trial, study::AttemptOutcome outcome, study::Failure failure, std::string& text) {
    event(study::AttemptOver{base::TrialId{trial}, attempt_of(trial), base::Incarnation{incarnation_}, outcome,
                             std::move(failure)},
          text);
}

/// `pause 3`, `add lr=0.1`, `set study.num_trials=9`; the number of the request first.
void Player::steer(std::istringstream& words, std::string& text) {
    study::Steering ask;
    std::string verb;
    words >> ask.request >> verb;
    std::vector<std::string> rest;
    for (std::string word; words >> word;) rest.push_back(word);
    for (std::uint8_t code = 0; code <= static_cast<std::uint8_t>(study::last_steer_verb); ++code)
        if (verb == name(study::SteerVerb{code})) ask.verb = study::SteerVerb{code};
    if (ask.verb == study::SteerVerb::add)
        ask.points.push_back(study::parse_point(rest, live_->spec().space));
    else if (ask.verb == study::SteerVerb::set)
        ask.settings = rest;
    else
        ask.trial = base::TrialId{static_cast<std::uint32_t>(std::stoul(rest.at(0)))};
    const std::uint64_t before = journal_.size();
    const std::string why = live_->objection(ask);
    event(study::SteerAsked{"ada@n0", ask}, text);
    if (!why.empty()) text += "refused: " + why + "\n";
    if (why.empty() == (journal_.size() == before) && !live_->state().requests.knows(ask.request))
        throw std::runtime_error("the objection and the decision differ");
}

/// A new core with the records so far.
void Player::reload() {
    live_ = std::make_unique<tuner::Tuner>(spec_);
    for (const auto& record : journal_) live_->apply(record);
}

Player::Cluster Player::cluster_of(std::istringstream& words) {
    Cluster cluster;
    std::string word;
    words >> cluster.workers;
    while (words >> word)
        words >> (word == "hosts" ? cluster.hosts : word == "gpus" ? cluster.with_gpu : cluster.ranks_per_gpu);
    return cluster;
}

void Player::begin(const Cluster& cluster, std::string& text, std::optional<study::JobDeath> death) {
    study::Began began;
    began.death = std::move(death);
    began.incarnation = base::Incarnation{++incarnation_};
    for (std::uint32_t i = 0; i < cluster.workers; ++i) {
        began.workers.push_back({base::Rank{i + 1}, "n" + std::to_string(i * cluster.hosts / cluster.workers),
                                 i < cluster.with_gpu ? 1U : 0U});
        if (cluster.ranks_per_gpu > 0) began.workers.back().device = "GPU-" + std::to_string(i / cluster.ranks_per_gpu);
    }
    event(began, text);
}

void Player::event(study::EventBody body, std::string& text) {
    const study::Event happened{now_, std::move(body)};
    everywhere([&](tuner::Tuner& core, tuner::Output& output) { core.step(happened, output); }, text);
}

void Player::everywhere(const std::function<void(tuner::Tuner&, tuner::Output&)>& act, std::string& text) {
    tuner::Output output;
    act(*live_, output);
    const std::string expected = text_of(output);
    for (std::size_t i = 0; i < restored_.size(); ++i) {
        tuner::Output again;
        act(*restored_[i], again);
        restored_[i]->check_invariants();
        if (text_of(again) != expected)
            throw std::runtime_error("a core that was restored after " + std::to_string(i + 1) +
                                     " steps decides something else:\n" + text_of(again) + "instead of\n" + expected);
    }
    check(text, output);
}

void Player::check(std::string& text, const tuner::Output& output) {
    text += text_of(output);
    if (const auto timer = live_->timer(); timer && timer != timer_)
        text += "> timer at " + seconds_of(*timer) + " s\n";
    timer_ = live_->timer();
    for (const auto& record : output.records) {
        study::Bytes bytes;
        study::encode(record, bytes);
        study::Decoder decoder(bytes);
        journal_.push_back(study::decode_record(decoder));
        replayed_->apply(journal_.back());
    }
    live_->check_invariants();
    replayed_->check_invariants();
    if (live_->digest() != replayed_->digest()) throw std::runtime_error("replay and live state differ");
    restored_.push_back(restored());
}

std::unique_ptr<tuner::Tuner> Player::restored() const {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    live_->snapshot(encoder);
    auto core = std::make_unique<tuner::Tuner>(live_->spec());
    study::Decoder decoder(bytes);
    core->restore(decoder);
    core->check_invariants();
    if (core->digest() != live_->digest())
        throw std::runtime_error("a restored snapshot differs from the state it was taken of");
    return core;
}

std::string Player::trials() const {
    std::ostringstream text;
    const auto& all = live_->state().trials;
    for (std::size_t i = 0; i < all.size(); ++i) {
        text << '#' << i << ' ' << study::name(all[i].phase) << " at " << all[i].iteration;
        if (!std::isnan(all[i].best)) text << " best " << all[i].best << " at " << all[i].best_iteration;
        text << '\n';
    }
    return text.str();
}

std::string Player::rungs() const {
    std::ostringstream text;
    for (const auto& rung : live_->scheduler().rungs()) {
        text << rung.iteration << ": " << rung.entries << " entries, " << rung.promoted << " promoted\n";
    }
    return text.str();
}

} // namespace ranktune::scenarios
