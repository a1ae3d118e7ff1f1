// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study around a searcher that learns, reduced to its records and its table of observations.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/built_in.hpp"
#include "searchers/table.hpp"

namespace ranktune::searchers::testing {

inline study::StudySpec study_with(const std::string& searcher, const space::SearchSpace& space, std::uint64_t seed = 1,
                                   const std::vector<study::OptionValue>& options = {}) {
    study::StudySpec spec;
    spec.seed = seed;
    spec.max_iterations = 1;
    spec.space = space;
    spec.searcher = chosen(searcher, options);
    return spec;
}

/// Creates trials and ends them.
class Learner {
  public:
    using Configuration = space::Configuration;

    explicit Learner(const study::StudySpec& of)
        : spec(std::make_unique<study::StudySpec>(of)),
          searcher(make_searcher(*spec)),
          seen(spec->space.dimensions()) {}

    /// The next trial takes the searcher's suggestion.
    TrialId create() {
        const auto suggestion = searcher->suggest(suggested, seen);
        return create(*suggestion, {study::Origin::Kind::searcher, suggested++, 0});
    }
    /// It takes a prepared one.
    TrialId create_prepared() {
        const auto work = searcher->prepare(tickets, seen.first(seen.size()));
        return create(work().configuration, {study::Origin::Kind::ticket, tickets++, 0});
    }
    /// As in a study with one group.
    TrialId create_next() { return searcher->prepares_ahead(1, seen) > 0 ? create_prepared() : create(); }
    /// The ticket is asked for.
    void open(std::uint64_t ticket) {
        study::TicketOpened record;
        record.ticket = ticket;
        record.seen = seen.size();
        searcher->apply(record);
    }
    /// Its suggestion was recorded.
    void prepared(std::uint64_t ticket, const Configuration& configuration) {
        study::TicketPrepared record;
        record.ticket = ticket;
        record.configuration = configuration;
        searcher->apply(record);
    }
    TrialId create(const Configuration& configuration, const study::Origin& origin) {
        const TrialId trial(static_cast<std::uint32_t>(trials.size()));
        trials.push_back(configuration);
        seen.asked(trial, 0, spec->space, configuration);
        study::TrialCreated record;
        record.trial = trial;
        record.origin = origin;
        record.configuration = configuration;
        searcher->apply(record);
        return trial;
    }
    void finish(TrialId trial, const study::Score& score) {
        seen.reported(trial, 1, score);
        seen.over(trial, 1, study::TrialPhase::finished);
    }
    void fail(TrialId trial) { seen.over(trial, 0, study::TrialPhase::failed); }
    [[nodiscard]] std::vector<double> unit(TrialId trial) const { return spec->space.encode(trials[trial.value()]); }
    /// Another instance, made from the snapshot of this one.
    [[nodiscard]] std::unique_ptr<Searcher> restored() const {
        study::Bytes bytes;
        study::Encoder out(bytes);
        searcher->snapshot(out);
        auto other = make_searcher(*spec);
        study::Decoder in(bytes);
        other->restore(in);
        return other;
    }

    std::unique_ptr<study::StudySpec> spec; ///< stays where it is
    std::unique_ptr<Searcher> searcher;
    Observations seen;
    std::vector<Configuration> trials;
    std::uint64_t suggested = 0;
    std::uint64_t tickets = 0;
};

/// Loss of the best trial after `trials` results, while `workers` trials train at a time and end in random order. A
/// negative loss fails the trial; a loss of NaN means that it never ends.
inline double search(Learner& learner, std::uint32_t trials, std::uint32_t workers,
                     const std::function<double(const Learner::Configuration&)>& loss) {
    double best = infinite;
    std::vector<TrialId> running;
    for (std::uint32_t i = 0; i < trials; ++i) {
        while (running.size() < workers) {
            const TrialId trial = learner.create_next();
            if (!std::isnan(loss(learner.trials[trial.value()]))) running.push_back(trial);
        }
        base::RngStream random(77, base::user_purpose(0), i);
        const auto next = running.begin() + static_cast<std::ptrdiff_t>(random.below(running.size()));
        const double value = loss(learner.trials[next->value()]);
        if (value < 0.0) {
            learner.fail(*next);
        } else {
            best = std::min(best, value);
            learner.finish(*next, -value);
        }
        running.erase(next);
    }
    return best;
}

} // namespace ranktune::searchers::testing
