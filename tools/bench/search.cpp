// SPDX-License-Identifier: Apache-2.0
// How good searchers are: the simple regret of the best of so many evaluations, on functions whose minimum is known;
// with several objectives the volume that the results do not cover yet; of a function with noise the regret, without
// it, of what `ranktune best` names: the best by the model's mean, where there is one. tools/bench/search.py runs this
// program beside other tools.
//
// Usage: bench_search SEARCHER[:OPTION=VALUE...] FUNCTION SEEDS [WORKERS [EVALUATIONS [ahead]]]
//        bench_search --values FUNCTION N     the first N configurations of random search, and their values
// A line for each seed: searcher, function, workers, seed, regret after 25, 50, 100, 200 evaluations, CPU seconds. With
// several workers the evaluations take times of a log-normal distribution, and a worker asks when it is free. "ahead":
// suggestions are prepared ahead, as the head of a study does; otherwise when they are needed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <queue>
#include <string>
#include <vector>

#include "options.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "search_functions.hpp"
#include "searchers/built_in.hpp"
#include "searchers/gp/gp_model.hpp"
#include "searchers/gp/gp_repeats.hpp"
#include "support.hpp"
#include "support/hypervolume.hpp"

using namespace ranktune;

namespace {

constexpr std::size_t marks[] = {25, 50, 100, 200};

/// `NAME:a=1:b=true`
study::SearcherSpec searcher_of(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(':', begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    std::vector<study::OptionValue> values;
    for (std::size_t i = 1; i < parts.size(); ++i) values.push_back(bench::option_of(parts[i]));
    return searchers::chosen(parts.front(), values);
}

/// A study of one report for each trial, in virtual time.
class Run {
  public:
    Run(const bench::Function& function, const study::SearcherSpec& searcher, std::uint64_t seed, std::uint32_t workers,
        std::uint32_t evaluations, bool ahead)
        : function_(function), workers_(workers), ahead_(ahead) {
        spec_.name = "search";
        spec_.objective = {"value", study::Mode::min};
        if (function.values) spec_.objective.others = {{"other", study::Mode::min}};
        spec_.seed = seed;
        spec_.num_trials = evaluations;
        spec_.space = function.space;
        spec_.searcher = searcher;
        searcher_ = searchers::make_searcher(spec_);
        seen_ = searchers::Observations(spec_.space.dimensions());
    }

    /// The best value after each evaluation.
    std::vector<double> run() {
        for (std::uint32_t worker = 0; worker < workers_; ++worker) begin(0.0);
        std::vector<double> best;
        double lowest = std::numeric_limits<double>::infinity();
        while (best.size() < spec_.num_trials) {
            const Evaluation done = under_way_.top();
            under_way_.pop();
            seen_.reported(done.trial, 1, score_of(done));
            seen_.over(done.trial, 1, study::TrialPhase::finished);
            if (function_.noise > 0.0) {
                if (done.value < lowest) lucky_ = done.trial;
                lowest = std::min(lowest, done.value);
                best.push_back(is_mark(best.size() + 1) ? true_values_[named_best().value()] : 0.0);
            } else {
                best.push_back(best_with(done, best));
            }
            begin(done.end);
        }
        return best;
    }

  private:
    struct Evaluation {
        double end = 0.0;
        base::TrialId trial;
        double value = 0.0;
        std::vector<double> values = {};                ///< of several objectives, negated
        bool operator<(const Evaluation& other) const { // the earliest on top
            return end != other.end ? end > other.end : other.trial < trial;
        }
    };

    [[nodiscard]] static study::Score score_of(const Evaluation& done) {
        if (done.values.empty()) return study::score(done.value, study::Mode::min);
        return {done.values, true};
    }
    /// The best value so far, or what the results cover, negated.
    double best_with(const Evaluation& done, const std::vector<double>& before) {
        if (done.values.empty()) return before.empty() ? done.value : std::min(before.back(), done.value);
        covered_.push_back(done.values);
        std::vector<double> reference = function_.reference;
        for (double& each : reference) each = -each;
        return -test::hypervolume(covered_, reference);
    }
    [[nodiscard]] static bool is_mark(std::size_t count) { return std::ranges::find(marks, count) != std::end(marks); }
    [[nodiscard]] base::TrialId named_best() const {
        const auto best =
            searchers::GpModel(spec_.space, spec_.seed, {.startup = searchers::enough_for_noise}).best(seen_);
        return best && best->noisy ? seen_[best->line].trial : lucky_;
    }
    /// What a study would write down; the searcher sees it as there.
    void record(const study::Record& what) { searcher_->apply(what); }
    space::Configuration prepared_now() {
        const std::uint64_t ticket = tickets_++;
        record(study::TicketOpened{ticket, {}, seen_.size()});
        space::Configuration configuration = searcher_->prepare(ticket, seen_.first(seen_.size()))().configuration;
        record(study::TicketPrepared{ticket, {}, configuration, {}});
        return configuration;
    }
    /// The next suggestion, and where it came from.
    std::pair<study::Origin, space::Configuration> suggestion() {
        using Kind = study::Origin::Kind;
        const bool prepares = searcher_->prepares_ahead(workers_, seen_) > 0;
        if (prepares && !ahead_) prepared_.push_back(prepared_now());
        if (!prepared_.empty()) {
            space::Configuration next = std::move(prepared_.front());
            prepared_.pop_front();
            return {{Kind::ticket, taken_++, 0}, std::move(next)};
        }
        const Kind kind = prepares ? Kind::stopgap : Kind::searcher;
        const std::uint64_t number = suggested_++;
        return {{kind, number, 0}, *searcher_->suggest(number, seen_)};
    }
    void begin(double now) {
        const std::uint32_t number = trials_;
        const base::TrialId trial(number);
        auto [origin, configuration] = suggestion();
        ++trials_;
        seen_.asked(trial, 0, spec_.space, configuration);
        record(study::TrialCreated{trial, {}, 1, 0, 0, origin, configuration});
        while (ahead_ && prepared_.size() < searcher_->prepares_ahead(workers_, seen_))
            prepared_.push_back(prepared_now());
        base::RngStream random(spec_.seed, base::user_purpose(0), number);
        const double duration = workers_ == 1 ? 1.0 : std::exp(0.5 * random.normal());
        Evaluation next{now + duration, trial, function_.values ? 0.0 : function_.value(configuration)};
        if (function_.noise > 0.0) {
            true_values_.push_back(next.value);
            next.value += function_.noise * random.normal();
        }
        if (function_.values)
            for (const double value : function_.values(configuration)) next.values.push_back(-value);
        under_way_.push(std::move(next));
    }

    const bench::Function& function_;
    std::uint32_t workers_;
    bool ahead_;
    study::StudySpec spec_;
    std::unique_ptr<searchers::Searcher> searcher_;
    searchers::Observations seen_;
    std::priority_queue<Evaluation> under_way_;
    std::vector<std::vector<double>> covered_;
    std::deque<space::Configuration> prepared_;
    std::vector<double> true_values_; ///< of a function with noise, by trial
    base::TrialId lucky_;             ///< of the lowest value that was seen
    std::uint32_t trials_ = 0;
    std::uint64_t tickets_ = 0; ///< opened
    std::uint64_t taken_ = 0;
    std::uint64_t suggested_ = 0;
};

int print_values(const bench::Function& function, int count) {
    for (int i = 0; i < count; ++i) {
        const space::Configuration configuration = function.space.sample(0, base::TrialId(static_cast<unsigned>(i)));
        std::printf("%.17g", function.value(configuration));
        for (const auto& entry : configuration.entries())
            std::printf(" %s=%s", entry.name.c_str(), entry.value.text().c_str());
        std::printf("\n");
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string(argv[1]) == "--values")
        return print_values(bench::function_named(argv[2]), std::atoi(argv[3]));
    if (argc < 4) {
        std::fprintf(stderr,
                     "usage: bench_search SEARCHER[:OPTION=VALUE...] FUNCTION SEEDS [WORKERS [EVALUATIONS "
                     "[ahead]]]\n       bench_search --values FUNCTION N\n");
        return 2;
    }
    const auto number = [&](int at, int standard) {
        return static_cast<std::uint32_t>(argc > at ? std::atoi(argv[at]) : standard);
    };
    const bench::Function function = bench::function_named(argv[2]);
    const study::SearcherSpec searcher = searcher_of(argv[1]);
    const std::uint32_t workers = number(4, 1);
    const std::uint32_t evaluations = number(5, 200);
    for (std::uint32_t seed = 0; seed < number(3, 1); ++seed) {
        const double before = bench::cpu_seconds();
        const auto best = Run(function, searcher, seed, workers, evaluations, argc > 6).run();
        std::printf("%s %s %u %u", argv[1], argv[2], workers, seed);
        for (const std::size_t mark : marks)
            if (mark <= best.size()) std::printf(" %.9g", best[mark - 1] - function.minimum);
        std::printf(" %.4f\n", bench::cpu_seconds() - before);
        std::fflush(stdout);
    }
    return 0;
}
