// SPDX-License-Identifier: Apache-2.0
// Rules of spaces and the searchers: random spaces with 1 to 5 rules, and studies of every searcher on them, with
// results. Every suggestion must lie in its space and keep the rules; a suggestion's CPU time is compared with that in
// the same spaces without rules.
//
//   campaign_rules [SUGGESTIONS [TRIALS [SPACES]]]      (defaults 100000, 200, 20)
//
// SUGGESTIONS are shared out over the searchers, in studies of TRIALS. Prints a table; exits 1 when a rule was broken.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "../bench/support.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/built_in.hpp"
#include "testing/rules.hpp"

namespace {

using namespace ranktune;
using base::RngStream;

std::string pick(RngStream& random, const std::vector<std::string>& words) { return words[random.below(words.size())]; }

/// n0, n1, ... are numbers; texts and conditions come where the searcher takes them.
std::vector<space::Parameter> drawn_parameters(RngStream& random, bool numbers, bool finite) {
    std::vector<space::Parameter> parameters;
    const std::size_t count = 3 + random.below(4);
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::string> calls = {"randint(1, 9)", "qrandint(8, 64, 8)", "choice([1, 2, 4, 8, 16])",
                                          "steprandint(1, 30, 7)"};
        if (!finite) calls.insert(calls.end(), {"uniform(0, 10)", "loguniform(0.001, 10)", "lograndint(1, 1000)"});
        parameters.push_back({"n" + std::to_string(i), space::parse_domain(pick(random, calls)), std::nullopt});
    }
    if (numbers || finite) return parameters;
    parameters.push_back({"kind", space::parse_domain("choice(['a', 'b', 'c'])"), std::nullopt});
    parameters.push_back({"own", space::parse_domain("randint(1, 9)"), space::Condition::parse("kind != 'a'")});
    return parameters;
}

space::Rule drawn_rule(RngStream& random, const std::vector<space::Parameter>& parameters) {
    const bool texts_too = parameters.back().condition.has_value();
    const std::size_t count = parameters.size() - (texts_too ? 2 : 0);
    const auto name = [&] { return "n" + std::to_string(random.below(count)); };
    const std::string number = std::to_string(2 + random.below(60));
    if (random.uniform() < 0.3)
        return {space::Condition::parse(name() + " > " + number + " and " + name() + " > 3"), true};
    std::vector<std::string> texts = {name() + " < " + name() + " + " + number,
                                      name() + " * " + name() + " <= " + number,
                                      name() + " + " + name() + " >= " + std::to_string(2 + random.below(12)),
                                      "max(" + name() + ", " + name() + ") < " + number + " or " + name() + " > 4",
                                      name() + " <= " + number + " and " + name() + " != 8"};
    if (texts_too) texts.insert(texts.end(), {"own <= " + name(), "kind == 'a' or " + name() + " > 3"});
    return {space::Condition::parse(pick(random, texts)), false};
}

space::SearchSpace drawn_space(std::uint32_t number, const study::SearcherInfo& searcher) {
    for (std::uint32_t attempt = 0;; ++attempt) {
        RngStream random(number, base::user_purpose(1), attempt);
        auto parameters = drawn_parameters(random, searcher.only_numbers, searcher.whole_space);
        std::vector<space::Rule> rules;
        for (std::uint32_t left = 1 + number % 5; left > 0; --left) rules.push_back(drawn_rule(random, parameters));
        try {
            space::SearchSpace space(std::move(parameters), std::move(rules));
            if (space.allowed_share() < 1.0) return space;
        } catch (const base::UsageError&) {
            continue; // nothing is left of it
        }
    }
}

struct Tally {
    std::size_t suggestions = 0;
    std::size_t broken = 0;
    double seconds = 0.0;
};

/// A study in which every suggestion has a result.
void run(const study::SearcherSpec& searcher, const space::SearchSpace& space, std::uint32_t trials, Tally& tally) {
    study::StudySpec spec;
    spec.name = "rules";
    spec.seed = trials;
    spec.num_trials = trials;
    spec.searcher = searcher;
    spec.space = space;
    const auto made = searchers::make_searcher(spec);
    searchers::Observations seen(space.dimensions());
    for (std::uint32_t trial = 0; trial < trials; ++trial) {
        const base::TrialId id(trial);
        const double before = bench::cpu_seconds();
        const bool ahead = made->prepares_ahead(1, seen) > 0;
        const auto suggestion = ahead ? std::optional(made->prepare(trial, seen.first(seen.size()))().configuration)
                                      : made->suggest(trial, seen);
        tally.seconds += bench::cpu_seconds() - before;
        if (!suggestion) return;
        ++tally.suggestions;
        if (!testing::lies_in(space, *suggestion)) {
            ++tally.broken;
            std::printf("%s suggests %s\n", searcher.algorithm->name.c_str(), suggestion->text().c_str());
        }
        study::TrialCreated record;
        record.trial = id;
        record.origin.index = trial;
        record.configuration = *suggestion;
        made->apply(record);
        seen.asked(id, 0, space, *suggestion);
        double loss = 0.0;
        for (const double x : space.encode(*suggestion)) loss += (x - 0.3) * (x - 0.3);
        seen.reported(id, 1, -loss);
        seen.over(id, 1, study::TrialPhase::finished);
    }
}

} // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at, std::uint64_t otherwise) {
        return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
    };
    const std::uint64_t suggestions = number(1, 100000);
    const auto trials = static_cast<std::uint32_t>(number(2, 200));
    const auto spaces = static_cast<std::uint32_t>(number(3, 20));
    std::vector<std::shared_ptr<const study::SearcherInfo>> all;
    for (const auto& info : searchers::built_in())
        if (info->name != "external") all.push_back(info); // its suggestions come from another process
    std::size_t broken = 0;
    std::printf("| searcher | suggestions | broken | us, with rules | us, without |\n|---|---|---|---|---|\n");
    for (const auto& info : all) {
        Tally with;
        Tally without;
        const std::uint64_t share = suggestions / all.size();
        for (std::uint32_t round = 0; with.suggestions < share; ++round) {
            const space::SearchSpace space = drawn_space(round % spaces, *info);
            run(study::chosen(info), space, trials, with);
            run(study::chosen(info), space::SearchSpace(space.parameters()), trials, without);
        }
        broken += with.broken;
        const auto each = [](const Tally& tally) {
            return 1e6 * tally.seconds / static_cast<double>(tally.suggestions);
        };
        std::printf("| %s | %zu | %zu | %.1f | %.1f |\n", info->name.c_str(), with.suggestions, with.broken, each(with),
                    each(without));
    }
    return broken == 0 ? 0 : 1;
}
