// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trial outside of a study, with the options of a command line.

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options.hpp"
#include "ranktune/ddp/group.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::bench {

struct TrialOptions {
    std::string builtin = "torch";
    std::vector<std::string> gpus; ///< of this rank
    space::Configuration configuration;
};

/// From arguments OPTION=VALUE.
inline TrialOptions trial_options(const std::vector<std::string>& arguments) {
    TrialOptions options;
    for (const std::string& argument : arguments) {
        if (argument.starts_with("builtin="))
            options.builtin = argument.substr(8);
        else if (argument.starts_with("gpu="))
            options.gpus = {argument.substr(4)};
        else {
            study::OptionValue option = option_of(argument);
            options.configuration.set(option.option, std::move(option.value));
        }
    }
    return options;
}

class TrialContext final : public trainables::TrialContext {
  public:
    TrialContext(ddp::Group& group, TrialOptions options) : group_(group), options_(std::move(options)) {}
    [[nodiscard]] const space::Configuration& configuration() const override { return options_.configuration; }
    [[nodiscard]] base::TrialId trial() const override { return base::TrialId(0); }
    [[nodiscard]] std::uint64_t seed() const override { return 1; }
    [[nodiscard]] base::Iteration iteration() const override { return 0; }
    [[nodiscard]] base::Iteration max_iterations() const override { return 1000; }
    [[nodiscard]] ddp::Group& group() const override { return group_; }
    [[nodiscard]] int cpus_per_rank() const override { return 1; }
    [[nodiscard]] std::uint64_t memory() const override { return std::uint64_t{1} << 33U; }
    [[nodiscard]] std::vector<std::string> devices() const override { return options_.gpus; }
    [[nodiscard]] const study::DataFile& data(std::string_view name) const override {
        return trainables::data_called(name, {});
    }
    void log(std::string_view line) override {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    }

  private:
    ddp::Group& group_;
    TrialOptions options_;
};

} // namespace ranktune::bench
