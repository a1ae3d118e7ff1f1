// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the parts of an attempt share, and the context that user code sees.

#include <string>
#include <string_view>
#include <vector>

#include "ranktune/trainables/context.hpp"
#include "worker/trial/attempt.hpp"
#include "worker/trial/group_collective.hpp"
#include "worker/trial/trial_loop.hpp"

namespace ranktune::worker {

/// What a body works with. Everything here outlives the body.
struct AttemptParts {
    const AttemptSetting& setting;
    const Assignment& assignment;
    const space::Configuration& configuration; ///< hyper-parameters and fixed options
    GroupCollective& group;
    AttemptPort& port;
    TrialLoop& loop;
};

/// `Context` is TrialContext or the context of another form of user code.
template <std::derived_from<trainables::TrialContext> Context>
class AttemptContext : public Context {
  public:
    explicit AttemptContext(const AttemptParts& parts) : parts_(parts) {}
    [[nodiscard]] const space::Configuration& configuration() const override { return parts_.configuration; }
    [[nodiscard]] base::TrialId trial() const override { return parts_.assignment.start.trial; }
    [[nodiscard]] std::uint64_t seed() const override { return parts_.setting.spec->seed_of(trial()); }
    [[nodiscard]] base::Iteration iteration() const override { return parts_.loop.iteration(); }
    [[nodiscard]] base::Iteration max_iterations() const override { return parts_.setting.spec->max_iterations; }
    [[nodiscard]] ddp::Group& group() const override { return parts_.group; }
    [[nodiscard]] int cpus_per_rank() const override {
        return static_cast<int>(parts_.setting.spec->resources.cpus_per_rank);
    }
    [[nodiscard]] std::uint64_t memory() const override { return parts_.setting.memory; }
    [[nodiscard]] std::vector<std::string> devices() const override { return parts_.setting.devices.devices; }
    [[nodiscard]] const study::DataFile& data(std::string_view name) const override {
        return trainables::data_called(name, parts_.setting.spec->data);
    }
    void log(std::string_view line) override { parts_.port.log(trial(), line); }

  private:
    AttemptParts parts_;
};

} // namespace ranktune::worker
