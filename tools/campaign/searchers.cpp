// SPDX-License-Identifier: Apache-2.0
// The soak of the searchers: studies of every searcher on the core alone, in virtual time, on 32 groups: mixed spaces,
// several schedulers, repeats, constraints, deterministic ones, values that are not finite, failures, suggestions that
// come late or fail, and heads that die and go on from a snapshot.
//
//   campaign_searchers [EVENTS [TRIALS [SEARCHER]]]      (defaults 1000000, 400, all)
//
// EVENTS are shared out over the searchers, TRIALS is the size of a study. After every death the state from the
// snapshot, and that from the records alone, must be that of the head; invariants are checked all along. Prints a line
// per searcher: events, trials, heads, suggestions, and the longest and the thousandth longest round of the core, in
// CPU time. Exits 1 when anything is wrong.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/codec.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "tuner/tuner.hpp"

namespace {

using namespace ranktune;
using base::RngStream;
using study::Verb;

constexpr std::uint32_t groups = 32;

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// What a searcher has gone through.
struct Tally {
    std::uint64_t events = 0;
    std::uint64_t trials = 0;
    std::uint64_t studies = 0;
    std::uint64_t heads = 0;
    std::uint64_t prepared = 0;
    std::uint64_t stopgaps = 0;
    std::vector<float> rounds; ///< seconds of CPU time
};

space::Parameter parameter(const char* name, const char* call, const char* condition = nullptr) {
    space::Parameter made{name, space::parse_domain(call), std::nullopt};
    if (condition != nullptr) made.condition = space::Condition::parse(condition);
    return made;
}

space::SearchSpace space_for(const study::SearcherInfo& searcher, std::uint64_t number) {
    if (searcher.whole_space)
        return space::SearchSpace({parameter("a", "grid([1, 2, 3, 4, 5, 6, 7, 8])"), parameter("b", "randint(0, 50)")});
    std::vector<space::Parameter> parameters{
        parameter("x", "uniform(0, 1)"), parameter("lr", "loguniform(1e-5, 1)"), parameter("layers", "randint(1, 9)"),
        parameter("batch", "qlograndint(16, 256, 16)"), parameter("order", "choice([1, 2, 4], ordered=true)")};
    if (!searcher.only_numbers && number % 2 == 1) {
        parameters.push_back(parameter("kind", "choice(['a', 'b', 'c'])"));
        parameters.push_back(parameter("m", "uniform(0.5, 1)", "kind == 'b'"));
    }
    return space::SearchSpace(std::move(parameters));
}

study::SchedulerSpec scheduler_for(std::uint64_t number) {
    switch (number % 4) {
        case 1:
            return schedulers::chosen("asha");
        case 2:
            return schedulers::chosen("median");
        case 3:
            return schedulers::chosen("asha", {{"variant", "stop"}});
        default:
            return schedulers::chosen("fifo");
    }
}

study::StudySpec spec_of(const std::shared_ptr<const study::SearcherInfo>& searcher, std::uint64_t number,
                         std::uint32_t trials) {
    study::StudySpec spec;
    spec.name = "soak";
    spec.objective = {"loss", study::Mode::min};
    if (number % 3 == 2) spec.objective.constraints.push_back({"memory", 0.7, true});
    spec.max_iterations = 9;
    spec.seed = number;
    spec.trainable.name = "soak";
    spec.deterministic = number % 8 == 5;
    if (spec.deterministic) spec.max_concurrent = groups;
    spec.space = space_for(*searcher, number);
    spec.searcher = study::chosen(searcher);
    spec.scheduler = scheduler_for(number);
    if (number % 8 == 4) spec.searcher.repeats = 2;
    spec.num_trials = trials - trials % spec.searcher.repeats;
    spec.failure.tolerate = 1.0;
    spec.failure.in_a_row = 1'000'000;
    return spec;
}

/// A study from its beginning to its end.
class Soak {
  public:
    Soak(study::StudySpec spec, std::uint64_t number, Tally& tally)
        : spec_(std::move(spec)),
          random_(number, base::user_purpose(0), 0),
          tally_(tally),
          core_(std::make_unique<tuner::Tuner>(spec_)),
          twin_(std::make_unique<tuner::Tuner>(spec_)) {
        core_->create("soak", "soak", "soak", out_);
        follow();
    }

    void run() {
        begin();
        while (!over_) {
            if (random_.below(700) == 0)
                die();
            else
                next();
        }
        core_->check_invariants();
        ++tally_.studies;
        tally_.trials += core_->state().trials.size();
        for (const auto& trial : core_->state().trials) {
            tally_.prepared += trial.origin.kind == study::Origin::Kind::ticket ? 1 : 0;
            tally_.stopgaps += trial.origin.kind == study::Origin::Kind::stopgap ? 1 : 0;
        }
    }

  private:
    struct Group {
        base::TrialId trial;
        base::AttemptId attempt;
        base::Iteration iteration = 0;
        base::Iteration decision_point = 1;
    };

    void step(study::EventBody body) {
        ++tally_.events;
        now_ += 1000;
        const study::Event event{base::from_ns(now_), std::move(body)};
        const double before = thread_seconds();
        core_->step(event, out_);
        tally_.rounds.push_back(static_cast<float>(thread_seconds() - before));
        follow();
        if (tally_.events % 256 == 0) core_->check_invariants();
    }

    /// Applies the records to the twin, and takes the commands.
    void follow() {
        for (const study::Record& record : out_.records) twin_->apply(record);
        const std::vector<study::Command> commands = std::move(out_.commands);
        out_.clear();
        for (const study::Command& command : commands) std::visit(*this, command);
    }

    void begin() {
        ++tally_.heads;
        running_.clear();
        tickets_.clear();
        study::Began began;
        began.incarnation = incarnation_ = incarnation_.next();
        for (std::uint32_t rank = 1; rank <= groups; ++rank)
            began.workers.push_back({base::Rank{rank}, "n" + std::to_string(rank / 8), 0});
        step(std::move(began));
    }

    /// The head dies. The next one goes on from a snapshot.
    void die() {
        study::Bytes bytes;
        study::Encoder out(bytes);
        core_->snapshot(out);
        auto restored = std::make_unique<tuner::Tuner>(spec_);
        study::Decoder in(bytes);
        restored->restore(in);
        if (restored->digest() != core_->digest()) throw std::logic_error("a snapshot is another state");
        if (twin_->digest() != core_->digest()) throw std::logic_error("the records are another state");
        core_ = std::move(restored);
        begin();
    }

    void next() {
        const bool answers = !tickets_.empty() && (running_.empty() || random_.below(3) == 0);
        if (answers) return answer();
        if (running_.empty()) return step(study::TimerFired{});
        const auto at = running_.begin() + static_cast<std::ptrdiff_t>(random_.below(running_.size()));
        const Group group = *at;
        running_.erase(at);
        if (group.iteration > 0 && random_.below(60) == 0) return fail(group);
        report(group);
    }

    void answer() {
        const std::uint64_t ticket = tickets_.front();
        tickets_.pop_front();
        const auto work = core_->preparation(ticket);
        if (!work) return;
        if (random_.below(50) == 0) return step(study::Prepared{ticket, std::nullopt, "bad luck"});
        step(study::Prepared{ticket, (*work)().configuration, ""});
    }

    void fail(const Group& group) {
        step(study::AttemptOver{group.trial,
                                group.attempt,
                                incarnation_,
                                study::AttemptOutcome::failed,
                                {"bad luck " + std::to_string(group.trial.value()), std::uint32_t{0}}});
    }

    void report(Group group) {
        ++group.iteration;
        const auto& trial = core_->state().trial(group.trial);
        double loss = 0.0;
        for (const double x : spec_.space.encode(trial.configuration))
            if (!std::isnan(x)) loss += (x - 0.3) * (x - 0.3);
        loss += 1.0 / static_cast<double>(group.iteration) + 0.01 * random_.normal();
        const std::uint64_t luck = random_.below(100);
        if (luck < 3) loss = luck == 0 ? -HUGE_VAL : luck == 1 ? HUGE_VAL : std::nan("");
        study::ReportArrived event{
            group.trial, group.attempt, incarnation_, group.iteration, 1e-9 * static_cast<double>(now_), {}};
        event.metrics.push_back({"loss", loss});
        event.metrics.push_back({"memory", random_.uniform()});
        if (group.iteration < group.decision_point) running_.push_back(group);
        step(std::move(event));
    }

    void leave(base::TrialId trial, base::AttemptId attempt, base::Iteration iteration, const study::Verdict& verdict) {
        const std::uint32_t generation = core_->state().trial(trial).generation();
        const bool saves = verdict.verb != Verb::discard;
        study::CheckpointRef checkpoint;
        checkpoint.iteration = iteration;
        checkpoint.path =
            std::to_string(trial.value()) + "/" + std::to_string(attempt.value()) + "-" + std::to_string(iteration);
        checkpoint.bytes = checkpoint.digest = 1;
        checkpoint.generation = generation;
        const auto outcome =
            verdict.verb == Verb::pause ? study::AttemptOutcome::paused : study::AttemptOutcome::stopped;
        leaving_.push_back({trial, attempt, saves && iteration > 0, checkpoint, outcome});
    }

  public:
    // ---- commands
    void operator()(const study::StartTrial& start) {
        running_.push_back({start.trial, start.attempt, start.iteration, start.decision_point});
    }
    void operator()(const study::Decide& decide) {
        const auto same = [&](const Group& group) { return group.trial == decide.trial; };
        if (decide.verdict.verb == Verb::go_on) {
            if (std::ranges::none_of(running_, same))
                running_.push_back({decide.trial, decide.attempt, decide.iteration, decide.decision_point});
            return;
        }
        std::erase_if(running_, same);
        leave(decide.trial, decide.attempt, decide.iteration, decide.verdict);
        drain_leaving();
    }
    void operator()(const study::Interrupt& interrupt) {
        const auto group =
            std::ranges::find_if(running_, [&](const Group& each) { return each.trial == interrupt.trial; });
        if (group == running_.end()) return;
        const Group copy = *group;
        running_.erase(group);
        leave(copy.trial, copy.attempt, copy.iteration, interrupt.verdict);
        drain_leaving();
    }
    void operator()(const study::Abandon&) {}
    void operator()(const study::DeleteCheckpoint&) {}
    void operator()(const study::Prepare& prepare) { tickets_.push_back(prepare.ticket); }
    void operator()(const study::EndStudy& end) {
        over_ = end.outcome != study::StudyOutcome::resumable;
        if (!over_) throw std::logic_error("the study stops early: " + end.message);
    }

  private:
    struct Leaving {
        base::TrialId trial;
        base::AttemptId attempt;
        bool saves = false;
        study::CheckpointRef checkpoint;
        study::AttemptOutcome outcome = study::AttemptOutcome::stopped;
    };

    /// Groups that were told to leave save and give their ranks back; one after the other, as a step may send others.
    void drain_leaving() {
        if (drains_) return;
        drains_ = true;
        while (!leaving_.empty()) {
            const Leaving leaving = leaving_.front();
            leaving_.pop_front();
            if (leaving.saves)
                step(study::CheckpointSaved{leaving.trial, leaving.attempt, incarnation_, leaving.checkpoint});
            step(study::AttemptOver{leaving.trial, leaving.attempt, incarnation_, leaving.outcome, {}});
        }
        drains_ = false;
    }

    study::StudySpec spec_;
    RngStream random_;
    Tally& tally_;
    std::unique_ptr<tuner::Tuner> core_;
    std::unique_ptr<tuner::Tuner> twin_;
    tuner::Output out_;
    base::Incarnation incarnation_;
    std::int64_t now_ = 0;
    std::vector<Group> running_;
    std::deque<std::uint64_t> tickets_;
    std::deque<Leaving> leaving_;
    bool drains_ = false;
    bool over_ = false;
};

void print(const std::string& name, Tally& tally) {
    std::ranges::sort(tally.rounds);
    const auto from_end = [&](std::size_t place) { return 1e6 * tally.rounds[tally.rounds.size() - place]; };
    std::printf(
        "%-9s %8llu events, %6llu trials in %3llu studies, %4llu heads, %6llu prepared, %6llu stopgaps; "
        "round: median %.0f us, 99.9 %% %.0f us, longest %.0f us\n",
        name.c_str(), static_cast<unsigned long long>(tally.events), static_cast<unsigned long long>(tally.trials),
        static_cast<unsigned long long>(tally.studies), static_cast<unsigned long long>(tally.heads),
        static_cast<unsigned long long>(tally.prepared), static_cast<unsigned long long>(tally.stopgaps),
        1e6 * tally.rounds[tally.rounds.size() / 2], from_end(1 + tally.rounds.size() / 1000), from_end(1));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    const std::uint64_t events = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    const auto trials = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 400);
    const std::string only = argc > 3 ? argv[3] : "";
    auto all = searchers::built_in();
    std::erase_if(all, [&](const auto& info) { // external is a program of the user
        return info->name == "external" || (!only.empty() && info->name != only);
    });
    std::uint64_t number = 0;
    for (const auto& info : all) {
        Tally tally;
        try {
            while (tally.events < events / all.size()) {
                ++number;
                Soak(spec_of(info, number, trials), number, tally).run();
            }
        } catch (const std::exception& error) {
            std::printf("%s, study %llu, event %llu: %s\n", info->name.c_str(), static_cast<unsigned long long>(number),
                        static_cast<unsigned long long>(tally.events), error.what());
            return 1;
        }
        print(info->name, tally);
    }
    return 0;
}
