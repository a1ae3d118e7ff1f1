// SPDX-License-Identifier: Apache-2.0
#include "cli/standing.hpp"

#include <fmt/format.h>

#include "storage/journal/lease.hpp"

namespace ranktune::cli {

Standing standing_of(const tuner::State& state, const std::string& directory) {
    const char* word = tuner::is_over(state) ? "ended" : "stopped";
    if (state.ended) return {fmt::format("{}, exit {}", word, static_cast<int>(state.outcome)), false, {}};
    auto& files = storage::posix_file_system();
    if (const auto writer = storage::possible_writer(files, directory))
        return {"run by " + describe(*writer), false, {}};
    Standing standing{"not running", true, studydir::read_outcome(files, {directory})};
    if (standing.outcome && standing.outcome->start != state.incarnation.value()) standing.outcome.reset();
    if (standing.outcome) standing.text = fmt::format("stopped, exit {}", static_cast<int>(standing.outcome->outcome));
    return standing;
}

} // namespace ranktune::cli
