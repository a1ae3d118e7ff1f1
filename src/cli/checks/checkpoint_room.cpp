// SPDX-License-Identifier: Apache-2.0
// How much room checkpoints need, as far as that is known before a run.

#include <algorithm>

#include <fmt/format.h>

#include "cli/checks/remarks.hpp"
#include "ranktune/base/error.hpp"
#include "report/explain/plan.hpp"
#include "searchers/built_in.hpp"
#include "study/options.hpp"
#include "trainables/builtin.hpp"

namespace ranktune::cli {
namespace {

std::optional<std::uint64_t> largest_of_first(const study::StudySpec& spec) {
    constexpr std::uint32_t looked_at = 32;
    std::optional<std::uint64_t> most;
    const auto searcher = searchers::make_searcher(spec);
    for (std::uint32_t i = 0; i < std::min(looked_at, spec.num_trials); ++i) {
        auto configuration = searcher->suggest(i, {});
        if (!configuration) continue;
        study::add_options(*configuration, spec);
        const auto bytes = trainables::state_bytes(spec.trainable.name, *configuration);
        if (bytes) most = std::max(most.value_or(0), *bytes);
    }
    return most;
}

} // namespace

std::optional<std::uint64_t> state_bytes(const study::StudySpec& spec) {
    try {
        return largest_of_first(spec);
    } catch (const base::Error&) { // data missing or damaged: `run` reports it
        return std::nullopt;
    }
}

std::string room_warning(const study::StudySpec& spec, const report::Style& style) {
    const report::Plan plan = report::plan(spec);
    if (!spec.checkpoint.max_bytes || plan.scheduler.needed_checkpoints == 0) return {};
    const std::uint64_t limit = *spec.checkpoint.max_bytes;
    // One trial at least trains.
    const std::uint64_t needed = plan.scheduler.needed_checkpoints - 1 + plan.running_checkpoints;
    const auto bytes = state_bytes(spec);
    if (bytes && needed * *bytes <= limit) return {};
    const std::string members = fmt::format("{} of {} trials needs {} checkpoints and more at one time, ",
                                            spec.scheduler.algorithm->name, spec.num_trials, needed);
    const std::string without = "; trials that lose all of theirs lose what they have learned, and take over another's";
    const std::string text =
        bytes
            ? members + fmt::format("{} in all, and checkpoint.max_bytes is {}{}: raise it, or lower study.num_trials",
                                    base::bytes_text(needed * *bytes), base::bytes_text(limit), without)
            : members + fmt::format("so that checkpoint.max_bytes ({}) has room for states of up to {} each{}",
                                    base::bytes_text(limit), base::bytes_text(limit / needed), without);
    const std::string lines = report::prose(bytes ? "warning" : "room", text, style);
    return report::encoded(bytes ? report::paint(lines, report::Tone::bad, style) : lines, style);
}

} // namespace ranktune::cli
