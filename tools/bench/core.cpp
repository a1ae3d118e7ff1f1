// SPDX-License-Identifier: Apache-2.0
// Cost of the tuning core alone over n trials, without MPI and disks: ASHA (promote, eta 3, rungs 1 3 9 27), or another
// scheduler. Measures the CPU time of creating and decoding each report, the step, and encoding its records. One line
// per case: the median of the repetitions.
//   bench_core [REPETITIONS [TRIALS [random|rising|falling|all [SCHEDULER [OPTION=VALUE...]]]]]
// TRIALS 0: all numbers of trials. The options are those of `[scheduler]` in a study file:
//   bench_core 5 0 random asha variant=stop        bench_core 5 0 random topk first=3

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>

#include "options.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/codec.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support.hpp"
#include "tuner/tuner.hpp"

namespace {

using namespace ranktune;

enum class Values { random, rising, falling };
constexpr std::string_view value_names[] = {"random", "rising", "falling"};
constexpr std::uint32_t workers = 256;

/// With rising values nearly every trial is promoted in place and trains to the end: with 27 iterations only 4 of 27
/// reports would be at a rung. With 9 iterations it is a third, similar to the other cases.
base::Iteration ceiling_for(Values values) { return values == Values::rising ? 9 : 27; }

/// The scheduler that is measured.
struct Choice {
    std::string scheduler = "asha";
    std::vector<study::OptionValue> options;
    [[nodiscard]] bool explores() const { return scheduler == "pbt"; }
};

Choice choice_of(int argc, char** argv) {
    Choice choice;
    if (argc > 4) choice.scheduler = argv[4];
    for (int i = 5; i < argc; ++i) choice.options.push_back(bench::option_of(argv[i]));
    const bool has_interval = std::ranges::any_of(choice.options, [](const auto& o) { return o.option == "interval"; });
    if (choice.explores() && !has_interval) choice.options.push_back({"interval", std::int64_t{3}});
    return choice;
}

study::StudySpec make_spec(std::uint32_t trials, Values values, const Choice& choice) {
    study::StudySpec spec;
    spec.name = "core";
    spec.objective = {"loss", study::Mode::min};
    spec.num_trials = trials;
    spec.max_iterations = ceiling_for(values);
    spec.seed = 1;
    spec.trainable.name = "bench";
    std::vector<space::Parameter> parameters;
    for (int i = 0; i < 4; ++i) {
        parameters.push_back({"lr" + std::to_string(i), space::FloatRange{1e-4, 1.0, true, 0.0}, std::nullopt});
        parameters.push_back({"n" + std::to_string(i), space::IntRange{1, 1000, false, 1}, std::nullopt});
    }
    spec.space = space::SearchSpace(std::move(parameters));
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen(choice.scheduler, choice.options);
    if (choice.explores()) spec.scheduler.explore = {{"lr0", {0.8, 1.2}}, {"lr1", {0.8, 1.2}}};
    return spec;
}

struct Running {
    base::TrialId trial;
    base::AttemptId attempt;
    base::Iteration next = 1;
};

study::CheckpointSaved saved(const study::Decide& decide, std::uint32_t generation) {
    study::CheckpointRef checkpoint{
        .iteration = decide.iteration,
        .path = std::to_string(decide.trial.value()) + "/" + std::to_string(decide.iteration),
        .bytes = 1,
        .digest = 1};
    checkpoint.generation = generation;
    return {decide.trial, decide.attempt, base::Incarnation{1}, std::move(checkpoint)};
}

struct Result {
    std::uint64_t reports = 0;
    std::uint64_t at_rung = 0;
    double journal_bytes = 0.0;
    double bytes_per_trial = 0.0;
};

double loss_of(Values values, std::uint32_t trial, base::Iteration iteration, std::uint32_t trials) {
    const double noise = base::philox4x32({static_cast<std::uint32_t>(iteration), trial, 0, 0}, {1, 2})[0] * 0x1p-32;
    const double rank = static_cast<double>(trial) / trials;
    const double base = values == Values::random ? noise : values == Values::rising ? 1.0 - rank : rank;
    return base + 0.01 / static_cast<double>(iteration);
}

std::size_t allocated() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd; // from the heap, and mapped separately
}

/// A study, played as fast as possible.
class Play {
  public:
    Play(std::uint32_t trials, Values values, const Choice& choice)
        : trials_(trials), values_(values), explores_(choice.explores()), tuner_(make_spec(trials, values, choice)) {}

    Result run();

  private:
    /// Encodes the records of the last step.
    void write(Result& result);
    /// Does what the last step commanded. Returns whether the study has ended.
    bool obey();
    void decided(const study::Decide& decide);
    /// The next report, as it arrives: decoded from bytes.
    void report();

    std::uint32_t trials_;
    Values values_;
    bool explores_;
    tuner::Tuner tuner_;
    tuner::Output out_;
    std::deque<Running> running_;
    std::vector<study::Event> inbox_;
    study::Bytes wire_;
    study::Bytes journal_;
    std::int64_t now_ = 0;
};

void Play::write(Result& result) {
    journal_.clear();
    study::encode(out_.records, journal_);
    for (const auto& record : out_.records) {
        if (const auto* report = std::get_if<study::Reported>(&record)) {
            ++result.reports;
            if (report->verdict.reason != study::Reason::below_rung) ++result.at_rung;
        }
    }
    result.journal_bytes += static_cast<double>(journal_.size());
}

void Play::decided(const study::Decide& decide) {
    const bool trains = decide.verdict.verb == study::Verb::go_on;
    const bool gives_up = explores_ && decide.verdict.verb == study::Verb::discard;
    if ((!trains && !gives_up) || decide.verdict.reason == study::Reason::published)
        inbox_.push_back({base::from_ns(now_), saved(decide, tuner_.state().trial(decide.trial).generation())});
    if (trains) {
        running_.push_back({decide.trial, decide.attempt, decide.iteration + 1});
        return;
    }
    const auto outcome =
        decide.verdict.verb == study::Verb::pause ? study::AttemptOutcome::paused : study::AttemptOutcome::stopped;
    inbox_.push_back(
        {base::from_ns(now_), study::AttemptOver{decide.trial, decide.attempt, base::Incarnation{1}, outcome, {}}});
}

bool Play::obey() {
    bool ended = false;
    for (const auto& command : out_.commands) {
        if (const auto* start = std::get_if<study::StartTrial>(&command))
            running_.push_back({start->trial, start->attempt, start->iteration + 1});
        else if (const auto* decide = std::get_if<study::Decide>(&command))
            decided(*decide);
        else if (std::holds_alternative<study::EndStudy>(command))
            ended = true;
    }
    return ended;
}

void Play::report() {
    if (running_.empty()) {
        std::fprintf(stderr, "the study neither runs nor ends\n");
        std::exit(1);
    }
    const Running who = running_.front();
    running_.pop_front();
    now_ += 1000;
    wire_.clear();
    study::Encoder encoder(wire_);
    encoder.varint(who.trial.value());
    encoder.varint(who.attempt.value());
    encoder.varint(who.next);
    encoder.string("loss");
    encoder.f64(loss_of(values_, who.trial.value(), who.next, trials_));
    study::Decoder decoder(wire_);
    study::ReportArrived report;
    report.trial = base::TrialId{static_cast<std::uint32_t>(decoder.varint())};
    report.attempt = base::AttemptId{static_cast<std::uint32_t>(decoder.varint())};
    report.incarnation = base::Incarnation{1};
    report.iteration = decoder.varint();
    std::string name = decoder.string();
    const double value = decoder.f64();
    report.metrics.push_back({std::move(name), value});
    report.seconds = 1e-9 * static_cast<double>(now_);
    const bool waits = report.iteration >= tuner_.state().trial(who.trial).decision_point;
    inbox_.push_back({base::from_ns(now_), std::move(report)});
    if (!waits) running_.push_back({who.trial, who.attempt, who.next + 1});
}

Result Play::run() {
    tuner_.create("bench", "bench", "bench", out_);
    study::Began began;
    began.incarnation = base::Incarnation{1};
    for (std::uint32_t rank = 1; rank <= workers; ++rank)
        began.workers.push_back({base::Rank{rank}, "n" + std::to_string(rank / 8), 0});
    Result result;
    inbox_.push_back({base::from_ns(now_), began});
    while (true) {
        for (const auto& event : inbox_) tuner_.step(event, out_);
        inbox_.clear();
        write(result);
        const bool ended = obey();
        out_.clear();
        if (ended) break;
        if (inbox_.empty()) report();
    }
    out_ = {}; // the last batch closes all remaining trials
    study::Bytes().swap(journal_);
    return result;
}

/// `weighed`: also measures memory. That is slow with many free blocks, so it is not part of the timing.
Result run(std::uint32_t trials, Values values, const Choice& choice, bool weighed = false) {
    const std::size_t memory_before = weighed ? allocated() : 0;
    Play play(trials, values, choice);
    Result result = play.run();
    if (weighed) result.bytes_per_trial = static_cast<double>(allocated() - memory_before) / trials;
    return result;
}

} // namespace

int main(int argc, char** argv) {
    const int repetitions = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
    std::vector<std::uint32_t> sizes{1000, 10000, 100000};
    if (argc > 2) sizes = {static_cast<std::uint32_t>(std::max(1, std::atoi(argv[2])))};
    if (argc > 2 && sizes.front() == 1 && std::string_view(argv[2]) == "0") sizes = {1000, 10000, 100000};
    std::string_view only = argc > 3 ? argv[3] : "";
    Choice choice;
    try {
        choice = choice_of(argc, argv);
        [[maybe_unused]] const auto spec = make_spec(1, Values::random, choice); // mistakes show before the first case
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
    if (only == "all") only = "";
    if (!only.empty() && std::ranges::find(value_names, only) == std::end(value_names)) {
        std::fprintf(stderr, "values are random, rising or falling, not '%s'\n", argv[3]);
        return 2;
    }
    std::printf("%8s %8s %12s %10s %16s %14s %14s\n", "trials", "values", "reports", "at a rung", "reports/CPU-s",
                "bytes/trial", "journal B/rep");
    for (const Values values : {Values::random, Values::rising, Values::falling}) {
        if (!only.empty() && only != value_names[static_cast<int>(values)]) continue;
        for (const std::uint32_t trials : sizes) {
            std::vector<double> rates;
            Result result;
            for (int i = 0; i < repetitions; ++i) {
                // Small studies are repeated within a measurement, so that each takes long enough to be timed.
                const std::uint32_t inner = std::max(1U, 30000U / trials);
                const double before = bench::cpu_seconds();
                std::uint64_t reports = 0;
                for (std::uint32_t k = 0; k < inner; ++k) {
                    result = run(trials, values, choice);
                    reports += result.reports;
                }
                rates.push_back(static_cast<double>(reports) / (bench::cpu_seconds() - before));
            }
            std::sort(rates.begin(), rates.end());
            result = run(trials, values, choice, true);
            std::printf("%8u %8s %12llu %9.0f%% %16.0f %14.0f %14.1f\n", trials,
                        value_names[static_cast<int>(values)].data(), static_cast<unsigned long long>(result.reports),
                        100.0 * static_cast<double>(result.at_rung) / static_cast<double>(result.reports),
                        rates[rates.size() / 2], result.bytes_per_trial,
                        result.journal_bytes / static_cast<double>(result.reports));
        }
    }
    return 0;
}
