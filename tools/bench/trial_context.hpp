// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trial outside of a study, with the options of a command line.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ranktune/ddp/group.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::bench {

struct TrialOptions {
    std::string builtin = "torch";
    std::vector<std::string> gpus; ///< of this rank
    space::Configuration configuration;
};

inline space::Value value_of(const std::string& text) {
    const char* const end = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto [stop, error] = std::from_chars(text.data(), end, whole); error == std::errc() && stop == end)
        return space::Value(whole);
    double number = 0.0;
    if (const auto [stop, error] = std::from_chars(text.data(), end, number); error == std::errc() && stop == end)
        return space::Value(number);
    if (text == "true" || text == "false") return space::Value(text == "true");
    return space::Value(text);
}

/// From arguments OPTION=VALUE.
inline TrialOptions trial_options(const std::vector<std::string>& arguments) {
    TrialOptions options;
    for (const std::string& argument : arguments) {
        const std::size_t sign = argument.find('=');
        const std::string key = argument.substr(0, sign);
        const std::string value = sign == std::string::npos ? std::string() : argument.substr(sign + 1);
        if (key == "builtin")
            options.builtin = value;
        else if (key == "gpu")
            options.gpus = {value};
        else
            options.configuration.set(key, value_of(value));
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
    [[nodiscard]] std::vector<std::string> devices() const override { return options_.gpus; }
    void log(std::string_view line) override {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    }

  private:
    ddp::Group& group_;
    TrialOptions options_;
};

} // namespace ranktune::bench
