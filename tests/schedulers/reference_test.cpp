// SPDX-License-Identifier: Apache-2.0
// The schedulers against simple implementations of their rules, which sort everything each time, on random histories
// with failures, losses, drains and restarts.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "schedulers/driver.hpp"
#include "schedulers/rungs/levels.hpp"
#include "support/catch.hpp"
#include "testing/scheduler_world.hpp"

namespace reference_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using base::Iteration;
using study::Ranked;

namespace {

double value_of(const study::Reported& report) {
    for (const auto& metric : report.metrics) {
        if (metric.id == study::MetricId(1)) return metric.value;
    }
    return std::nan("");
}

std::vector<Ranked> sorted(std::vector<Ranked> entries) {
    std::sort(entries.begin(), entries.end(), study::better);
    return entries;
}

/// Whether `entry` would be among the first `count` of `entries`.
bool among(std::vector<Ranked> entries, const Ranked& entry, std::size_t count) {
    entries.push_back(entry);
    entries = sorted(entries);
    return static_cast<std::size_t>(std::find(entries.begin(), entries.end(), entry) - entries.begin()) < count;
}

study::StudySpec study_for(const std::string& variant, const std::string& rule, double eta, Iteration ceiling,
                           std::uint32_t brackets) {
    return spec_of(
        chosen("asha", {{"variant", variant}, {"rule", rule}, {"eta", eta}, {"brackets", static_cast<int>(brackets)}}),
        ceiling);
}

/// Algorithm 2 of the paper, by the book: one list per (level, bracket), highest level first.
class PromoteByTheBook {
  public:
    explicit PromoteByTheBook(const study::StudySpec& spec)
        : eta_(static_cast<std::size_t>(spec.scheduler.options.at("eta").as_double())),
          delayed_(spec.scheduler.options.at("delayed").as_bool()) {
        const auto brackets = static_cast<std::uint32_t>(spec.scheduler.options.at("brackets").as_int());
        for (std::uint32_t b = 0; b < brackets; ++b) {
            levels_.push_back(integer_levels(1, eta_, spec.max_iterations, b));
        }
    }

    void apply(const study::Record& record) {
        if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
            trials_[created->trial].bracket = created->bracket;
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            Trial& t = trials_[report->trial];
            const auto& levels = levels_[t.bracket];
            if (report->iteration < levels[t.rung]) return;
            if (!t.entered) entries(t).push_back({study::score(value_of(*report), study::Mode::max), report->trial});
            t.entered = true;
            t.paused = report->verdict.verb == Verb::pause && t.rung + 1 < levels.size();
            if (t.rung + 1 < levels.size() && report->verdict.verb == Verb::go_on) promote(t);
        } else if (const auto* promotion = std::get_if<study::TrialPromoted>(&record)) {
            Trial& t = trials_[promotion->trial];
            promote(t);
            t.finishing = promotion->reason == Reason::finish_top;
        } else if (const auto* close = std::get_if<study::TrialClosed>(&record)) {
            Trial& t = trials_[close->trial];
            if (close->phase == study::TrialPhase::failed && !t.entered) {
                entries(t).push_back({-std::numeric_limits<double>::infinity(), close->trial});
                t.entered = true;
            }
            t.paused = t.finishing = false;
        }
    }

    /// The trial to promote, from the highest level that has one.
    [[nodiscard]] std::optional<base::TrialId> next() const {
        const auto best = promotable(0);
        if (!best) return std::nullopt;
        return best->trial;
    }

    [[nodiscard]] Verb decide(base::TrialId trial, Iteration iteration, double score, bool contended) const {
        const Trial& t = trials_.at(trial);
        const auto& levels = levels_[t.bracket];
        if (iteration >= levels.back()) return Verb::stop;
        if (iteration < levels[t.rung]) return Verb::go_on;
        if (t.finishing) return Verb::go_on;
        if (t.entered || contended) return Verb::pause;
        const auto& here = rungs_.count({levels[t.rung], t.bracket}) != 0 ? rungs_.at({levels[t.rung], t.bracket})
                                                                          : std::vector<Ranked>{};
        const Ranked own{score, trial};
        if (!among(here, own, (here.size() + 1) / eta_) || promotable(levels[t.rung] + 1)) return Verb::pause;
        if (delayed_ && promoted(t.bracket, t.rung) >= (here.size() + 1) / eta_) return Verb::pause;
        for (const Ranked& other : here) { // a paused trial that is better goes first
            if (waits(other, t.bracket, t.rung) && study::better(other, own)) return Verb::pause;
        }
        return Verb::go_on;
    }

  private:
    struct Trial {
        std::uint32_t bracket = 0;
        std::size_t rung = 0;
        bool entered = false, paused = false, finishing = false;
    };
    using Key = std::pair<Iteration, std::uint32_t>; // level, bracket

    std::vector<Ranked>& entries(const Trial& t) { return rungs_[{levels_[t.bracket][t.rung], t.bracket}]; }
    static void promote(Trial& t) {
        ++t.rung;
        t.entered = t.paused = false;
    }
    [[nodiscard]] bool waits(const Ranked& entry, std::uint32_t bracket, std::size_t rung) const {
        const Trial& t = trials_.at(entry.trial);
        return t.paused && t.bracket == bracket && t.rung == rung;
    }
    [[nodiscard]] std::size_t promoted(std::uint32_t bracket, std::size_t rung) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            trials_, [&](const auto& entry) { return entry.second.bracket == bracket && entry.second.rung > rung; }));
    }
    [[nodiscard]] std::optional<Ranked> promotable(Iteration from_level) const {
        std::optional<Ranked> best;
        Iteration level = 0;
        for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
            const auto [at, bracket] = rung->first;
            if (at < from_level || (best && at < level)) break;
            const auto& levels = levels_[bracket];
            const auto index = static_cast<std::size_t>(std::find(levels.begin(), levels.end(), at) - levels.begin());
            auto all = sorted(rung->second);
            all.resize(all.size() / eta_);
            if (delayed_ && promoted(bracket, index) >= all.size()) continue;
            for (const Ranked& entry : all) {
                if (!waits(entry, bracket, index) || (best && !study::better(entry, *best))) continue;
                best = entry;
                level = at;
            }
        }
        return best;
    }

    std::size_t eta_;
    bool delayed_;
    std::vector<std::vector<Iteration>> levels_;
    std::map<Key, std::vector<Ranked>> rungs_;
    std::map<base::TrialId, Trial> trials_;
};

/// ASHA's stopping rules, with a sorted list for each decision. Two brackets; up to 14 iterations.
class StopByTheBook {
  public:
    StopByTheBook(std::string rule, double eta, bool stop_last)
        : rule_(std::move(rule)), eta_(eta), ends_(stop_last || rule_ == "floor") {
        for (std::uint32_t b = 0; b < 2; ++b)
            levels_.push_back(rule_ == "ray" ? ray_levels(1, eta, last, b, 64) : integer_levels(1, 3, last, b));
    }

    /// Whether the report is the trial's first one at a rung.
    [[nodiscard]] bool enters(const study::Reported& report) const {
        const auto rung = rung_of(report);
        return rung && entries(bracket_.at(report.trial), *rung).count(report.trial) == 0;
    }

    [[nodiscard]] Verb decide(const study::Reported& report) const {
        if (ends_ && report.iteration >= last) return Verb::stop;
        if (!enters(report)) return Verb::go_on;
        const auto& recorded = entries(bracket_.at(report.trial), *rung_of(report));
        return goes_on(recorded, report.trial, value_of(report)) ? Verb::go_on : Verb::stop;
    }

    void apply(const study::Record& record) {
        if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
            bracket_[created->trial] = created->bracket;
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            const bool leaves_none = rule_ == "ray" && ends_ && report->iteration >= last &&
                                     report->verdict.reason == Reason::max_iterations;
            if (!enters(*report) || leaves_none) return;
            const double value = value_of(*report);
            const bool unknown = rule_ == "ray" && std::isnan(value);
            rungs_[{bracket_.at(report->trial), *rung_of(*report)}][report->trial] =
                unknown ? value : study::score(value, study::Mode::max);
        } else if (const auto* close = std::get_if<study::TrialClosed>(&record)) {
            if (rule_ != "floor" || close->phase != study::TrialPhase::failed) return;
            const std::uint32_t b = bracket_.at(close->trial);
            std::size_t heading = 0;
            while (heading < levels_[b].size() && entries(b, heading).count(close->trial) != 0) ++heading;
            if (heading < levels_[b].size())
                rungs_[{b, heading}][close->trial] = -std::numeric_limits<double>::infinity();
        }
    }

  private:
    static constexpr Iteration last = 14;
    using Entries = std::map<base::TrialId, double>; ///< scores

    /// The highest one that is reached; these reports skip none.
    [[nodiscard]] std::optional<std::size_t> rung_of(const study::Reported& report) const {
        const auto& levels = levels_[bracket_.at(report.trial)];
        std::size_t reached = 0;
        while (reached < levels.size() && levels[reached] <= report.iteration) ++reached;
        return reached == 0 ? std::nullopt : std::optional(reached - 1);
    }
    [[nodiscard]] const Entries& entries(std::uint32_t bracket, std::size_t rung) const {
        static const Entries none;
        const auto found = rungs_.find({bracket, rung});
        return found == rungs_.end() ? none : found->second;
    }
    [[nodiscard]] bool goes_on(const Entries& recorded, base::TrialId trial, double value) const {
        const double own = study::score(value, study::Mode::max);
        if (rule_ == "floor") {
            std::vector<Ranked> all;
            for (const auto& [id, score] : recorded) all.push_back({score, id});
            return among(all, {own, trial}, std::max<std::size_t>((recorded.size() + 1) / 3, 1));
        }
        std::vector<double> known;
        for (const auto& [id, score] : recorded)
            if (!std::isnan(score)) known.push_back(score);
        if (known.empty() || std::isnan(value)) return true;
        std::sort(known.begin(), known.end(), std::greater<>());
        const double place = static_cast<double>(known.size() - 1) / eta_; // from the top
        const auto above = static_cast<std::size_t>(place);
        const double rest = place - static_cast<double>(above);
        if (rest == 0.0) return own >= known[above];
        if (std::isinf(known[above + 1])) return true;
        return own >= known[above] - (known[above] - known[above + 1]) * rest;
    }

    std::string rule_;
    double eta_;
    bool ends_; ///< at the last iteration
    std::vector<std::vector<Iteration>> levels_;
    std::map<base::TrialId, std::uint32_t> bracket_;
    std::map<std::pair<std::uint32_t, std::size_t>, Entries> rungs_; ///< by bracket and number
};

/// Asks for every report of the history, and compares. Returns the number of reports that were compared at a rung.
template <class Compare>
std::size_t replay(const study::StudySpec& spec, std::uint64_t seed, Compare compare) {
    testing::WorldOptions options;
    options.seed = seed;
    options.trials = 60;
    options.slots = static_cast<std::uint32_t>(1 + seed % 9);
    options.checked = false;
    testing::World world(spec, options);
    world.run();
    const auto scheduler = make_scheduler(spec);
    std::size_t compared = 0;
    for (const auto& record : world.records()) compared += compare(*scheduler, record) ? 1 : 0;
    return compared;
}

} // namespace

TEST_CASE("ASHA promote agrees with the paper's algorithm done by sorting", "[schedulers]") {
    for (const std::uint32_t brackets : {1U, 3U}) {
        for (std::uint64_t seed = 1; seed <= 40; ++seed) {
            auto spec = study_for("promote", "floor", seed % 2 == 0 ? 2 : 3, 14, brackets);
            set_option(spec.scheduler, {"delayed", seed > 20});
            PromoteByTheBook book(spec);
            const auto compared = replay(spec, seed, [&](Scheduler& scheduler, const study::Record& record) {
                bool at_rung = false;
                if (const auto* report = std::get_if<study::Reported>(&record)) {
                    const double value = value_of(*report);
                    const double score = study::score(value, study::Mode::max);
                    for (const bool contended : {false, true}) {
                        const auto verdict =
                            scheduler.decide({report->trial, report->iteration, score, std::isnan(value)}, contended);
                        REQUIRE(verdict.verb == book.decide(report->trial, report->iteration, score, contended));
                        at_rung = at_rung || verdict.reason == Reason::rung || verdict.reason == Reason::in_top;
                    }
                }
                scheduler.apply(record);
                book.apply(record);
                const Work work = scheduler.next({.can_create = true, .active = true});
                const auto* promotion = std::get_if<Promotion>(&work);
                const auto expected = book.next();
                REQUIRE((promotion != nullptr) == expected.has_value());
                if (expected) REQUIRE(promotion->trial == *expected);
                return at_rung;
            });
            CHECK(compared > 30);
        }
    }
}

TEST_CASE("the stopping rules agree with sorting", "[schedulers]") {
    for (const std::string rule : {"floor", "ray"}) {
        for (const bool stop_last : {true, false}) {
            for (std::uint64_t seed = 1; seed <= 12; ++seed) {
                const double eta = rule == "ray" && seed % 3 == 0 ? 2.5 : 3.0;
                auto spec = study_for("stop", rule, eta, 14, 2);
                set_option(spec.scheduler, {"stop_last_trials", stop_last});
                StopByTheBook book(rule, eta, stop_last);
                const auto compared = replay(spec, seed, [&](Scheduler& scheduler, const study::Record& record) {
                    bool at_rung = false;
                    if (const auto* report = std::get_if<study::Reported>(&record)) {
                        const double value = value_of(*report);
                        const double score = study::score(value, study::Mode::max);
                        REQUIRE(scheduler.decide({report->trial, report->iteration, score, std::isnan(value)}, false)
                                    .verb == book.decide(*report));
                        at_rung = book.enters(*report);
                    }
                    scheduler.apply(record);
                    book.apply(record);
                    return at_rung;
                });
                CHECK(compared > 30);
            }
        }
    }
}

TEST_CASE("of 81 trials in random order each rule lets as many go on as was computed and measured", "[schedulers]") {
    constexpr int studies = 1500;
    constexpr std::uint32_t trials = 81;
    struct Count {
        double went_on = 0.0;
        double missed = 0.0; ///< of the final best third
    };
    const auto run = [](const std::string& variant, const std::string& rule) {
        Count mean;
        for (int i = 0; i < studies; ++i) {
            Driver d(study_for(variant, rule, 3, 3, 1), false);
            base::RngStream random(99, base::Purpose::fault, static_cast<std::uint32_t>(i));
            std::vector<Ranked> order;
            std::set<base::TrialId> went_on;
            for (std::uint32_t k = 0; k < trials; ++k) {
                const base::TrialId trial = d.add();
                order.push_back({random.uniform(), trial});
                if (d.report(trial, 1, order.back().score).verb == Verb::go_on) went_on.insert(trial);
                while (const auto promotion = d.next({.can_create = true, .active = true})) {
                    went_on.insert(promotion->trial);
                    d.promote(*promotion);
                }
            }
            order = sorted(order);
            mean.went_on += static_cast<double>(went_on.size()) / studies;
            for (std::uint32_t k = 0; k < trials / 3; ++k) {
                if (went_on.count(order[k].trial) == 0) mean.missed += 1.0 / studies;
            }
        }
        return mean;
    };
    const Count promote = run("promote", "floor");
    CHECK(promote.went_on == Approx(30.4).margin(0.3));
    CHECK(promote.missed == 0.0);
    double expected = 0.0; // the sum over i of max(floor(i/3), 1) / i
    for (std::uint32_t i = 1; i <= trials; ++i) expected += std::max(i / 3, 1U) / static_cast<double>(i);
    CHECK(expected == Approx(26.76).margin(0.01));
    const Count floor = run("stop", "floor");
    CHECK(floor.went_on == Approx(expected).margin(0.35));
    CHECK(floor.missed == Approx(2.8).margin(0.3));
    const Count ray = run("stop", "ray");
    CHECK(ray.went_on == Approx(29.0).margin(0.35));
    CHECK(ray.missed == Approx(1.6).margin(0.3));
}

} // namespace reference_test
