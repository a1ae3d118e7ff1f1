// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/testing/contract.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "testing/rules.hpp"
#include "testing/settings.hpp"

namespace ranktune::testing {
namespace {

using base::TrialId;
using searchers::Searcher;
using space::Configuration;
using Suggestion = std::optional<Configuration>;

constexpr std::uint32_t trials = 24;

space::Parameter parameter(std::string name, const std::string& call, const std::string& condition = "") {
    space::Parameter result{std::move(name), space::parse_domain(call), std::nullopt};
    if (!condition.empty()) result.condition = space::Condition::parse(condition);
    return result;
}

study::StudySpec study_of(std::vector<space::Parameter> parameters, std::uint64_t seed = 1) {
    study::StudySpec spec;
    spec.name = "contract";
    spec.objective.metric = "loss";
    spec.seed = seed;
    spec.num_trials = trials;
    spec.max_iterations = 9;
    spec.space = space::SearchSpace(std::move(parameters));
    return spec;
}

/// Every kind of domain, nested names, a condition on a later parameter, and a condition on a conditional parameter.
study::StudySpec rich_study(bool continuous, std::uint64_t seed = 1) {
    std::vector<space::Parameter> parameters = {
        parameter("opt.momentum", "quniform(0.5, 0.9, 0.2)", "opt.kind == 'sgd'"),
        parameter("opt.nesterov", "choice([true, false])", "opt.momentum > 0.6"),
        parameter("opt.kind", "choice(['sgd', 'adam'])"),
        parameter("batch", "qlograndint(16, 64, 16)"),
        parameter("depth", "steprandint(5, 9, 3)"),
        parameter("layers", "grid([1, 2])"),
        parameter("width", "choice([[64], [128, 64]])"),
    };
    if (continuous) {
        parameters.push_back(parameter("lr", "loguniform(1e-5, 1)"));
        parameters.push_back(parameter("noise", "randn(0, 1)"));
        parameters.push_back(parameter("seed", "randint(-9223372036854775808, 9223372036854775807)"));
    }
    return study_of(std::move(parameters), seed);
}

/// The same for searchers that need a number for every parameter.
study::StudySpec numbers_study(std::uint64_t seed = 1) {
    return study_of({parameter("lr", "loguniform(1e-5, 1)"), parameter("opt.momentum", "quniform(0.5, 0.9, 0.2)"),
                     parameter("batch", "qlograndint(16, 64, 16)"), parameter("layers", "grid([1, 2])"),
                     parameter("depth", "steprandint(1, 30, 7)"), parameter("dropout", "stepuniform(0.05, 0.5, 0.1)"),
                     parameter("width", "choice([[64], [128, 64], [256]], ordered=true)"),
                     parameter("noise", "randn(0, 1)"), parameter("only", "choice(['this'])"),
                     parameter("seed", "randint(-9223372036854775808, 9223372036854775807)")},
                    seed);
}

/// Domains of one value.
study::StudySpec single_values(bool continuous) {
    std::vector<space::Parameter> parameters = {
        parameter("a", "choice(['only'])"),     parameter("b", "randint(7, 8)"),
        parameter("c", "qrandint(5, 9, 7)"),    parameter("d", "lograndint(1, 2)"),
        parameter("e", "grid([false])"),        parameter("f", "quniform(0.1, 0.3, 0.2)"),
        parameter("i", "steprandint(7, 9, 3)"), parameter("j", "stepuniform(0.25, 0.3, 0.1)")};
    if (continuous) parameters.push_back(parameter("g", "uniform(0.5, 0.5)"));
    parameters.push_back({"h", space::Constant{"fixed"}, std::nullopt});
    return study_of(std::move(parameters));
}

/// A searcher in a study: trials are created in order, with reports and ends in between, and the table of observations
/// is kept like the core does.
class Life {
  public:
    Life(std::unique_ptr<Searcher> searcher, const space::SearchSpace& space)
        : searcher_(std::move(searcher)), space_(&space), seen_(space.dimensions()) {}

    [[nodiscard]] Searcher& searcher() const { return *searcher_; }
    [[nodiscard]] const searchers::Observations& seen() const { return seen_; }
    [[nodiscard]] Suggestion suggest(std::uint64_t index) const { return searcher_->suggest(index, seen_); }

    void create(std::uint32_t trial) {
        const Suggestion suggestion = suggest(trial);
        if (!suggestion) return;
        searcher_->apply(study::TrialCreated{TrialId(trial), {}, 1, 0, 0, {.index = trial}, *suggestion});
        seen_.asked(TrialId(trial), 0, *space_, *suggestion);
    }
    void begin() {
        searcher_->apply(study::IncarnationBegan{base::Incarnation(1), {}, "", {}});
        searcher_->apply(study::MetricDefined{base::MetricId(0), "loss"});
    }
    /// Some values are not finite, and some trials fail.
    void train(std::uint32_t trial) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        const std::vector<double> values = {0.5, std::numeric_limits<double>::quiet_NaN(), inf, -inf, -0.0, 1e308};
        study::Reported record;
        record.trial = TrialId(trial);
        record.attempt = base::AttemptId(1);
        record.iteration = 1;
        record.metrics = {{base::MetricId(0), values[trial % values.size()]}};
        searcher_->apply(record);
        seen_.reported(record.trial, 1, study::score(values[trial % values.size()], study::Mode::min));
        const auto phase = trial % 5 == 4 ? study::TrialPhase::failed : study::TrialPhase::finished;
        searcher_->apply(study::TrialClosed{record.trial, {}, phase, study::Reason::exception, 0.0, 0.0, {"it threw"}});
        seen_.over(record.trial, 1, phase);
    }
    /// Trials of an earlier study, some with odd values, some failed, some without a result.
    void recall(std::uint32_t earlier) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        const std::vector<double> values = {0.25, 0.5, std::numeric_limits<double>::quiet_NaN(), inf, -1.0, 1e308};
        for (std::uint32_t i = 0; i < earlier; ++i) {
            study::EarlierTrial trial{space_->sample(99, TrialId(i)), {}, i % 7 == 6};
            if (i % 5 != 4) trial.results = {{1, values[i % values.size()]}, {3, values[(i + 1) % values.size()]}};
            seen_.earlier(trial, *space_, study::Mode::min);
        }
    }
    void live(std::uint32_t from, std::uint32_t to) {
        if (from == 0) begin();
        for (std::uint32_t trial = from; trial < to; ++trial) {
            create(trial);
            train(trial);
        }
    }
    /// The searcher's answers for the next trials, which are created.
    std::vector<Suggestion> continuation(std::uint32_t from, std::uint32_t to) {
        std::vector<Suggestion> all;
        for (std::uint32_t trial = from; trial < to; ++trial) {
            all.push_back(suggest(trial));
            create(trial);
        }
        return all;
    }
    [[nodiscard]] study::Bytes snapshot() const {
        study::Bytes bytes;
        study::Encoder out(bytes);
        searcher_->snapshot(out);
        return bytes;
    }
    /// `other` has the same study.
    void restore(const Life& other, const study::Bytes& bytes) {
        study::Decoder in(bytes);
        searcher_->restore(in);
        require(in.empty(), "restore reads the snapshot to its last byte");
        seen_ = other.seen_;
    }

  private:
    std::unique_ptr<Searcher> searcher_;
    const space::SearchSpace* space_;
    searchers::Observations seen_;
};

/// Makes the searcher under test for studies, and keeps these studies alive.
class Maker {
  public:
    Maker(const study::SearcherInfo& info, const Settings& settings)
        : chosen_(study::chosen(std::make_shared<const study::SearcherInfo>(info), settings)) {}

    /// A new searcher each time.
    Life operator()(study::StudySpec spec) {
        spec.searcher = chosen_;
        specs_.push_back(std::make_unique<study::StudySpec>(std::move(spec)));
        return {searchers::make_searcher(*specs_.back()), specs_.back()->space};
    }
    [[nodiscard]] bool continuous() const { return !chosen_.algorithm->whole_space; }
    [[nodiscard]] bool only_numbers() const { return chosen_.algorithm->only_numbers; }
    [[nodiscard]] study::StudySpec rich() const { return only_numbers() ? numbers_study() : rich_study(continuous()); }
    [[nodiscard]] const study::SearcherSpec& chosen() const { return chosen_; }

  private:
    study::SearcherSpec chosen_;
    std::vector<std::unique_ptr<study::StudySpec>> specs_;
};

// ---- suggestions

void check_twice(Maker& make) {
    const study::StudySpec spec = make.rich();
    Life life = make(spec);
    for (std::uint32_t trial = 0; trial < trials; ++trial) {
        const Suggestion first = life.suggest(trial);
        require(first.has_value(), "a space is not exhausted before its end");
        static_cast<void>(life.searcher().basis(trial, life.seen()));
        require(life.suggest(trial) == first, "suggest and basis change nothing: asked twice, it answers the same");
        require(lies_in(spec.space, *first), "a suggestion lies in the space");
        require(!life.searcher().exhausted(trial), "a searcher that suggests something is not exhausted");
        life.create(trial);
    }
}

void check_instances(Maker& make) {
    Life a = make(make.rich());
    Life b = make(make.rich());
    require(a.continuation(0, trials) == b.continuation(0, trials), "two instances answer the same");
}

void check_exhaustion(Maker& make) {
    Life life = make(study_of({parameter("n", "choice([1, 2], ordered=true)")}));
    bool ended = false;
    for (std::uint32_t trial = 0; trial < 10; ++trial) {
        const bool has = life.suggest(trial).has_value();
        require(!ended || !has, "a searcher that is exhausted stays so");
        require(life.searcher().exhausted(trial) == !has, "`exhausted` says whether `suggest` gives nothing");
        ended = !has;
        life.create(trial);
    }
    require(ended || make.continuous(), "a search of the whole space ends with it");
}

void check_independence(Maker& make) {
    Life a = make(make.rich());
    Life b = make(make.rich());
    b.live(0, trials);
    if (b.searcher().learns() || !b.snapshot().empty()) return;
    for (std::uint32_t trial = trials; trial-- > 0;)
        require(
            a.suggest(trial) == b.suggest(trial),
            "a searcher that learns nothing answers from (seed, index) alone, in any order and whatever was reported");
}

/// What is prepared for some tickets lies in the space, and any searcher prepares the same.
void check_tickets(Maker& make, const study::StudySpec& spec, const Life& life) {
    const auto view = life.seen().first(life.seen().size());
    Life another = make(spec);
    for (std::uint64_t ticket = 0; ticket < 3; ++ticket) {
        const Configuration prepared = life.searcher().prepare(ticket, view)().configuration;
        require(lies_in(spec.space, prepared), "a prepared suggestion lies in the space");
        require(life.searcher().prepare(ticket, view)().configuration == prepared &&
                    another.searcher().prepare(ticket, view)().configuration == prepared,
                "a preparation is a function of ticket and observations");
    }
}

void check_preparation(Maker& make) {
    const study::StudySpec spec = make.rich();
    Life life = make(spec);
    if (life.searcher().prepares_ahead(4, life.seen()) == 0) return;
    require(life.searcher().learns(), "a searcher that prepares suggestions has the table of observations");
    check_tickets(make, spec, life);
    std::uint32_t begin = 0;
    for (const std::uint32_t end : {4U, 10U, trials}) {
        life.live(begin, end);
        check_tickets(make, spec, life);
        begin = end;
    }
    life.create(trials); // trains
    life.create(trials + 1);
    check_tickets(make, spec, life);
    const study::StudySpec single = single_values(make.continuous());
    Life in_single = make(single);
    in_single.live(0, trials);
    check_tickets(make, single, in_single);
    const study::StudySpec empty = study_of({});
    Life in_empty = make(empty);
    in_empty.live(0, trials);
    check_tickets(make, empty, in_empty);
}

// ---- spaces

void check_single_values(Maker& make) {
    const Suggestion suggestion = make(single_values(make.continuous())).suggest(0);
    require(suggestion && suggestion->text() == std::string("a=only b=7 c=7 d=1 e=false f=0.2 i=7 j=0.25") +
                                                    (make.continuous() ? " g=0.5" : "") + " h=fixed",
            "domains of one value give that value");
}

void check_empty_space(Maker& make) {
    const Suggestion suggestion = make(study_of({})).suggest(0);
    require(suggestion && suggestion->empty(), "a space without parameters has an empty configuration");
}

/// A searcher that needs numbers is never given anything else.
void check_refusals(Maker& make) {
    const auto refused = [&](std::vector<space::Parameter> parameters) {
        try {
            make(study_of(std::move(parameters)));
            return false;
        } catch (const base::UsageError&) {
            return true;
        }
    };
    require(refused({parameter("kind", "choice(['sgd', 'adam'])")}), "a list without an order is refused");
    require(refused({parameter("a", "uniform(0, 1)"), parameter("b", "uniform(0, 1)", "a > 0.5")}),
            "a condition is refused");
}

void check_conditions(Maker& make) {
    if (make.only_numbers()) return check_refusals(make);
    const study::StudySpec spec = make.rich();
    Life life = make(spec);
    int with = 0;
    int without = 0;
    for (std::uint32_t trial = 0; trial < 40; ++trial) {
        const Suggestion suggestion = life.suggest(trial);
        if (!suggestion) break;
        require(lies_in(spec.space, *suggestion),
                "conditional parameters are there exactly when their condition holds");
        ++(suggestion->contains("opt.momentum") ? with : without);
        life.create(trial);
    }
    require(with > 0 && without > 0, "of 40 suggestions some have a conditional parameter and some have not");
}

void check_rules(Maker& make) {
    study::StudySpec spec = make.rich();
    const auto rule = [](const std::string& text, bool forbids) {
        return space::Rule{space::Condition::parse(text), forbids};
    };
    std::vector<space::Rule> rules = {rule("batch * depth <= 320", false),
                                      rule("opt.momentum + depth / 10 < 1.7", false),
                                      rule("layers == 2 and batch == 64", true)};
    if (make.continuous() && !make.only_numbers()) rules.push_back(rule("lr < 0.001 and noise > 0", true));
    spec.space = space::SearchSpace(spec.space.parameters(), std::move(rules));
    Life life = make(spec);
    for (std::uint32_t trial = 0; trial < trials; ++trial) {
        const Suggestion suggestion = life.suggest(trial);
        if (!suggestion) break;
        require(lies_in(spec.space, *suggestion), "a suggestion keeps the rules of the space");
        life.live(trial, trial + 1);
        if (life.searcher().prepares_ahead(4, life.seen()) == 0) continue;
        const auto view = life.seen().first(life.seen().size());
        require(lies_in(spec.space, life.searcher().prepare(trial, view)().configuration),
                "a prepared suggestion keeps the rules of the space");
    }
}

// ---- records

void check_odd_values(Maker& make) {
    const study::StudySpec spec = make.rich();
    Life life = make(spec);
    life.live(0, trials);
    const Suggestion next = life.suggest(trials);
    require(!next || lies_in(spec.space, *next), "values that are not finite and failed trials do no harm");
    require(life.suggest(trials) == next, "suggest changes nothing: asked twice, it answers the same");
}

void check_snapshot(Maker& make) {
    Life original = make(make.rich());
    original.live(0, 10);
    const study::Bytes bytes = original.snapshot();
    Life restored = make(make.rich());
    restored.restore(original, bytes);
    require(restored.snapshot() == bytes, "a restored searcher gives the snapshot that it was restored from");
    original.live(10, 14);
    restored.live(10, 14);
    require(restored.continuation(14, trials) == original.continuation(14, trials),
            "a restored searcher suggests the same");
    require(restored.snapshot() == original.snapshot(), "equal histories give equal snapshots");
}

void check_replay(Maker& make) {
    Life a = make(make.rich());
    Life b = make(make.rich());
    a.live(0, trials);
    b.live(0, trials);
    require(a.snapshot() == b.snapshot(), "equal histories give equal snapshots");
}

/// Earlier results make no difference to the other rules.
void check_earlier(Maker& make) {
    if (!make.chosen().algorithm->uses_earlier_results) return;
    const study::StudySpec spec = make.rich();
    Life life = make(spec);
    require(life.searcher().learns(), "a searcher that uses earlier results has the table of observations");
    life.recall(40);
    life.live(0, 10);
    const study::Bytes bytes = life.snapshot();
    Life restored = make(spec);
    restored.restore(life, bytes);
    if (life.searcher().prepares_ahead(4, life.seen()) > 0) check_tickets(make, spec, life);
    for (std::uint32_t trial = 10; trial < trials; ++trial) {
        const Suggestion suggestion = life.suggest(trial);
        require(!suggestion || lies_in(spec.space, *suggestion),
                "with earlier results, a suggestion lies in the space");
        require(restored.suggest(trial) == suggestion, "with earlier results, a restored searcher suggests the same");
        for (Life* each : {&life, &restored}) {
            each->create(trial);
            each->train(trial);
        }
    }
}

// ---- the searcher's description

void check_words(Maker& make) {
    require(make(study_of({})).searcher().name() == make.chosen().algorithm->name,
            "the searcher has the name of its description");
}

void check_resolved_of(Maker& make, bool must_parse) {
    study::StudySpec spec = make.rich();
    spec.trainable.name = "contract";
    spec.searcher = make.chosen();
    for (const study::AlgorithmOption& option : spec.searcher.algorithm->options)
        if (option.kind == study::OptionInfo::Kind::path) // absolute in every study that was read from a file
            spec.searcher.options.set(option.name, "/contract/" + option.name);
    spec.scheduler = schedulers::chosen("fifo");
    check_resolved(spec, must_parse);
}

} // namespace

std::vector<std::string> check_searcher(const study::SearcherInfo& info, const std::vector<Settings>& more) {
    return broken_rules(info, more, "the defaults work", [&](BrokenRules& broken, const Settings& settings) {
        const std::string where = info.name + settings_text(settings);
        Maker make(info, settings);
        for (const auto check : {check_twice, check_instances, check_exhaustion, check_independence, check_preparation,
                                 check_single_values, check_empty_space, check_conditions, check_rules,
                                 check_odd_values, check_snapshot, check_replay, check_earlier, check_words})
            broken.look(where, [&] { check(make); });
        broken.look(where, [&] { check_resolved_of(make, settings.empty()); });
    });
}

} // namespace ranktune::testing
