// SPDX-License-Identifier: Apache-2.0
#pragma once
// Toy algorithms that together use every feature that the core offers to algorithms.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/schema.hpp"

namespace ranktune::testing {

/// Population-based training: trains `population` trials at a time, and creates no other while one is active. Every
/// `interval` iterations, a trial that is worse than the best one with a checkpoint of that iteration takes over its
/// checkpoint, with a changed parameter `lr`. Trials are in bracket 1 and have `interval` as first target.
class ToyPopulation final : public schedulers::Scheduler {
  public:
    ToyPopulation(std::uint32_t population, base::Iteration interval, base::Iteration ceiling)
        : population_(population), interval_(interval), ceiling_(ceiling) {}

    [[nodiscard]] std::string_view name() const override { return "toy"; }
    [[nodiscard]] study::Verdict decide(const schedulers::Report& report, bool) const override {
        if (report.iteration >= ceiling_)
            return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_), 0.0};
        if (report.iteration % interval_ != 0) return {};
        const auto best = best_at(report.iteration);
        const bool worse = best && *best != report.trial && report.score.rank() < scores_.at({*best, report.iteration});
        return {worse ? study::Verb::exploit : study::Verb::go_on, study::Reason::none, 0.0, 0.0};
    }
    [[nodiscard]] schedulers::Exploit exploit(const schedulers::Report& report) const override {
        const base::TrialId donor = *best_at(report.iteration);
        space::Configuration configuration = configurations_.at(donor);
        configuration.set("lr", std::min(0.99, configuration.at("lr").as_double() * 1.2));
        return {donor, report.iteration, std::move(configuration)};
    }
    [[nodiscard]] bool exploits() const override { return true; }
    [[nodiscard]] schedulers::Work next(const schedulers::Pool& pool) const override {
        if (pool.can_create && alive_.size() < population_) return schedulers::Create{1, std::min(interval_, ceiling_)};
        if (pool.active) return schedulers::Wait{};
        return pool.can_create ? schedulers::Work(schedulers::Create{1, std::min(interval_, ceiling_)})
                               : schedulers::NothingLeft{};
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override {
        const auto first = targets_.find(trial);
        if (current == 0 && first != targets_.end()) return first->second;
        return (current / interval_ + 1) * interval_;
    }
    [[nodiscard]] bool pauses() const override { return false; }

    void apply(const study::Record& record) override {
        if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
            if (metric->name == "score") objective_ = metric->id;
        } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
            if (created->bracket != 1) throw std::logic_error("the bracket of a trial is lost");
            configurations_[created->trial] = created->configuration;
            targets_[created->trial] = created->target;
            alive_.insert(created->trial);
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            for (const auto& value : report->metrics)
                if (value.id == objective_ && std::isfinite(value.value))
                    scores_[{report->trial, report->iteration}] = value.value;
        } else if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) {
            saved_.insert({saved->checkpoint.path, {saved->trial, saved->checkpoint.iteration}});
        } else if (const auto* released = std::get_if<study::CheckpointReleased>(&record)) {
            saved_.erase(released->path);
        } else if (const auto* exploited = std::get_if<study::Exploited>(&record)) {
            configurations_[exploited->trial] = exploited->configuration;
        } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
            alive_.erase(closed->trial);
        }
    }

    void snapshot(study::Encoder& out) const override {
        out.varint(objective_.value());
        out.varint(configurations_.size());
        for (const auto& [trial, configuration] : configurations_) {
            out.varint(trial.value());
            study::put(out, configuration);
            out.varint(targets_.at(trial));
            out.boolean(alive_.contains(trial));
        }
        out.varint(scores_.size());
        for (const auto& [where, score] : scores_) {
            out.varint(where.first.value());
            out.varint(where.second);
            out.f64(score);
        }
        out.varint(saved_.size());
        for (const auto& [path, what] : saved_) {
            out.string(path);
            out.varint(what.first.value());
            out.varint(what.second);
        }
    }
    void restore(study::Decoder& in) override {
        *this = ToyPopulation(population_, interval_, ceiling_);
        objective_ = study::MetricId(static_cast<study::MetricId::rep>(in.varint()));
        for (std::size_t n = in.count(); n > 0; --n) {
            const base::TrialId trial{static_cast<std::uint32_t>(in.varint())};
            configurations_[trial] = study::decoded<space::Configuration>(in);
            targets_[trial] = in.varint();
            if (in.boolean()) alive_.insert(trial);
        }
        for (std::size_t n = in.count(); n > 0; --n) {
            const base::TrialId trial{static_cast<std::uint32_t>(in.varint())};
            const base::Iteration iteration = in.varint();
            scores_[{trial, iteration}] = in.f64();
        }
        for (std::size_t n = in.count(); n > 0; --n) {
            const std::string path = in.string();
            const base::TrialId trial{static_cast<std::uint32_t>(in.varint())};
            saved_[path] = {trial, in.varint()};
        }
    }

  private:
    [[nodiscard]] std::optional<base::TrialId> best_at(base::Iteration iteration) const {
        std::optional<base::TrialId> best;
        for (const auto& [path, what] : saved_) {
            if (what.second != iteration || !scores_.contains(what)) continue;
            if (!best || scores_.at(what) > scores_.at({*best, iteration})) best = what.first;
        }
        return best;
    }

    std::uint32_t population_;
    base::Iteration interval_;
    base::Iteration ceiling_;
    study::MetricId objective_{0xFFFF};
    std::map<base::TrialId, space::Configuration> configurations_;
    std::map<base::TrialId, base::Iteration> targets_;
    std::set<base::TrialId> alive_;
    std::map<std::pair<base::TrialId, base::Iteration>, double> scores_;
    std::map<std::string, std::pair<base::TrialId, base::Iteration>> saved_;
};

/// Prepares its suggestions ahead from the observations: the midpoint of the best point seen and a random one that
/// depends on the ticket. `fails_every`: every so many tickets one fails; 0: none.
class ToySlowSearcher final : public searchers::Searcher {
  public:
    ToySlowSearcher(space::SearchSpace space, std::uint64_t seed, std::uint64_t fails_every = 0)
        : space_(std::move(space)), seed_(seed), fails_every_(fails_every) {}

    [[nodiscard]] std::string_view name() const override { return "toy"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const searchers::Observations&) const override {
        return space_.sample(seed_, base::TrialId{static_cast<std::uint32_t>(1000 + index)});
    }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups,
                                               const searchers::Observations& /*seen*/) const override {
        return groups;
    }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, searchers::Observations seen) const override {
        return [space = space_, seed = seed_, fails = fails_every_, ticket, seen = std::move(seen)] {
            if (fails > 0 && ticket % fails == fails - 1) throw std::runtime_error("no model fits");
            std::vector<double> point(space.dimensions(), 0.5);
            double best = -std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < seen.size(); ++i) {
                if (seen[i].kind != searchers::Observation::Kind::reported || seen[i].score.rank() <= best) continue;
                best = seen[i].score.rank();
                point = seen.point(seen[i].point);
            }
            base::RngStream random(seed, base::Purpose::sample, static_cast<std::uint32_t>(ticket), 77);
            for (double& x : point)
                x = 0.5 * ((std::isnan(x) ? 0.5 : x) + random.uniform()); // NaN: the point lacks this parameter
            return space.decode(point);
        };
    }
    void apply(const study::Record&) override {}
    void snapshot(study::Encoder&) const override {}
    void restore(study::Decoder&) override {}

  private:
    space::SearchSpace space_;
    std::uint64_t seed_;
    std::uint64_t fails_every_;
};

} // namespace ranktune::testing
