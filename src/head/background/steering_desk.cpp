// SPDX-License-Identifier: Apache-2.0
#include "head/background/steering_desk.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/utf8.hpp"
#include "ranktune/study/parse.hpp"
#include "studydir/log_file.hpp"

namespace ranktune::head {

namespace {

constexpr std::chrono::seconds control_period{1};

/// Answers that are kept for `ranktune status`, and bytes of each of their texts: the file `status` stays small.
constexpr std::size_t most_recent = 5;
constexpr std::size_t most_text = 400;

std::string shortened(const std::string& text) {
    return base::as_utf8(text.size() <= most_text ? text : text.substr(0, most_text) + " ...");
}

} // namespace

SteeringDesk::SteeringDesk(Observer* next, storage::FileSystem& files, studydir::StudyDirectory directory,
                           storage::Journal& journal, space::SearchSpace space, process::Waker& waker,
                           base::LogSink& log)
    : Observer(next),
      files_(files),
      directory_(std::move(directory)),
      journal_(journal),
      space_(std::move(space)),
      waker_(waker),
      log_(log),
      errors_(log, "control"),
      thread_(
          [this] {
              look();
              return process::Background::Clock::now() + control_period;
          },
          process::Background::Clock::now()) {}

// ---- the loop

void SteeringDesk::attend(HeadMachine& head, const tuner::Tuner& tuner, base::StudyTime now) {
    if (!head.may_be_steered()) return;
    while (auto request = next_request()) {
        const study::Steering& ask = request->file.ask;
        if (tuner.state().requests.knows(ask.request)) { // the head before this one was killed before it could answer
            note(request->file.who, study::describe(ask), {true, "took effect before the last start"});
            settle_when_synced(request->name, "took effect before the last start", {});
            continue;
        }
        if (const std::string why = tuner.objection(ask); !why.empty()) {
            log_.write(base::LogLevel::warning, "not-steered",
                       {{"by", request->file.who}, {"what", study::describe(ask)}, {"why", why}});
            note(request->file.who, study::describe(ask), {false, why});
            settle(request->name, {false, why});
            continue;
        }
        study::SteerAsked event{request->file.who, ask};
        open_.push_back(*std::move(request));
        head.on_steering(std::move(event), now);
    }
}

void SteeringDesk::on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                              const HeadFigures& figures) {
    if (!open_.empty()) {
        for (const study::Record& record : records) {
            const auto* steered = std::get_if<study::Steered>(&record);
            if (steered == nullptr) continue;
            const auto found = std::ranges::find_if(
                open_, [&](const Request& each) { return each.file.ask.request == steered->ask.request; });
            if (found == open_.end()) continue;
            note(steered->who, steered->what, {true, ""});
            settle_when_synced(found->name, steered->what,
                               steered->spec.empty() ? "" : study::resolved_toml(tuner.spec()));
            open_.erase(found);
        }
    }
    Observer::on_records(tuner, records, figures);
}

std::optional<SteeringDesk::Request> SteeringDesk::next_request() {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->asked.empty()) return std::nullopt;
    Request request = std::move(shared_->asked.front());
    shared_->asked.pop_front();
    return request;
}

void SteeringDesk::note(const std::string& who, const std::string& what, studydir::Answer answer) {
    answer.words = shortened(answer.words);
    const std::lock_guard lock(shared_->mutex);
    auto& recent = shared_->recent;
    recent.push_back({studydir::wall_time_now(), shortened(who), shortened(what), std::move(answer)});
    if (recent.size() > most_recent) recent.pop_front();
}

std::vector<studydir::AnsweredRequest> SteeringDesk::recent() const {
    const std::lock_guard lock(shared_->mutex);
    return {shared_->recent.begin(), shared_->recent.end()};
}

void SteeringDesk::settle(std::string name, studydir::Answer answer) {
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->settled.push_back({std::move(name), std::move(answer)});
    }
    thread_.ask();
}

/// (The thread finds it with its next look.)
void SteeringDesk::settle_when_synced(std::string name, std::string words, std::string resolved) {
    journal_.when_synced(
        [shared = shared_, name = std::move(name), words = std::move(words), resolved = std::move(resolved)] {
            const std::lock_guard lock(shared->mutex);
            shared->settled.push_back({name, {true, words}});
            if (!resolved.empty()) shared->resolved = resolved;
        });
    thread_.ask();
}

void SteeringDesk::close(const std::string& why) {
    thread_.stop();
    answer();
    if (why.empty()) return;
    // Whoever asks learns from `status` that the study is over.
    errors_.attempt("the folder of requests", [&] {
        for (const std::string& name : studydir::requests_in(files_, directory_))
            errors_.attempt(name, [&] { studydir::answer_request(files_, directory_, name, {false, why}); });
    });
}

// ---- the thread

void SteeringDesk::look() {
    errors_.attempt("the folder of requests", [this] {
        if (!std::exchange(swept_, true))
            for (const std::string& name : studydir::answers_in(files_, directory_))
                errors_.attempt(name, [&] { studydir::remove_answer(files_, directory_, name); });
        answer();
        for (const std::string& name : studydir::requests_in(files_, directory_))
            if (!known_.contains(name) && errors_.attempt(name, [&] { read(name); })) known_.insert(name);
    });
}

void SteeringDesk::read(const std::string& name) {
    try {
        Request request{name, studydir::read_request(files_, directory_, name, space_)};
        const std::lock_guard lock(shared_->mutex);
        shared_->asked.push_back(std::move(request));
    } catch (const base::UsageError& error) {
        log_.write(base::LogLevel::warning, "control", {{"request", name}, {"error", error.what()}});
        note("", "request " + name, {false, error.what()});
        settle(name, {false, error.what()});
    }
    waker_.wake();
}

void SteeringDesk::answer() {
    std::deque<Settled> settled;
    std::string resolved;
    {
        const std::lock_guard lock(shared_->mutex);
        settled.swap(shared_->settled);
        resolved.swap(shared_->resolved);
    }
    const bool published = resolved.empty() || errors_.attempt("resolved.toml", [&] {
        studydir::publish_text(files_, directory_.resolved_file(), resolved, true);
    });
    std::erase_if(settled, [this](const Settled& each) {
        return errors_.attempt(each.name,
                               [&] { studydir::answer_request(files_, directory_, each.name, each.answer); });
    });
    // What is left is tried again.
    const std::lock_guard lock(shared_->mutex);
    shared_->settled.insert(shared_->settled.begin(), settled.begin(), settled.end());
    if (!published && shared_->resolved.empty()) shared_->resolved = std::move(resolved);
}

} // namespace ranktune::head
