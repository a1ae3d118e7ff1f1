// SPDX-License-Identifier: Apache-2.0
#include "head/background/preparer.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "head/external/program.hpp"
#include "process/background.hpp"
#include "process/output_limit.hpp"
#include "searchers/external.hpp"

namespace ranktune::head {

std::optional<study::StopRequested> look_at(const study::Prepared& prepared, const study::SearcherSpec& searcher,
                                            base::LogSink& log) {
    if (prepared.why.empty()) return std::nullopt;
    log.write(base::LogLevel::warning, "no-suggestion",
              {{"ticket", std::to_string(prepared.ticket)}, {"error", prepared.why}});
    if (!searchers::stops_on_failure(searcher)) return std::nullopt;
    return study::StopRequested{"the searcher failed: " + prepared.why};
}

namespace {

/// Of the program's standard error, beyond the first part: written at each failure, and at the end.
constexpr std::size_t most_last_words = std::size_t{64} << 10U;

/// For a calculation when nobody needs its result any more.
constexpr std::chrono::milliseconds a_moment{200};

searchers::Suggestion by_program(space::Configuration configuration) {
    return {std::move(configuration), {.model = "external"}};
}

} // namespace

struct Preparer::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<std::uint64_t, Work>> work;
    std::deque<study::Prepared> ready;
    std::function<void()> wake;
    process::OutputLimit output; ///< of the user's program, over all its starts
    bool calculating = false;    ///< work that cannot be ended
    bool quit = false;

    Shared(std::function<void()> wake_head, process::OutputLimit::Write say)
        : wake(std::move(wake_head)), output({.last = most_last_words}, std::move(say)) {}
};

Preparer::Preparer(std::function<void()> wake, const std::string& study_directory, Say say)
    : environment_(head::program_environment(study_directory)),
      shared_(std::make_shared<Shared>(std::move(wake), std::move(say))) {}

Preparer::~Preparer() {
    if (!thread_.joinable()) return;
    std::unique_lock lock(shared_->mutex);
    shared_->quit = true;
    shared_->output.finish();
    shared_->changed.notify_all();
    const bool idle = shared_->changed.wait_for(lock, a_moment, [this] { return !shared_->calculating; });
    lock.unlock();
    if (idle)
        thread_.join();
    else
        process::leave_behind(std::move(thread_));
}

void Preparer::prepare(std::uint64_t ticket, Work work) {
    const std::lock_guard lock(shared_->mutex);
    shared_->work.emplace_back(ticket, std::move(work));
    if (!thread_.joinable())
        thread_ = std::thread([shared = shared_, environment = environment_] { main(shared, environment); });
    shared_->changed.notify_all();
}

std::optional<study::Prepared> Preparer::prepared() {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ready.empty()) return std::nullopt;
    auto next = std::move(shared_->ready.front());
    shared_->ready.pop_front();
    return next;
}

void Preparer::main(const std::shared_ptr<Shared>& shared, const std::vector<std::string>& environment) {
    head::SearchProgram program(
        environment,
        [shared](std::string_view line) {
            const std::lock_guard lock(shared->mutex);
            if (!shared->quit) shared->output.line(line);
        },
        [shared] {
            const std::lock_guard lock(shared->mutex);
            return shared->quit;
        });
    std::unique_lock lock(shared->mutex);
    while (true) {
        shared->changed.wait(lock, [&] { return shared->quit || !shared->work.empty(); });
        if (shared->quit) return;
        const auto [ticket, work] = std::move(shared->work.front());
        shared->work.pop_front();
        const auto* question = work.target<searchers::ExternalQuestion>();
        shared->calculating = question == nullptr;
        lock.unlock();
        auto answer = question != nullptr ? answer_to(ticket, [&] { return by_program(program.answer(*question)); })
                                          : answer_to(ticket, work);
        lock.lock();
        shared->calculating = false;
        shared->changed.notify_all();
        if (shared->quit) return;
        if (!answer.configuration) shared->output.finish(); // what it said last may tell why
        shared->ready.push_back(std::move(answer));
        shared->wake();
    }
}

} // namespace ranktune::head
