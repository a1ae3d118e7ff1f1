// SPDX-License-Identifier: Apache-2.0
#include "report/export/take_checkpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ranktune/base/error.hpp"

namespace ranktune::report {
namespace {

constexpr int most_rounds = 20;

bool lists(const std::vector<study::CheckpointRef>& all, const study::CheckpointRef& one) {
    return std::any_of(all.begin(), all.end(), [&](const auto& other) { return other.path == one.path; });
}

} // namespace

std::pair<study::CheckpointRef, study::MemoryState> take_checkpoint(
    const std::function<std::vector<study::CheckpointRef>()>& list,
    const std::function<study::MemoryState(const study::CheckpointRef&)>& load,
    const std::function<void(const std::string&)>& tell) {
    auto candidates = list();
    std::size_t at = 0;
    for (int round = 0; round < most_rounds;) {
        const study::CheckpointRef& candidate = candidates.at(at);
        try {
            return {candidate, load(candidate)};
        } catch (const base::Error& error) {
            auto now = list();
            if (!lists(now, candidate)) {
                candidates = std::move(now);
                at = 0;
                ++round;
                continue;
            }
            if (at + 1 == candidates.size()) throw;
            tell(fmt::format("the checkpoint of iteration {} cannot be used: {}; taking that of iteration {}",
                             candidate.iteration, error.what(), candidates[at + 1].iteration));
            ++at;
        }
    }
    throw base::UsageError(
        "the study replaces the checkpoints of this trial faster than they can be read; try again, or when the trial "
        "has paused or ended");
}

} // namespace ranktune::report
