// SPDX-License-Identifier: Apache-2.0
// The built-in `curve`: score(i) = a - b * i^-c + noise, the form in which learning curves are usually fitted
// (Domhan et al., IJCAI 2015: pow3). Costs nothing unless `seconds` is set.

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "ranktune/base/rng.hpp"
#include "trainables/builtin.hpp"
#include "trainables/options.hpp"

namespace ranktune::trainables {

namespace {

using Kind = study::OptionInfo::Kind;

const study::TrainableInfo& curve_info() {
    static const study::TrainableInfo info{
        .name = "curve",
        .description = "synthetic learning curve, score = a - b * iteration^-c + noise: for tests and dry runs",
        .options =
            {
                {"a", Kind::number, false, "score after infinitely many iterations (1.0)"},
                {"b", Kind::number, false, "what is missing after the first iteration (1.0)"},
                {"c", Kind::number, false, "speed of learning (0.5)", {}, 0.0, {}},
                {"lr", Kind::number, false, "costs 0.1 * log10(lr / 0.01)^2 of the score (0.01)", {}, 1e-300, {}},
                {"noise", Kind::number, false, "standard deviation of the noise (0.0)", {}, 0.0, {}},
                {"seconds", Kind::number, false, "time of one iteration, slept (0.0)", {}, 0.0, 86400.0},
                {"fail_rate", Kind::number, false, "share of the trials that throw (0.0)", {}, 0.0, 1.0},
                {"fail_iteration",
                 Kind::integer,
                 false,
                 "at which iteration they throw; 0: at one of all (0)",
                 {},
                 0.0,
                 {}},
                {"fail_rank", Kind::integer, false, "which rank of the trial throws; -1: any (-1)", {}, -1.0, {}},
                {"nan_rate", Kind::number, false, "share of the trials whose score is NaN (0.0)", {}, 0.0, 1.0},
                {"state_bytes", Kind::integer, false, "size of the checkpoint beside the counter (0)", {}, 0.0, 1e12},
            },
        .can_checkpoint = true,
        .any_option = false,
        .metrics = {"score", "loss"},
    };
    return info;
}

class Curve final : public Trainable {
  public:
    void setup(TrialContext& context) override {
        const Options options(context.configuration(), curve_info());
        const double decades = std::log10(options.number("lr", 0.01) / 0.01);
        limit_ = options.number("a", 1.0) - 0.1 * decades * decades;
        gap_ = options.number("b", 1.0);
        speed_ = options.number("c", 0.5);
        noise_ = options.number("noise", 0.0);
        seconds_ = options.number("seconds", 0.0);
        seed_ = context.seed();
        trial_ = context.trial().value();
        state_.resize(static_cast<std::size_t>(options.integer("state_bytes", 0)));
        plan_faults(context, options);
    }

    Metrics step(TrialContext& context) override {
        const base::Iteration current = iteration_ + 1;
        if (seconds_ > 0.0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
        if (current == fails_at_ && context.rank() == fails_on_)
            throw base::Error("curve was told to fail at iteration " + std::to_string(current));
        iteration_ = current;
        double score = limit_ - gap_ * std::pow(static_cast<double>(current), -speed_);
        if (noise_ > 0.0) {
            base::RngStream random(seed_, base::Purpose::curve, trial_, static_cast<std::uint32_t>(current));
            score += noise_ * random.normal();
        }
        if (is_nan_) score = std::numeric_limits<double>::quiet_NaN();
        return {{"score", score}, {"loss", 1.0 - score}};
    }

    void save(study::StateSink& sink) const override {
        const std::uint64_t counter = iteration_;
        sink.put<std::uint64_t>("iteration", std::span(&counter, 1));
        if (!state_.empty()) sink.put<std::uint8_t>("state", state_);
    }

    void load(study::StateSource& source) override {
        std::uint64_t counter = 0;
        source.get<std::uint64_t>("iteration", std::span(&counter, 1));
        if (!state_.empty()) source.get<std::uint8_t>("state", state_);
        iteration_ = counter;
    }

  private:
    /// Computed identically on every rank, so that all know which rank fails and when.
    void plan_faults(const TrialContext& context, const Options& options) {
        base::RngStream random(seed_, base::Purpose::fault, trial_);
        const bool fails = random.uniform() < options.number("fail_rate", 0.0);
        const std::uint64_t iteration = 1 + random.below(std::max<std::uint64_t>(context.max_iterations(), 1));
        const std::uint64_t rank = random.below(static_cast<std::uint64_t>(context.size()));
        is_nan_ = random.uniform() < options.number("nan_rate", 0.0);
        const std::int64_t given_iteration = options.integer("fail_iteration", 0);
        const std::int64_t given_rank = options.integer("fail_rank", -1);
        fails_at_ = !fails ? 0 : given_iteration > 0 ? static_cast<base::Iteration>(given_iteration) : iteration;
        fails_on_ = given_rank >= 0 ? static_cast<int>(given_rank % context.size()) : static_cast<int>(rank);
    }

    double limit_ = 1.0;
    double gap_ = 1.0;
    double speed_ = 0.5;
    double noise_ = 0.0;
    double seconds_ = 0.0;
    std::uint64_t seed_ = 0;
    std::uint32_t trial_ = 0;
    base::Iteration iteration_ = 0;
    base::Iteration fails_at_ = 0; ///< 0: never
    int fails_on_ = 0;
    bool is_nan_ = false;
    std::vector<std::uint8_t> state_;
};

} // namespace

Registration curve_registration() {
    return {curve_info(), [] { return std::make_unique<Curve>(); }, {}};
}

std::uint64_t curve_state_bytes(const space::Configuration& configuration) {
    const Options options(configuration, curve_info());
    return sizeof(std::uint64_t) + static_cast<std::uint64_t>(options.integer("state_bytes", 0));
}

} // namespace ranktune::trainables
