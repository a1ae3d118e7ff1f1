// SPDX-License-Identifier: Apache-2.0
// CPU cost of the head per trial of zero work, without MPI and disks: receiving messages, core, encoding records,
// sending messages. Fake workers answer at once; creating their messages is part of the figure, so it is an upper
// bound. And the longest round: CPU time for which all messages wait, such as that of a searcher's suggestion. What a
// searcher prepares ahead is calculated between two rounds, as by the thread that does it.
//
//   bench_head [TRIALS [WORKERS [RANKS PER TRIAL [SEARCHER [PARAMETERS [OBJECTIVES]]]]]]
//   (defaults 100000, 4, 2, random, 1, 1)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/transport.hpp"
#include "head/head_machine.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support.hpp"

namespace {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::comm;

struct Size {
    std::uint32_t trials = 100000;
    std::uint32_t workers = 4;
    std::uint32_t ranks = 2;
    std::string searcher = "random";
    std::uint32_t parameters = 1;
    std::uint32_t objectives = 1;
};

study::StudySpec make_spec(const Size& size) {
    study::StudySpec spec;
    spec.name = "head";
    spec.objective = {"loss", study::Mode::min};
    for (std::uint32_t i = 1; i < size.objectives; ++i)
        spec.objective.others.push_back({"loss" + std::to_string(i), study::Mode::min});
    spec.num_trials = size.trials;
    spec.resources.ranks = size.ranks;
    std::vector<space::Parameter> parameters;
    for (std::uint32_t i = 0; i < size.parameters; ++i)
        parameters.push_back({"lr" + std::to_string(i), space::FloatRange{1e-4, 1.0, true, 0.0}, {}});
    spec.space = space::SearchSpace(std::move(parameters));
    spec.searcher = searchers::chosen(size.searcher);
    spec.scheduler = schedulers::chosen("fifo");
    return spec;
}

struct Duties final : HeadDuties {
    void prepare(std::uint64_t ticket, searchers::Searcher::Preparation work) override {
        asked.emplace_back(ticket, std::move(work));
    }
    std::optional<study::Prepared> prepared() override {
        if (ready.empty()) return std::nullopt;
        auto first = std::move(ready.front());
        ready.pop_front();
        return first;
    }
    void work() {
        for (auto& [ticket, preparation] : std::exchange(asked, {})) {
            auto suggestion = preparation();
            ready.push_back({ticket, std::move(suggestion.configuration), {}, suggestion.basis});
        }
    }
    void delete_checkpoint(const study::DeleteCheckpoint&) override {}
    void publish(const study::EndStudy&) override {}
    bool published() override { return true; }

    std::vector<std::pair<std::uint64_t, searchers::Searcher::Preparation>> asked;
    std::deque<study::Prepared> ready;
};

/// All workers in one: leaders answer StartTrial with a report and Decide with the end, everybody says Bye.
struct AllWorkers final : Outbox {
    struct Answer {
        base::Rank from;
        study::Bytes bytes;
    };
    void send(base::Rank to, std::span<const std::byte> bytes) override {
        ++received;
        decode_message(bytes, message);
        if (const auto* start = std::get_if<study::StartTrial>(&message); start != nullptr && start->ranks[0] == to) {
            report.trial = start->trial;
            report.attempt = start->attempt;
            report.incarnation = start->incarnation;
            for (std::size_t i = 0; i < report.metrics.size(); ++i)
                report.metrics[i].value = static_cast<double>(start->trial.value() * (1 + 6 * i) % 1009);
            answer(to, report);
        } else if (const auto* decide = std::get_if<study::Decide>(&message); decide != nullptr) {
            answer(to,
                   GroupOver{{decide->trial, decide->attempt, decide->incarnation, study::AttemptOutcome::stopped, {}},
                             0.0,
                             1e-6});
        } else if (std::holds_alternative<Leave>(message)) {
            answer(to, Bye{});
        }
    }
    template <class T>
    void answer(base::Rank from, const T& what) {
        if (used == answers.size()) answers.emplace_back();
        answers[used].from = from;
        encode_message(what, answers[used++].bytes);
    }
    Message message;
    study::ReportArrived report{{}, {}, {}, 1, 1e-6, {{"loss", 0.0}}};
    std::vector<Answer> answers; ///< the first `used` are valid; memory is reused
    std::size_t used = 0;
    std::uint64_t received = 0;
};

} // namespace

int main(int argc, char** argv) {
    Size size;
    if (argc > 4) size.searcher = argv[4];
    std::uint32_t* const numbers[] = {&size.trials, &size.workers,    &size.ranks,
                                      nullptr,      &size.parameters, &size.objectives};
    for (int i = 1; i < argc && i <= 6; ++i)
        if (numbers[i - 1] != nullptr) *numbers[i - 1] = static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
    tuner::Tuner tuner(make_spec(size));
    tuner::Output created;
    tuner.create("bench", "", "bench", created);
    bench::EncodingSink sink;
    AllWorkers all;
    for (std::uint32_t i = 1; i < size.objectives; ++i) all.report.metrics.push_back({"loss" + std::to_string(i), 0.0});
    Duties duties;
    Observer observer;
    base::NullLog log;
    HeadOptions options;
    options.incarnation = base::Incarnation(1);
    options.workers = size.workers;
    options.version = "bench";
    base::StudyTime now{};
    HeadMachine head(options, tuner, sink, all, duties, observer, log, now);
    double seconds = 0.0;
    double longest = 0.0;
    std::uint64_t messages = 0;
    std::vector<AllWorkers::Answer> round;
    for (std::uint32_t r = 1; r <= size.workers; ++r)
        all.answer(base::Rank(r), Hello{protocol_version, "bench", "node", 0});
    while (!head.end()) {
        now += std::chrono::microseconds(50);
        std::swap(round, all.answers);
        const std::size_t count = std::exchange(all.used, 0);
        const double begin = bench::cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (std::size_t i = 0; i < count; ++i) head.on_message(round[i].from, round[i].bytes, now);
        messages += count;
        head.on_tick(now);
        const double took = bench::cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
        seconds += took;
        longest = std::max(longest, took);
        duties.work();
    }
    std::printf(
        "%u trials on %u workers, %u ranks each, %s: %.2f us of CPU per trial, longest round %.3f ms, %.1f messages in "
        "and %.1f out, %.0f journal bytes\n",
        size.trials, size.workers, size.ranks, size.searcher.c_str(), 1e6 * seconds / size.trials, 1e3 * longest,
        static_cast<double>(messages) / size.trials, static_cast<double>(all.received) / size.trials,
        static_cast<double>(sink.bytes) / size.trials);
    return tuner.state().trials.size() == size.trials ? 0 : 1;
}
