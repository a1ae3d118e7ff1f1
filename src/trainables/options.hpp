// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a trainable's options from its configuration, with defaults and bounds. Every error names the key.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::trainables {

/// A configuration with the option list of its trainable. Values are checked against the list again here, because they
/// may come from a search space.
class Options {
  public:
    /// Both must outlive this object.
    Options(const space::Configuration& configuration, const study::TrainableInfo& info)
        : configuration_(configuration), info_(info) {}

    // Each returns `fallback` when the option is absent, and throws base::UsageError for a wrong kind, a number out of
    // bounds, or a string that is not accepted. The name must be in the list.
    [[nodiscard]] double number(std::string_view name, double fallback) const;
    [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
    [[nodiscard]] bool flag(std::string_view name, bool fallback) const;
    [[nodiscard]] std::string text(std::string_view name, const std::string& fallback) const;
    /// A list of integers; a single integer is a list of one.
    [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name,
                                                     const std::vector<std::int64_t>& fallback) const;

  private:
    [[nodiscard]] const study::OptionInfo& option(std::string_view name) const;
    void check(const study::OptionInfo& option, double value) const;

    const space::Configuration& configuration_;
    const study::TrainableInfo& info_;
};

} // namespace ranktune::trainables
