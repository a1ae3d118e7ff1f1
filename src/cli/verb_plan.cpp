// SPDX-License-Identifier: Apache-2.0
// validate and run --dry-run: what a study means, without MPI.

#include <algorithm>
#include <iostream>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "cli/launch_self.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/plan.hpp"
#include "report/screens.hpp"
#include "report/text.hpp"
#include "searchers/searcher.hpp"
#include "trainables/builtin.hpp"

namespace ranktune::cli {
namespace {

std::string layout(const study::StudySpec& spec, std::uint32_t workers) {
    const std::uint32_t most = spec.max_ranks_per_trial();
    std::string text =
        fmt::format("layout    {} ranks: rank 0 is the head, which trains nothing; {} workers\n", workers + 1, workers);
    if (!spec.resources.ranks_parameter.empty()) {
        text += fmt::format("          groups of as many ranks as {} says, {} at most\n",
                            spec.resources.ranks_parameter, most);
        return text;
    }
    const std::uint32_t groups = workers / most;
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t group = 0; group < std::min(groups, shown); ++group) {
        const std::uint32_t first = group * most + 1;
        text += (most == 1 ? fmt::format("          group {}: rank {}\n", group + 1, first)
                           : fmt::format("          group {}: ranks {} to {}\n", group + 1, first, first + most - 1));
    }
    if (groups > shown) text += fmt::format("          and {} more\n", groups - shown);
    if (workers % most != 0)
        text += fmt::format("          {} workers are left over: a multiple of {} wastes none\n", workers % most, most);
    return text;
}

/// As large as the largest of the first configurations; nothing when it is not known before a trial runs.
std::optional<std::uint64_t> state_bytes(const study::StudySpec& spec) {
    constexpr std::uint32_t looked_at = 32;
    std::optional<std::uint64_t> most;
    const auto searcher = searchers::make_searcher(spec);
    for (std::uint32_t i = 0; i < std::min(looked_at, spec.num_trials); ++i) {
        auto configuration = searcher->suggest(base::TrialId{i});
        if (!configuration) continue;
        for (const auto& option : spec.trainable.options.entries()) configuration->set(option.name, option.value);
        const auto bytes = trainables::state_bytes(spec.trainable.name, *configuration);
        if (bytes) most = std::max(most.value_or(0), *bytes);
    }
    return most;
}

/// What the checkpoints will take.
std::string disk(const study::StudySpec& spec, const study::TrainableInfo* info) {
    if (info != nullptr && !info->can_checkpoint) return "";
    if (spec.trainable.program && !spec.trainable.program->checkpoints) return "";
    const report::Plan plan = report::plan(spec);
    std::string text = fmt::format("checkpoints at one time: {} at most of each running trial, {} of all paused ones",
                                   plan.running_checkpoints, plan.paused_checkpoints);
    text += info != nullptr && info->sharded ? "; a file per rank" : "; a file each";
    std::string out = report::labelled("disk", text);
    std::optional<std::uint64_t> bytes;
    try {
        bytes = state_bytes(spec);
    } catch (const base::Error&) { // the data are missing or damaged: whoever runs the study is told
    }
    if (bytes) {
        const auto of = [&](std::uint64_t files) { return report::bytes_text(files * *bytes); };
        out += report::labelled("", fmt::format("a state takes about {}: {} of each running trial, {} of paused ones",
                                                of(1), of(plan.running_checkpoints), of(plan.paused_checkpoints)));
    }
    if (spec.checkpoint.max_bytes)
        out += report::labelled(
            "", fmt::format("limit {} (checkpoint.max_bytes)", report::bytes_text(*spec.checkpoint.max_bytes)));
    return out;
}

const study::TrainableInfo* info_of(const study::StudySpec& spec) {
    return spec.trainable.program ? nullptr : &trainables::find_trainable(spec.trainable.name).info;
}

/// What a trial of this configuration would run, when the trials are programs.
std::string command_line_of(const study::StudySpec& spec, const space::Configuration& configuration) {
    if (!spec.trainable.program) return "";
    return fmt::format("{:10}runs {}\n", "", study::trial_command_text(spec, configuration));
}

/// As comments, so that the whole output of a dry run is a study file.
std::string commented(const std::string& text) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);) out += line.empty() ? "#\n" : "# " + line + "\n";
    return out;
}

} // namespace

int validate(const std::string& study, const std::vector<std::string>& overrides) {
    const StudyInput input = read_study(study, overrides);
    report::StartInfo info;
    const auto style = detect_terminal().style;
    const std::string screen = report::start_screen(input.spec, info, style);
    std::cout << study << ": no mistakes\n"
              << screen.substr(screen.find('\n') + 1) << disk(input.spec, info_of(input.spec));
    return 0;
}

int dry_run(const RunArguments& arguments) {
    const StudyInput input = read_study(arguments.study, arguments.overrides);
    refuse_directory(directory_for(arguments, input), arguments.study, input, arguments.fresh);
    auto style = detect_terminal().style;
    style.colour = false; // comments hold no escape sequences
    std::string text;
    const auto searcher = searchers::make_searcher(input.spec);
    for (std::uint32_t i = 0; i < std::min(3U, input.spec.num_trials); ++i) {
        const auto configuration = searcher->suggest(base::TrialId{i});
        if (!configuration) continue;
        text += report::pad_right(fmt::format("trial #{}", i), 10) + configuration->text() + "\n";
        text += command_line_of(input.spec, *configuration);
    }
    const std::uint32_t workers =
        arguments.local.value_or(default_workers(input.spec.max_ranks_per_trial(), input.spec.resources.cpus_per_rank));
    refuse_too_few_ranks(input.spec, workers, fmt::format("use --local {}", input.spec.max_ranks_per_trial()));
    text += layout(input.spec, workers);
    report::StartInfo info;
    const std::string screen = report::start_screen(input.spec, info, style);
    text += screen.substr(screen.find('\n') + 1) + disk(input.spec, info_of(input.spec)) +
            "nothing was started (--dry-run)\n";
    std::cout << "# The study with every default, as `resolved.toml` will have it.\n"
              << study::resolved_toml(input.spec) << "\n"
              << commented(text);
    return 0;
}

} // namespace ranktune::cli
