// SPDX-License-Identifier: Apache-2.0
// validate and run --dry-run: checks a study file and shows its plan, without MPI.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "cli/checks/ranks_here.hpp"
#include "cli/checks/remarks.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "data/formats.hpp"
#include "data/staging/file_list.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/explain/next_steps.hpp"
#include "report/explain/plan.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "searchers/built_in.hpp"
#include "storage/file_system.hpp"
#include "study/outside.hpp"
#include "study/side_tasks.hpp"
#include "studydir/earlier/earlier_results.hpp"
#include "trainables/builtin.hpp"
#include "trainables/program/row_table.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::cli {
namespace {

/// `why`: the reason for this number of workers; may be empty.
std::string layout(const study::StudySpec& spec, std::uint32_t workers, const std::string& why,
                   const report::Style& style) {
    const std::uint32_t most = spec.max_ranks_per_trial();
    std::string text = report::prose("layout",
                                     fmt::format("{} ranks: rank 0 is the head, which trains nothing; {}", workers + 1,
                                                 report::counted(workers, "worker")),
                                     style);
    text += report::prose("", why, style);
    if (spec.resources.gpus == study::GpuUse::some)
        return text + report::prose("",
                                    fmt::format("groups of as many ranks with a GPU each as {} says; where it says 0, "
                                                "of {} without",
                                                spec.resources.ranks_parameter, spec.resources.ranks),
                                    style);
    if (!spec.resources.ranks_parameter.empty()) {
        return text + report::prose("",
                                    fmt::format("groups of as many ranks as {} says, {} at most",
                                                spec.resources.ranks_parameter, most),
                                    style);
    }
    const std::uint32_t active = workers - std::min(spec.output.spares + spec.resources.helpers, workers);
    const std::uint32_t groups = spec.trials_at_once(workers);
    constexpr std::uint32_t shown = 8;
    for (std::uint32_t group = 0; group < std::min(groups, shown); ++group) {
        const std::uint32_t first = group * most + 1;
        text += report::prose("",
                              most == 1 ? fmt::format("group {}: rank {}", group + 1, first)
                                        : fmt::format("group {}: ranks {} to {}", group + 1, first, first + most - 1),
                              style);
    }
    if (groups > shown) text += report::prose("", fmt::format("and {} more", groups - shown), style);
    if (active % most != 0) {
        const std::string left = active % most == 1 ? "1 worker is" : fmt::format("{} workers are", active % most);
        text += report::prose("", fmt::format("{} left over: a multiple of {} wastes none", left, most), style);
    }
    if (spec.output.spares > 0)
        text += report::prose(
            "", fmt::format("{} for ranks that die (run.spares)", report::counted(spec.output.spares, "spare")), style);
    return text;
}

/// The disk space that the checkpoints will take.
std::string disk(const study::StudySpec& spec, const study::TrainableInfo* info, const report::Style& style) {
    if (!spec.checkpoint.supported) return "";
    const report::Plan plan = report::plan(spec);
    std::string text = fmt::format("checkpoints at one time: {} at most of each running trial, {} of all paused ones",
                                   plan.running_checkpoints, plan.scheduler.paused_checkpoints);
    text += info != nullptr && info->sharded ? "; a file per rank" : "; a file each";
    std::string out = report::prose("disk", text, style);
    const auto bytes = state_bytes(spec);
    if (bytes) {
        const auto of = [&](std::uint64_t files) { return base::bytes_text(files * *bytes); };
        out += report::prose("",
                             fmt::format("a state takes about {}: {} of each running trial, {} of paused ones", of(1),
                                         of(plan.running_checkpoints), of(plan.scheduler.paused_checkpoints)),
                             style);
    }
    if (spec.checkpoint.max_bytes)
        out += report::prose(
            "", fmt::format("limit {} (checkpoint.max_bytes)", base::bytes_text(*spec.checkpoint.max_bytes)), style);
    return out;
}

/// The room that copies of [data] take. Throws base::UsageError for what cannot be copied.
std::string copies(const study::StudySpec& spec, const report::Style& style) {
    if (!spec.staging.stage || spec.data.empty()) return "";
    std::uint64_t bytes = 0;
    std::uint64_t rows = 0;
    std::string tables;
    std::string in_place;
    for (const study::DataFile& file : spec.data) {
        if (file.is_mixture()) continue;
        if (study::makes_staged_files(spec) && !std::filesystem::exists(file.path)) {
            in_place += report::prose("", fmt::format("data.{} is copied when [before] has made it", file.name), style);
            continue;
        }
        const data::FileList list = data::list_files(file);
        if (const std::string part = data::part_elsewhere(list); !part.empty()) {
            in_place += report::prose("", fmt::format("data.{} is read where it is: {}", file.name, part), style);
            continue;
        }
        bytes += list.bytes;
        if (!file.decode) continue;
        const auto decoded = data::decoded_bytes(file.path, data::options_of(file));
        rows += decoded.value_or(0);
        if (!decoded) tables += (tables.empty() ? "data." : ", data.") + file.name;
    }
    if (bytes == 0) return in_place;
    const std::string& directory = spec.staging.directory;
    std::string text = fmt::format("each node copies {} of data to {}", base::bytes_text(bytes),
                                   directory.empty() ? "$TMPDIR or memory" : directory);
    if (rows > 0) text += fmt::format(", with {} of decoded rows", base::bytes_text(rows));
    text +=
        spec.staging.must_fit ? ", or the study ends (data.must_fit)" : ", or reads the original if that has no room";
    if (!tables.empty() && !spec.staging.must_fit)
        text += fmt::format("; without room for the rows of {} it ends: a table is not read as it is", tables);
    return report::prose("copies", text, style) + in_place;
}

const study::TrainableInfo* info_of(const study::StudySpec& spec) {
    return spec.trainable.program ? nullptr : &trainables::find_trainable(spec.trainable.name).info;
}

/// The command line of a trial with this configuration; empty when the trials are not programs. `table`: of the study;
/// may be null.
std::string command_line_of(const study::StudySpec& spec, const space::Configuration& configuration,
                            base::TrialId trial, const trainables::RowTable* table) {
    if (!spec.trainable.program) return "";
    const space::Configuration all = table != nullptr ? trainables::with_row(configuration, *table) : configuration;
    const space::Value* row = configuration.find(study::row_parameter);
    return report::labelled("", "runs " + study::trial_command_text(spec, all, trial, row));
}

/// The first trials, as the core makes them when it has ranks for all of them.
std::vector<study::TrialCreated> first_trials(study::StudySpec spec, const std::optional<study::WarmStarted>& earlier) {
    constexpr std::size_t shown = 3;
    spec = study::without_side_tasks(std::move(spec));
    spec.deterministic = false; // such a study waits for suggestions that are prepared
    spec.max_concurrent = 0;
    spec.output.spares = 0; // these workers are but for show
    tuner::Tuner tuner(spec);
    tuner::Output out;
    tuner.create("dry run", study::resolved_toml(spec), version(), out);
    if (earlier) tuner.warm_start(*earlier, out);
    study::Began began{base::Incarnation{1}, {}, {}};
    const bool gpus = spec.resources.gpus == study::GpuUse::some;
    for (std::uint32_t i = 0; i < 2 * shown * spec.max_ranks_per_trial(); ++i)
        began.workers.push_back({base::Rank{i + 1}, "dry-run", gpus && i % 2 == 0 ? 1U : 0U});
    tuner.step({base::StudyTime{}, std::move(began)}, out);
    std::vector<study::TrialCreated> trials;
    for (study::Record& record : out.records)
        if (auto* created = std::get_if<study::TrialCreated>(&record); created != nullptr && trials.size() < shown)
            trials.push_back(std::move(*created));
    return trials;
}

/// Where its configuration comes from, if not from the searcher.
std::string origin_text(const study::Origin& origin) {
    if (origin.kind == study::Origin::Kind::start) return fmt::format("start point {}", origin.index + 1);
    if (origin.kind == study::Origin::Kind::repeat)
        return fmt::format("repeat {} of #{}, with another seed", origin.count, origin.index);
    return {};
}

constexpr std::string_view comment_sign = "# ";

/// Turns text into TOML comments, without control characters, so that the whole output of a dry run is a study file.
std::string commented(const std::string& text) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);)
        out += line.empty() ? "#\n" : std::string(comment_sign) + report::printable(line) + "\n";
    return out;
}

/// What the study would learn from earlier ones; reads their files.
std::optional<study::WarmStarted> earlier_of(const study::StudySpec& spec) {
    return studydir::read_earlier_results(storage::posix_file_system(), spec, trainables::known_algorithms());
}
std::string earlier_plan(const std::optional<study::WarmStarted>& earlier, const report::Style& style) {
    return earlier ? earlier_text(*earlier, style) : std::string();
}

} // namespace

int validate(const RunArguments& arguments, const ValidateOptions& options) {
    const StudyInput input =
        read_study(arguments, {},
                   {.looks = !options.elsewhere, .advice = "if only other machines have it, use validate --elsewhere"});
    report::StartInfo info;
    const auto style = detect_terminal().style;
    const auto earlier = earlier_of(input.spec); // before anything is said: it may have mistakes
    std::cout << report::paragraph(report::unbroken(arguments.study) + ": no mistakes", style)
              << report::start_screen(input.spec, info, style) << earlier_plan(earlier, style)
              << (options.verbose ? disk(input.spec, info_of(input.spec), style) : std::string())
              << copies(input.spec, style) << room_warning(input.spec, style)
              << command_warning_lines(input.spec, style)
              << report::labelled("next", is_outside(input.spec) ? "ask for its trials in Python: ranktune.create"
                                                                 : command_of("run", arguments));
    return 0;
}

int dry_run(const RunArguments& arguments) {
    const RanksHere ranks(arguments);
    const StudyInput input = read_study(arguments, ranks.check(), {.looks = ranks.of_this_machine(), .advice = {}});
    refuse_outside(input.spec, directory_for(arguments, input));
    refuse_directory(directory_for(arguments, input), arguments.study, input, arguments.fresh);
    refuse_crowd(arguments, input.spec);
    auto style = detect_terminal().style;
    style.colour = false; // comments hold no escape sequences
    style.width -= std::min(style.width, comment_sign.size());
    report::StartInfo info;
    std::string text = report::start_screen(input.spec, info, style);
    const std::uint32_t workers = ranks.workers(input.spec);
    text += layout(input.spec, workers, ranks.why(workers), style);
    const auto earlier = earlier_of(input.spec);
    std::optional<trainables::RowTable> table;
    if (const auto* path = input.spec.trainable.options.find(study::table_option); input.spec.trainable.program && path)
        table.emplace(path->as_string());
    for (const study::TrialCreated& trial : first_trials(input.spec, earlier)) {
        const std::string origin = origin_text(trial.origin);
        text += report::labelled(fmt::format("trial #{}", trial.trial.value()),
                                 trial.configuration.text() + (origin.empty() ? "" : " (" + origin + ")"));
        text += command_line_of(input.spec, trial.configuration, trial.trial, table ? &*table : nullptr);
    }
    text += earlier_plan(earlier, style) + disk(input.spec, info_of(input.spec), style) + copies(input.spec, style) +
            room_warning(input.spec, style) + command_warning_lines(input.spec, style) +
            "nothing was started (--dry-run)\n";
    std::cout << commented(text) << "\n# The study with every default, as `resolved.toml` will have it.\n"
              << study::resolved_toml_with_bounds(input.spec);
    return 0;
}

} // namespace ranktune::cli
