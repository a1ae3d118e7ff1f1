// SPDX-License-Identifier: Apache-2.0
#pragma once
// A TrialContext for tests: no driver, any Collective.

#include <utility>

#include "ranktune/trainables/trainable.hpp"

namespace ranktune::testing {

class Context final : public trainables::TrialContext {
  public:
    Context(ddp::Collective& collective, space::Configuration configuration, std::uint32_t trial = 0,
            base::Iteration max_iterations = 10)
        : collective_(collective),
          configuration_(std::move(configuration)),
          trial_(trial),
          max_iterations_(max_iterations) {}

    [[nodiscard]] base::TrialId trial() const override { return trial_; }
    [[nodiscard]] std::uint64_t seed() const override { return 1; }
    [[nodiscard]] const space::Configuration& configuration() const override { return configuration_; }
    [[nodiscard]] base::Iteration max_iterations() const override { return max_iterations_; }
    [[nodiscard]] base::Iteration iteration() const override { return 0; }
    [[nodiscard]] int cpus_per_rank() const override { return cpus; }
    [[nodiscard]] std::vector<std::string> devices() const override { return {}; }
    [[nodiscard]] ddp::Collective& collective() const override { return collective_; }
    void log(std::string_view) override {}

    int cpus = 1;

  private:
    ddp::Collective& collective_;
    space::Configuration configuration_;
    base::TrialId trial_;
    base::Iteration max_iterations_;
};

} // namespace ranktune::testing
