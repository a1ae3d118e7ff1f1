// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command lines of verbs: `call` is set to what the parsed verb does.

#include <functional>

namespace CLI {
class App;
}

namespace ranktune::cli {

/// The verbs that steer a running study.
void add_steer_verbs(CLI::App& app, std::function<int()>& call);
/// The verbs that look at studies, and those that take something out.
void add_view_verbs(CLI::App& app, std::function<int()>& call);

} // namespace ranktune::cli
