// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command lines of the verbs that steer a running study.

#include <functional>
#include <string>

#include "cli/verbs/verbs.hpp"

namespace CLI {
class App;
}

namespace ranktune::cli {

class SteerCommands {
  public:
    /// `verb` is set to what the parsed verb does; it must not outlive this object.
    explicit SteerCommands(std::function<int()>& verb) : verb_(verb) {}
    SteerCommands(const SteerCommands&) = delete;
    SteerCommands& operator=(const SteerCommands&) = delete;

    void add(CLI::App& app);
    /// Whether the parsed verb was one of these.
    [[nodiscard]] bool called() const { return called_; }

  private:
    void add_trial_verb(CLI::App& app, study::SteerVerb verb, const char* words);
    void add_add(CLI::App& app);
    void add_set(CLI::App& app);
    void call(study::SteerVerb verb);

    std::function<int()>& verb_;
    SteerArguments arguments_;
    bool called_ = false;
};

} // namespace ranktune::cli
