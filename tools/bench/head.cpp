// SPDX-License-Identifier: Apache-2.0
// CPU cost of the head per trial of zero work, without MPI and disks: receiving messages, core, encoding records,
// sending messages. Fake workers answer at once; creating their messages is part of the figure, so it is an upper
// bound.
//
//   bench_head [TRIALS] [WORKERS] [RANKS PER TRIAL]     (defaults 100000, 4, 2)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "head/head_machine.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support.hpp"

namespace {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::wire;

study::StudySpec make_spec(std::uint32_t trials, std::uint32_t ranks) {
    study::StudySpec spec;
    spec.name = "head";
    spec.objective = {"loss", study::Mode::min};
    spec.num_trials = trials;
    spec.resources.ranks = ranks;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{1e-4, 1.0, true, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen("fifo");
    return spec;
}

struct Duties final : HeadDuties {
    void prepare(std::uint64_t, searchers::Searcher::Preparation) override {}
    std::optional<study::Prepared> prepared() override { return std::nullopt; }
    void delete_checkpoint(const study::DeleteCheckpoint&) override {}
    void publish(const study::EndStudy&) override {}
    bool published() override { return true; }
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
            report.metrics[0].value = static_cast<double>(start->trial.value() % 1009);
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
    const auto argument = [&](int i, std::uint32_t otherwise) {
        return argc > i ? static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
    };
    const std::uint32_t trials = argument(1, 100000);
    const std::uint32_t workers = argument(2, 4);
    const std::uint32_t ranks = argument(3, 2);
    tuner::Tuner tuner(make_spec(trials, ranks));
    tuner::Output created;
    tuner.create("bench", "", "bench", created);
    bench::EncodingSink sink;
    AllWorkers all;
    Duties duties;
    Observer observer;
    base::NullLog log;
    HeadOptions options;
    options.incarnation = base::Incarnation(1);
    options.workers = workers;
    options.version = "bench";
    base::StudyTime now{};
    HeadMachine head(options, tuner, sink, all, duties, observer, log, now);
    const double begin = bench::cpu_seconds();
    std::uint64_t messages = 0;
    std::vector<AllWorkers::Answer> round;
    for (std::uint32_t r = 1; r <= workers; ++r) all.answer(base::Rank(r), Hello{protocol_version, "bench", "node", 0});
    while (!head.end()) {
        now += std::chrono::microseconds(50);
        std::swap(round, all.answers);
        const std::size_t count = std::exchange(all.used, 0);
        for (std::size_t i = 0; i < count; ++i) head.on_message(round[i].from, round[i].bytes, now);
        messages += count;
        head.on_tick(now);
    }
    const double seconds = bench::cpu_seconds() - begin;
    std::printf(
        "%u trials on %u workers, %u ranks each: %.2f us of CPU per trial, %.1f messages in and %.1f out, "
        "%.0f journal bytes\n",
        trials, workers, ranks, 1e6 * seconds / trials, static_cast<double>(messages) / trials,
        static_cast<double>(all.received) / trials, static_cast<double>(sink.bytes) / trials);
    return tuner.state().trials.size() == trials ? 0 : 1;
}
