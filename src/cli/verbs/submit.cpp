// SPDX-License-Identifier: Apache-2.0
// submit: a study as a Slurm job, or a chain of jobs. hosts: the host list that its job script needs.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "cli/checks/remarks.hpp"
#include "cli/parsing/option_checks.hpp"
#include "cli/site_file.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/message.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "launch/job_chain.hpp"
#include "process/command_output.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/text.hpp"
#include "slurm/allocation.hpp"
#include "slurm/gpus.hpp"
#include "slurm/job_script.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;
using slurm::JobScript;

void replace_number(std::string& text, std::uint32_t number) {
    const std::string place = "{gpus}";
    for (auto at = text.find(place); at != std::string::npos; at = text.find(place))
        text.replace(at, place.size(), std::to_string(number));
}

std::uint32_t gpus_of(const SubmitArguments& arguments, const study::StudySpec& spec) {
    const bool some = spec.resources.gpus == study::GpuUse::some;
    const bool wants = spec.resources.gpus == study::GpuUse::one_per_rank || some;
    if (wants && arguments.gpus_per_node == 0)
        throw base::UsageError("the study asks for GPUs (resources.gpus): say how many a node has, --gpus-per-node 4");
    if (some) return arguments.gpus_per_node;
    const std::uint32_t of_each = spec.resources.ranks_per_gpu();
    if (arguments.gpus_per_node > 0 && arguments.workers_per_node &&
        *arguments.workers_per_node != arguments.gpus_per_node * of_each)
        throw base::UsageError(fmt::format("there {} for each GPU: leave --workers-per-node out",
                                           of_each == 1 ? "is one worker" : fmt::format("are {} workers", of_each)));
    return arguments.gpus_per_node;
}

void site_options(const SubmitArguments& arguments, const SiteSettings& site, JobScript& script) {
    const auto option = [&](const std::string& name, const std::string& given,
                            const std::optional<slurm::ScriptLine>& of_site) {
        if (given.empty() && !of_site) return;
        const slurm::ScriptLine value = given.empty() ? *of_site : slurm::ScriptLine{given, ""};
        refuse_several_words(name + (value.from.empty() ? "" : " (" + value.from + ")"), value.text);
        script.options.push_back({name + "=" + value.text, value.from});
    };
    option("--account", arguments.account, site.account);
    option("--partition", arguments.partition, site.partition);
    script.options.insert(script.options.end(), site.options.begin(), site.options.end());
    refuse_own_options(arguments.sbatch);
    // One line for all words: an option and its value may be two words.
    if (!arguments.sbatch.empty()) script.options.push_back({study::shell_text(arguments.sbatch), ""});
    script.commands = site.commands;
    if (site.launcher) script.launcher = *site.launcher;
    if (site.mpi) script.mpi = *site.mpi;
    if (site.lead_time) {
        script.lead = *site.lead_time;
        script.lead_from = site.lead_time_from;
    }
}

std::uint32_t workers_of_node(const SubmitArguments& arguments) {
    if (arguments.gpus_per_node > 0) return arguments.gpus_per_node;
    return arguments.workers_per_node.value_or(JobScript().workers_per_node);
}

/// As many workers as GPUs have one each. Some trials use the others, if the study says so.
std::uint32_t workers_of_node(const SubmitArguments& arguments, const study::StudySpec& spec) {
    const std::uint32_t gpus = arguments.gpus_per_node;
    if (spec.resources.gpus == study::GpuUse::some)
        return arguments.workers_per_node.value_or(gpus + spec.resources.ranks);
    return workers_of_node(arguments) * (gpus > 0 ? spec.resources.ranks_per_gpu() : 1);
}

/// Refuses trials that ask for more ranks than the job will have.
study::RankCheck ranks_of(const SubmitArguments& arguments) {
    const std::uint32_t workers =
        arguments.nodes * std::max(workers_of_node(arguments), arguments.workers_per_node.value_or(0));
    const bool gpus = arguments.gpus_per_node > 0;
    return [workers, gpus](std::uint32_t most) -> std::string {
        if (workers >= most) return "";
        return fmt::format(
            "a trial may ask for {}, but the job has {}; let it ask for fewer, or take more --nodes{}",
            report::counted(most, "rank"), report::counted(workers, "worker"),
            gpus ? " or --gpus-per-node" : ", --workers-per-node or (where it uses GPUs) --gpus-per-node");
    };
}

/// Where some trials have GPUs, and others none.
void require_workers(const study::StudySpec& spec, std::uint32_t with_gpu, std::uint32_t without_gpu) {
    const std::uint32_t gpus = spec.max_ranks_per_trial(study::WorkerKind::with_gpu);
    if (with_gpu < gpus)
        throw base::UsageError(
            fmt::format("a trial may ask for {}, but the job has {}; take more --nodes or --gpus-per-node",
                        report::counted(gpus, "GPU"), with_gpu));
    if (without_gpu < spec.resources.ranks)
        throw base::UsageError(fmt::format(
            "a trial may ask for {} without a GPU (resources.ranks), but the job has {}; take more --nodes, or "
            "--workers-per-node beyond the GPUs",
            report::counted(spec.resources.ranks, "worker"), without_gpu));
}

/// Of a node with GPUs, workers get the share of cores that their GPUs have, if Slurm tells it.
std::uint32_t cores_of_worker(const SubmitArguments& arguments, const study::StudySpec& spec, std::uint32_t workers,
                              const std::string& partition) {
    const std::uint32_t threads = spec.resources.cpus_per_rank;
    if (arguments.cpus_per_worker) return *arguments.cpus_per_worker;
    if (arguments.gpus_per_node == 0) return threads;
    const auto nodes = process::run_command(slurm::cores_and_gpus, std::chrono::seconds(10));
    const auto cores = slurm::cores_per_gpu(nodes.ok() ? nodes.text : "", partition, arguments.gpus_per_node);
    return std::max(threads, cores.value_or(0) * arguments.gpus_per_node / workers);
}

JobScript script_for(const SubmitArguments& arguments, const StudyInput& input, const std::string& directory,
                     const std::string& program) {
    const SiteSettings site = site_settings();
    JobScript script;
    const std::uint32_t gpus = gpus_of(arguments, input.spec);
    script.file = "job.sbatch";
    script.name = input.spec.name;
    script.nodes = arguments.nodes;
    script.ranks_per_gpu = input.spec.resources.ranks_per_gpu();
    script.workers_per_node = workers_of_node(arguments, input.spec);
    if (input.spec.resources.gpus == study::GpuUse::some) {
        if (script.workers_per_node <= gpus)
            throw base::UsageError(
                "some trials have no GPU (resources.gpus may be 0), and train on workers without one: "
                "say more --workers-per-node than --gpus-per-node");
        script.workers_without_gpu = script.workers_per_node - gpus;
        require_workers(input.spec, script.nodes * gpus, script.nodes * script.workers_without_gpu);
    }
    script.cpus_per_worker =
        cores_of_worker(arguments, input.spec, script.workers_per_node,
                        arguments.partition.empty() && site.partition ? site.partition->text : arguments.partition);
    script.time = std::chrono::duration_cast<std::chrono::seconds>(study::parse_duration(arguments.time));
    if (gpus > 0) {
        script.gpus = site.gpus.value_or(slurm::ScriptLine{"--gpus-per-node={gpus}", ""});
        replace_number(script.gpus.text, gpus);
    }
    script.poll = std::chrono::ceil<std::chrono::seconds>(input.spec.slurm.poll_interval);
    site_options(arguments, site, script);
    const auto least = std::max<std::chrono::seconds>(script.lead * 2, std::chrono::minutes(1));
    if (script.time < least)
        throw base::UsageError(fmt::format(
            "--time {} is too short: {} is the least. The last {} of a job are for checkpoints{}, and training gets at "
            "least as long",
            arguments.time, study::duration_text(least), study::duration_text(script.lead),
            script.lead_from.empty() ? "" : " (" + script.lead_from + ")"));
    std::vector<std::string> words{fs::absolute(arguments.study).lexically_normal().string()};
    words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
    words.insert(words.end(), {"-o", directory});
    script.program = study::shell_text({program});
    script.arguments = study::shell_text(words);
    script.directory = study::shell_text({directory});
    return script;
}

/// The layout and cost of the job.
std::string plan_text(const JobScript& script, const study::StudySpec& spec, std::uint32_t chain) {
    const std::uint32_t workers = script.nodes * script.workers_per_node;
    const std::uint32_t without_gpu = script.nodes * script.workers_without_gpu; // where others have one
    const std::uint32_t size = spec.max_ranks_per_trial();
    std::string text =
        fmt::format("layout    {} on {}: the head and {} on the first node", report::counted(workers + 1, "task"),
                    report::counted(script.nodes, "node"), report::counted(script.workers_per_node, "worker"));
    if (script.nodes > 1)
        text += fmt::format(", {} on every other", report::counted(script.workers_per_node, "worker"));
    if (without_gpu > 0)
        text += fmt::format("\ntrials    {} with GPUs and {} without at a time\n",
                            (workers - without_gpu) / spec.max_ranks_per_trial(study::WorkerKind::with_gpu),
                            without_gpu / spec.max_ranks_per_trial(study::WorkerKind::without_gpu));
    else
        text += fmt::format("\ntrials    {} at a time, of {}\n", spec.trials_at_once(workers),
                            report::counted(size, spec.resources.ranks_parameter.empty() ? "rank" : "rank at most"));
    const bool gpus = !script.gpus.text.empty();
    const double hours = static_cast<double>(script.time.count()) / 3600.0;
    const std::uint32_t units =
        gpus ? (workers - without_gpu) / script.ranks_per_gpu : workers * script.cpus_per_worker;
    text += fmt::format("cost      at most {} x {} = {:.6g} {}-hours", report::counted(units, gpus ? "GPU" : "core"),
                        slurm::time_limit_text(script.time), units * hours, gpus ? "GPU" : "core");
    if (chain > 1) text += fmt::format(" for each of {} jobs, {:.6g} in all", chain, units * hours * chain);
    if (gpus) text += fmt::format("\ncores     {} for each worker", script.cpus_per_worker);
    if (gpus && script.cpus_per_worker < slurm::enough_cores)
        text += fmt::format(": with fewer than {}, its GPU often waits for data; --cpus-per-worker N asks for more",
                            slurm::enough_cores);
    return text + "\n";
}

void submit_all(const std::string& script, const std::string& name, const std::string& directory, std::uint32_t chain) {
    const std::string file = studydir::StudyDirectory{directory}.job_script();
    auto& files = storage::posix_file_system();
    files.make_directories(directory + "/submit");
    const auto before = launch::living_jobs(directory);
    studydir::publish_text(files, file, script, false);
    const auto jobs = launch::submit_chain(directory, file, before, chain);
    std::cout << "job       " << jobs.front() << " submitted";
    if (!before.empty()) std::cout << ", to begin when job " << before.back() << " of this study has ended";
    if (chain > 1)
        std::cout << ", then " << base::join(std::vector<std::string>(jobs.begin() + 1, jobs.end()))
                  << " one after the other, until the study is finished";
    std::cout << "\nscript    " << report::escaped(file) << "\nlog       " << report::escaped(name) << "-"
              << jobs.front() << ".log\n"
              << "next      ranktune status " << study::shell_text({directory}) << "\n          scancel "
              << base::join(jobs, " ") << "  # takes it back\n";
}

/// For a finished study: prints so, and returns the study's exit code as `ranktune run` does.
int say_finished(const std::string& study, const std::string& directory, study::StudyOutcome outcome) {
    if (outcome == study::StudyOutcome::ok) {
        std::cout << "the study in " << report::escaped(directory)
                  << " is finished, so nothing was submitted; more of it: "
                  << report::escaped(report::command_text({"submit", study})) << " study.num_trials=N ...\n";
        return 0;
    }
    // `submit` has no --restart-errored: each start of the job, also after a requeue, would restart the failed trials.
    std::cerr << error_message(
        fmt::format("the study in '{0}' has ended, but not well, so nothing was submitted. What failed: ranktune "
                    "status {0}. Its failed trials again, when that is mended: in a job, or on a machine with "
                    "--local N: ranktune run {1} -o {0} --restart-errored",
                    directory, study),
        static_cast<int>(outcome));
    return static_cast<int>(outcome);
}

/// The settings among the arguments of `ranktune run`, after the study.
std::vector<std::string> overrides_in(const std::vector<std::string>& words) {
    std::vector<std::string> overrides;
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "-o")
            ++i;
        else if (!words[i].starts_with("-"))
            overrides.push_back(words[i]);
    }
    return overrides;
}

[[noreturn]] void refuse_script(const std::string& path) {
    throw base::UsageError("'" + path +
                           "' has no line `set -- ...` with the arguments of `ranktune run`: say --time and the rest, "
                           "and the script is written anew");
}

/// Without --time: a job like the last one of the study, by the script of that submission.
int submit_again(const SubmitArguments& arguments) {
    const studydir::StudyDirectory place{fs::absolute(arguments.study).lexically_normal().string()};
    SubmitArguments alone; // what may be said
    alone.study = arguments.study;
    alone.overrides = arguments.overrides;
    alone.chain = arguments.chain;
    alone.print = arguments.print;
    auto& files = storage::posix_file_system();
    if (arguments != alone || !fs::is_directory(place.path) || !files.exists(place.job_script()))
        throw base::UsageError(
            "--time is required: the time limit of the job, such as --time 4:00:00. Only the directory of a study that "
            "was submitted before may stand alone, as in `ranktune submit DIR`: its job is then that of the last "
            "submission");
    const std::string before = storage::read_text(files, place.job_script());
    // A study that has begun goes on with all changes of its study file since then.
    auto words =
        storage::has_journal(files, place.path) ? std::vector<std::string>{place.path} : slurm::arguments_of(before);
    if (words.empty()) refuse_script(place.job_script());
    words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
    const StudyInput input = read_study(words.front(), overrides_in(words));
    const auto opened = studydir::open_study(files, place.path, input.spec, {});
    if (opened.finished) return say_finished(arguments.study, place.path, opened.tuner->state().outcome);
    const std::string script = slurm::with_arguments(before, study::shell_text(words));
    if (script.empty()) refuse_script(place.job_script());
    if (arguments.print) {
        std::cout << script << std::flush;
        std::cerr << "nothing was submitted (--print)\n";
        return 0;
    }
    submit_all(script, input.spec.name, place.path, arguments.chain);
    return 0;
}

int submit_study(const SubmitArguments& arguments, const Invocation& invocation) {
    if (arguments.time.empty()) return submit_again(arguments);
    const StudyInput input = read_study(arguments.study, arguments.overrides, ranks_of(arguments));
    std::string directory = arguments.directory.empty() ? input.directory : arguments.directory;
    if (directory.empty()) directory = input.spec.name;
    directory = absolute_directory(directory);
    refuse_outside(input.spec, directory);
    refuse_directory(directory, arguments.study, input, false);
    const auto opened = studydir::open_study(storage::posix_file_system(), directory, input.spec, {});
    if (opened.finished) return say_finished(arguments.study, directory, opened.tuner->state().outcome);
    const JobScript script = script_for(arguments, input, directory, invocation.program);
    const std::string plan =
        plan_text(script, input.spec, arguments.chain) + command_warning_lines(input.spec, detect_terminal().style);
    if (arguments.print) {
        std::cout << slurm::render(script) << std::flush;
        std::cerr << plan << "nothing was submitted (--print)\n";
        return 0;
    }
    std::cout << plan;
    submit_all(slurm::render(script), script.name, directory, arguments.chain);
    return 0;
}

} // namespace

int submit(const SubmitArguments& arguments, const Invocation& invocation) {
    return or_trouble([&] { return submit_study(arguments, invocation); });
}

int hosts() {
    // From the environment alone: compute nodes need not have Slurm's programs.
    const auto job = slurm::allocation(process::environment_variables());
    if (!job) throw base::UsageError("there is no Slurm job here (SLURM_JOB_ID): this is a part of the job scripts");
    if (!job->nodes || job->nodes->empty())
        throw base::UsageError("the nodes of the job are not told: SLURM_JOB_NODELIST='" +
                               process::environment_variable("SLURM_JOB_NODELIST") + "' is no list of hosts");
    const std::string workers = process::environment_variable("SLURM_NTASKS_PER_NODE");
    if (workers.empty() || workers.size() > 6 || workers.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(workers) == 0)
        throw base::UsageError("SLURM_NTASKS_PER_NODE is '" + workers +
                               "': give sbatch the workers of each node, --ntasks-per-node=4, and not --ntasks");
    std::string text = job->nodes->front() + "\n";
    for (const auto& node : *job->nodes)
        for (unsigned long task = 0; task < std::stoul(workers); ++task) text += node + "\n";
    std::cout << text << std::flush;
    return 0;
}

} // namespace ranktune::cli
