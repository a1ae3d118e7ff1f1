// SPDX-License-Identifier: Apache-2.0
// A searcher of your own: a step from the best configuration that was seen. Its description, and the contract of all
// searchers as its test. `<ranktune/algorithms.hpp>` has everything by short names; here are the headers behind it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ranktune/algorithms.hpp>
#include <ranktune/searchers/observations.hpp>
#include <ranktune/searchers/searcher.hpp>
#include <ranktune/searchers/stateless.hpp>
#include <ranktune/space/condition.hpp>
#include <ranktune/space/domain.hpp>
#include <ranktune/space/search_space.hpp>
#include <ranktune/testing/contract.hpp>

/// It has no state beside the table of observations, which the core keeps.
class Steps final : public ranktune::StatelessSearcher {
  public:
    explicit Steps(const ranktune::StudySpec& study)
        : space_(study.space), seed_(study.seed), width_(study.searcher.options.at("width").as_double()) {}

    std::string_view name() const override { return "steps"; }
    bool learns() const override { return true; }

    std::optional<ranktune::Configuration> suggest(std::uint64_t index,
                                                   const ranktune::Observations& seen) const override {
        ranktune::RngStream random(seed_, ranktune::user_purpose(0), static_cast<std::uint32_t>(index));
        std::vector<double> point = best(seen);
        for (double& x : point) {
            const double near = x + width_ * (random.uniform() - 0.5);
            x = std::isnan(x) ? random.uniform() : std::clamp(near, 0.0, 0x1.fffffffffffffp-1); // below 1
        }
        return space_.decode(point, index);
    }

  private:
    /// Coordinates in the unit cube, NaN where anything will do.
    std::vector<double> best(const ranktune::Observations& seen) const {
        std::vector<double> point(space_.dimensions(), std::numeric_limits<double>::quiet_NaN());
        double score = -std::numeric_limits<double>::infinity();
        for (std::size_t line = 0; line < seen.size(); ++line) {
            const ranktune::Observation& observation = seen[line];
            if (observation.kind != ranktune::Observation::Kind::reported) continue;
            if (observation.score.rank() <= score) continue;
            score = observation.score.rank();
            point = seen.point(observation.point);
        }
        return point;
    }

    const ranktune::SearchSpace& space_;
    std::uint64_t seed_;
    double width_;
};

ranktune::SearcherInfo describe_steps() {
    ranktune::SearcherInfo info;
    info.name = "steps";
    info.description = "a step from the best configuration that was seen.";
    info.options = {{.name = "width",
                     .kind = ranktune::OptionKind::number,
                     .standard = 0.3,
                     .description = "Longest step, both ways together, in the unit cube.",
                     .low = 0.0,
                     .high = 1.0}};
    info.make = [](const ranktune::StudySpec& study) { return std::make_unique<Steps>(study); };
    return info;
}

/// The best of 50 suggestions for (lr - 0.2)^2, which are seen one after the other.
double best_of_fifty() {
    namespace space = ranktune::space;
    ranktune::StudySpec study;
    study.seed = 7;
    study.space =
        ranktune::SearchSpace({{"kind", space::Choice{{"sgd", "adam"}}, {}},
                               {"lr", space::FloatRange{0.0, 1.0}, {}},
                               {"momentum", space::FloatRange{0.5, 0.9}, space::Condition::parse("kind == 'sgd'")}});
    study.searcher = chosen(std::make_shared<const ranktune::SearcherInfo>(describe_steps()), {{"width", 0.2}});
    const Steps searcher(study);
    ranktune::Observations seen(study.space.dimensions());
    double best = 1.0;
    for (std::uint32_t i = 0; i < 50; ++i) {
        const ranktune::TrialId trial(i);
        const auto suggestion = searcher.suggest(i, seen);
        const double loss = std::pow(suggestion->at("lr").as_double() - 0.2, 2);
        seen.asked(trial, 0, study.space, *suggestion);
        seen.reported(trial, 1, ranktune::Score(-loss));
        best = std::min(best, loss);
    }
    return best;
}

int main() {
    ranktune::register_searcher(describe_steps()); // a program calls run_program(argc, argv) next
    for (const std::string& rule : ranktune::testing::check_searcher(describe_steps())) {
        std::fprintf(stderr, "%s\n", rule.c_str());
        return 1;
    }
    return best_of_fifty() < 1e-4 ? 0 : 1;
}
