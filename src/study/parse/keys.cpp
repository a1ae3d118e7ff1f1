// SPDX-License-Identifier: Apache-2.0
#include "study/parse/keys.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <vector>

#include "study/parse/key_rows.hpp"

namespace ranktune::study {
namespace {

using rows::in;
using rows::of;
using rows::own;
using enum Later;

/// No bound that a user should think of.
constexpr std::int64_t many = 1'000'000;
/// Three heartbeats, which ranks send each second (HeadOptions::heartbeat_interval): with fewer, a rank that is
/// slightly late would count as dead.
constexpr base::Duration three_heartbeats = std::chrono::seconds(3);
/// Hundreds of studies must not keep Slurm's controller busy.
constexpr base::Duration polite_interval = std::chrono::seconds(10);

constexpr KeyRow all_keys[] = {
    own("study.name", aside, "string", "required",
        "Letters, digits, `_`, `-`, `.`; at most 100. Results go to `./<name>` unless `-o` says otherwise."),
    own("study.metric", fixed, "string, list of strings", "required",
        "Metric to optimise, by the name that the trainable reports. A list of up to 4: several objectives."),
    own("study.mode", fixed, "`\"min\"`, `\"max\"`, list", "required",
        "Whether smaller or larger is better; a list for a list of metrics. A value that is not finite is worst."),
    own("study.constraints", fixed, "list of comparisons", "none",
        "`[\"latency_ms <= 5\"]`: limits that a result must keep. `>=` and `<=` only."),
    own("study.num_trials", may, "integer >= 1", "required; `grid`: its size",
        "Configurations to try. For a grid, at most its size."),
    own("study.max_iterations", fixed, "integer >= 1", "required",
        "Most iterations of a trial: the ceiling. An iteration is the work between two reports, such as an epoch."),
    of<&StudySpec::seed>(
        "study.seed", fixed, {},
        "Configurations, initial parameters and shuffling depend only on the seed and the trial's number."),
    of<&StudySpec::max_concurrent>("study.max_concurrent", may, {.most = most_trials},
                                   "Trials that may train side by side; 0: as many as the ranks allow."),
    of<&StudySpec::time_budget>("study.time_budget", may, {},
                                "Running time of the study, without down time. Then no trial starts, and running ones "
                                "end at their next report."),
    of<&StudySpec::deterministic>("study.deterministic", fixed, {},
                                  "The same results for every number of ranks, delay and kill. Needs `max_concurrent`; "
                                  "refuses `time_budget` and `stop.time`."),

    own("trainable.builtin", fixed, "string", "none",
        "A trainable of ranktune: `\"mlp\"`, `\"curve\"`, `\"torch\"`. Further keys are its options."),
    own("trainable.name", fixed, "string", "none",
        "A trainable that your program has registered. Further keys are its options."),
    own("trainable.command", may, "string", "none",
        "A program in any language, started once per rank of a trial. Split into words as a shell does, run without a "
        "shell."),
    own("trainable.python", may, "`\"FILE:FUNCTION\"`", "none",
        "A Python function, `\"train.py:train\"`, called for each attempt with the configuration, or the trial if its "
        "parameter is called `trial`. Imported once."),
    of<&ProgramSpec::interpreter>("trainable.interpreter", may, {},
                                  "The Python of `python`: a program on PATH, or a path.", "\"python3\""),
    of<&ProgramSpec::fresh>("trainable.fresh", may, {},
                            "Each attempt of `python` starts an interpreter and imports the file anew."),
    of<&ProgramSpec::shell>(
        "trainable.shell", fixed, {},
        "Run the command by `/bin/sh -c`, with variables, pipes, `&&`. Values are quoted where necessary."),
    own("trainable.flags", may, "boolean, `\"both\"`", "false",
        "How `{args}` writes a boolean. false: `--amp=true`; true: `--amp` or nothing; `\"both\"`: `--amp` or "
        "`--no-amp`."),
    own("trainable.report", may, "regular expression, list of them", "none",
        "A line that the program prints and that matches is a report: group 1 is the metric, or each named group, "
        "`(?P<loss>...)`, one."),
    own("trainable.result", may, "`\"last-number\"`, `\"exit-code\"`, `\"success\"`", "none",
        "The only report, at the end: the last number printed; the exit code; or values of a JSON line, where other "
        "codes "
        "than 0 fail."),
    own("trainable.table", fixed, "path", "none",
        "A CSV file: row `row`, a hyper-parameter from 0 on, is the trial's configuration. Its columns are "
        "placeholders."),
    own("trainable.directory", may, "path", "of the study file",
        "Working directory of the program. `{trial}` and `{folder}` in it make one for each trial."),
    own("trainable.cwd", fixed, "`\"trial\"`", "none",
        "The program works in a folder of its trial, `trials/N` of the study directory. Files that the command names "
        "are found in `directory`."),
    of<&ProgramSpec::checkpoints>("trainable.checkpoints", aside, {},
                                  "The program can save its state, so trials may pause. With false, a trial starts "
                                  "only if all of it fits into the job."),
    own("trainable.env", fixed, "table", "empty",
        "Environment variables, `{ NAME = \"value\", VERSION = 3.10 }`, as written, over all others. `{trial}`, "
        "`{folder}` and, alone, a hyper-parameter's `{name}` are filled in."),
    own("trainable.keep_env", fixed, "list of strings", "[]",
        "Variables of MPI, its launcher or Slurm that the program gets, too. `\"SLURM_*\"` matches a prefix."),
    of<&ProgramSpec::launcher_variables>("trainable.launcher_variables", fixed, {},
                                         "Set torchrun's variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, ...). false, "
                                         "for trials of one rank: frameworks see a single process."),
    of<&ProgramSpec::kept>("trainable.kept", may, {},
                           "One process of a rank does one trial after the other: of `python`, or, by "
                           "`ranktune.tasks()`, of one rank with `result = \"success\"`."),
    of<&ProgramSpec::restart_after>("trainable.restart_after", may, {.most = many},
                                    "A kept process ends after so many trials, and a new one follows; 0: never."),
    own("trainable.restart_growth", may, "integer >= 1, `\"500MB\"`", "none",
        "So does a kept interpreter of `python` whose memory has grown by so much since its first trial."),
    of<&ProgramSpec::tf_config>("trainable.tf_config", fixed, {},
                                "Set `TF_CONFIG`, for TensorFlow's MultiWorkerMirroredStrategy."),
    of<&ProgramSpec::jax>("trainable.jax", fixed, {},
                          "Set `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID`."),

    own("data.NAME", fixed, "path, table, list", "none",
        "A file, folder (`{data.NAME}`) or mixture: `ranktune.dataset(\"NAME\")`. Table: `path`, `dtype`, `shape`, "
        "`tokens`, `group`, `decode`, `shuffle`, `shuffle_memory`, `drop_last`. List: `source`, `weight`, `from`."),
    of<&StagingSpec::stage>("data.stage", aside, {},
                            "Trials read copies on their node. All nodes together read each file once."),
    of<&StagingSpec::directory>("data.directory", aside, {},
                                "Absolute path of a node's own folder for copies. Without it: `$TMPDIR`, else memory.",
                                "`$TMPDIR`, memory"),
    of<&StagingSpec::must_fit>("data.must_fit", aside, {},
                               "A copy that does not fit ends the study. Otherwise the original is read."),

    own("resources.ranks", fixed, "integer >= 1, `\"{parameter}\"`", "1",
        "MPI ranks of a trial. `\"{workers}\"` takes the number from the hyper-parameter `workers`, an integer without "
        "a condition."),
    of<&ResourceSpec::cpus_per_rank>("resources.cpus_per_rank", may, {.least = 1, .most = 100'000},
                                     "Threads of a rank, for BLAS and the like."),
    own("resources.gpus", fixed, "integer >= 0, share from 0.02 to 0.5, `\"{parameter}\"`", "the granted GPUs",
        "N: N ranks with one GPU each. 0.25: four ranks share a GPU. 0: none. A parameter may be 0: then `ranks` ranks "
        "without GPUs."),
    of<&ResourceSpec::gpu_metrics>("resources.gpu_metrics", may, {},
                                   "Reports have three more metrics: `gpu/peak_MB`, `gpu/busy` and `gpu/joules`, of "
                                   "the trial's GPUs on the node of its rank 0."),
    of<&ResourceSpec::bind>("resources.bind", may, {},
                            "Whether ranks of a node divide its cores. `\"auto\"`: in Slurm jobs; `\"cores\"`: "
                            "everywhere; `\"none\"`: never."),
    of<&ResourceSpec::helpers>("resources.helpers", aside, {.most = many},
                               "So many workers get no trials, but `[before]`, `[after_trial]` and `[after]`; those "
                               "without a GPU first."),

    own("searcher.type", fixed, "string", "\"auto\"",
        "The source of configurations; its options are further keys. A study that goes on keeps the one that it began "
        "with."),
    own("searcher.start", fixed, "list of points", "none",
        "Points to try first: the first trials of the study, in this order."),
    of<&SearcherSpec::repeats>("searcher.repeats", fixed, {.least = 1, .most = 1000},
                               "So many trials have each configuration, with other random numbers. Searchers see their "
                               "mean. With `fifo` only."),
    own("searcher.warm_start", fixed, "list of paths", "none",
        "Results of earlier studies to learn from: study directories, CSV tables, journal files of Optuna."),

    own("scheduler.type", fixed, "string", "\"fifo\"",
        "Decides which trials go on; its options are further keys. Required when the table is there."),
    own("scheduler.explore", fixed, "table", "none",
        "For `pbt`: how a hyper-parameter changes: `\"perturb\"` (times 0.8 or 1.2), a list of factors, "
        "`\"resample\"`, or `\"keep\"`. `{}`: trials only take over states."),
    own("scheduler.schedule", fixed, "table", "none",
        "For `schedule`: a hyper-parameter and its list of `[iterations, value]`: after so many iterations it has this "
        "value."),

    own("stop.metric", may, "string, list of strings", "none",
        "`\"val_accuracy >= 0.99\"`, `\"train_loss <= 1e-3\"`: the trial stops when any of them holds. `>=` and `<=` "
        "only."),
    of<&StopSpec::trial_time>("stop.time", may, {},
                              "Training time of the trial, all attempts together, without pauses."),
    own("stop.study", may, "table", "none",
        "Ends the whole study, by the keys below: no trial starts, running ones end at their next report."),
    of<&StudyStop::target>("stop.study.target", may, {},
                           "The study has done enough when its best value is at least this good. For one metric."),
    of<&StudyStop::no_better_in>("stop.study.no_better_in", may, {.least = 1, .most = most_trials},
                                 "So many trials have ended without failing since the best value last improved."),
    own("stop.study.time", may, "duration", "none", "The same as `study.time_budget`."),
    of<&StudyStop::iterations>(
        "stop.study.iterations", may, {.least = 1},
        "Iterations of all trials together; those that are trained again after a crash count again."),
    of<&StudyStop::trials_ok>("stop.study.trials_ok", may, {.least = 1, .most = most_trials},
                              "So many trials have ended without failing, finished or stopped early."),
    own("stop.plateau", may, "table", "none", "Stops a trial that no longer improves, by the keys below."),
    own("stop.plateau.metric", may, "string", "`study.metric`", "The metric to watch."),
    of<&PlateauStop::std>("stop.plateau.std", may, {.low = 0.0, .above = true},
                          "The trial stops when the standard deviation of its last results is below this."),
    of<&PlateauStop::results>("stop.plateau.results", may, {.least = 2, .most = 10'000}, "Number of these results."),
    of<&PlateauStop::grace>("stop.plateau.grace", may, {.most = most_trials}, "No check before this iteration."),
    of<&PlateauStop::threshold>("stop.plateau.threshold", may, {},
                                "Only stop if the last value is at least this good."),

    of<&FailureSpec::tolerate>("failure.tolerate", may, {.low = 0.0, .high = 1.0},
                               "Share of failed trials up to which the study ends with exit code 0."),
    of<&FailureSpec::max_failures>(
        "failure.max_failures", may, {.most = many},
        "Failed attempts of a trial that are retried from its last checkpoint. 0: a failed attempt fails the trial."),
    of<&FailureSpec::retry_on>(
        "failure.retry_on", may, {.least = 1, .most = 255},
        "Exit codes of programs that `max_failures` is for, 128 + N for signal N; with others the trial fails at once. "
        "Timeouts are retried.",
        "all"),
    of<&FailureSpec::max_losses>("failure.max_losses", may, {.least = 1, .most = many},
                                 "A trial that has lost its ranks this many times has failed."),
    of<&FailureSpec::in_a_row>(
        "failure.in_a_row", may, {.least = 2, .most = many},
        "So many different trials in a row that fail before a report end the study: exit code 75, or 4 if they are the "
        "first.",
        "10 + log2 of `num_trials` + groups"),
    of<&FailureSpec::report_timeout>(
        "failure.report_timeout", may, {},
        "A trial that makes no progress for this long has failed: no report, or no gradient step on a rank."),
    of<&FailureSpec::iteration_timeout>("failure.iteration_timeout", may, {},
                                        "A program whose iteration takes longer is ended, TERM then KILL: the attempt "
                                        "has failed. The first iteration includes its start."),
    of<&FailureSpec::collective_timeout>(
        "failure.collective_timeout", may, {},
        "A rank waits for others no longer: the attempt is lost and tried again. Not of programs."),
    of<&FailureSpec::forming_timeout>(
        "failure.forming_timeout", may, {},
        "The GPUs of a trial connect within this time, or the attempt is lost and tried again. Not of programs."),

    own("checkpoint.interval", aside, "integer >= 1, duration, `\"auto\"`, `\"none\"`", "\"auto\"",
        "Iterations, or training time, between checkpoints. `\"auto\"`: every sqrt(2 C M), C the measured cost of one. "
        "`\"none\"`: only at pauses and ends."),
    own("checkpoint.mean_time_between_failures", aside, "duration", "\"24h\"",
        "M of `\"auto\"` before the study has seen failures; then M = (this + running time) / (1 + failures)."),
    of<&CheckpointSpec::at_rungs>(
        "checkpoint.at_rungs", aside, {},
        "Also save at each rung of ASHA or HyperBand at which a trial goes on without a pause."),
    own("checkpoint.supported", aside, "boolean", "as the trainable says",
        "Whether the trainable can save its state. ranktune writes it into `resolved.toml`; you need not."),
    of<&CheckpointSpec::keep>(
        "checkpoint.keep", aside, {.least = 1, .most = 1000},
        "Best checkpoints that a running trial keeps beside its newest two, and the best trial after its end."),
    of<&CheckpointSpec::every_trial>(
        "checkpoint.every_trial", aside, {},
        "Each trial saves at its end, and keeps its best checkpoints, not the best trial alone: for `ranktune predict "
        "--top`."),
    own("checkpoint.max_bytes", aside, "integer >= 1, `\"500GB\"`, `\"2TiB\"`", "no limit",
        "Limit for all checkpoints. Paused trials lose theirs; running trials and the result keep theirs, even "
        "above it."),
    of<&CheckpointSpec::direct>(
        "checkpoint.direct", aside, {},
        "Write large tensors with direct I/O where the file system supports it; it does not evict the page cache."),

    of<&OutputSpec::commit_interval>(
        "journal.commit_interval", aside, {},
        "The journal is synced at most this long after a write. The loss of the head's node loses no more."),

    of<&OutputSpec::abort_grace>(
        "run.abort_grace", aside, {},
        "Time for a rank or program to end when its trial is aborted; ten times as long to save."),
    of<&OutputSpec::heartbeat_timeout>(
        "run.heartbeat_timeout", aside,
        {.shortest = three_heartbeats,
         .why = "ranks give a sign of life each second, and one that is late by a moment is not dead"},
        "A rank without a heartbeat for this long is lost; one that runs, or waits for a core, after twice that. Sent "
        "each second."),
    of<&OutputSpec::spares>("run.spares", aside, {.most = many},
                            "So many workers get no trial before others have died, and then take their places."),

    of<&SlurmSpec::requeue>(
        "slurm.requeue", aside, {},
        "After a clean stop near the time limit or by a signal, requeue the job; its next start goes on."),
    of<&SlurmSpec::max_requeues>("slurm.max_requeues", aside, {.least = 1, .most = many},
                                 "Limit for requeues of the job. Two starts in a row without progress end them, too."),
    of<&SlurmSpec::lead_time>(
        "slurm.lead_time", aside, {},
        "Time reserved before the end of the job for results, beside that of checkpoints and the slowest iteration."),
    of<&SlurmSpec::poll_interval>(
        "slurm.poll_interval", aside,
        {.shortest = polite_interval, .why = "many studies that ask more often are a load for Slurm's controller"},
        "How often the head asks Slurm when the job ends; with `ranktune submit`, how often a job of several nodes is "
        "watched, too."),

    of<&PredictSpec::command>(
        "predict.command", aside, {},
        "A program for `ranktune predict`, started once for each model and rank, that gets samples "
        "by `ranktune.predict()`. Placeholders as in `trainable.command`, and `{checkpoint}`."),
    of<&PredictSpec::function>(
        "predict.python", aside, {},
        "Or a class or function of Python, `\"predict.py:predict\"`, called for each batch with a model that is loaded "
        "once."),
    of<&PredictSpec::interpreter>("predict.interpreter", aside, {}, "The Python of `python`.",
                                  "as `trainable.interpreter`"),
    of<&PredictSpec::directory>("predict.directory", aside, {}, "Working directory of the program.",
                                "as `trainable.directory`"),
    in<&StudySpec::before, &SideSpec::command>(
        "before.command", aside,
        "Prepares the study: a command for `sh -c`, on one rank. No trial begins before it has ended with exit code "
        "0."),
    in<&StudySpec::before, &SideSpec::directory>("before.directory", aside, "Its working directory.",
                                                 "of the study file"),
    in<&StudySpec::before, &SideSpec::timeout>("before.timeout", aside, "An attempt that takes longer has failed."),

    in<&StudySpec::after_trial, &SideSpec::command>(
        "after_trial.command", aside,
        "A command for `sh -c`, on one rank, for each trial that has finished or was stopped. With `{checkpoint}`, "
        "each trial saves its last state."),
    in<&StudySpec::after_trial, &SideSpec::directory>("after_trial.directory", aside, "Its working directory.",
                                                      "of the study file"),
    in<&StudySpec::after_trial, &SideSpec::timeout>("after_trial.timeout", aside,
                                                    "An attempt that takes longer has failed."),

    in<&StudySpec::after, &SideSpec::command>("after.command", aside,
                                              "A command for `sh -c`, on one rank, when the study is complete. If it "
                                              "fails, the next start runs it again."),
    in<&StudySpec::after, &SideSpec::directory>("after.directory", aside, "Its working directory.",
                                                "of the study file"),
    in<&StudySpec::after, &SideSpec::timeout>("after.timeout", aside, "An attempt that takes longer has failed."),

    of<&HookSpec::on_trial_end>("hooks.on_trial_end", aside, {},
                                "A command for `sh -c`, run when a trial has finished, was stopped, or failed."),
    of<&HookSpec::on_study_end>("hooks.on_study_end", aside, {},
                                "A command for `sh -c`, run at the end of each start, also of a resumable one."),
    of<&HookSpec::timeout>(
        "hooks.timeout", aside, {},
        "A command that takes longer is killed. The end of a study waits this long for those of trials."),
};

constexpr DomainInfo all_domains[] = {
    {"uniform(lower, upper)", "Floats in [lower, upper)."},
    {"quniform(lower, upper, q)", "Multiples of `q` in [lower, upper]."},
    {"loguniform(lower, upper)", "Floats in [lower, upper), uniform in the logarithm; `lower` > 0."},
    {"qloguniform(lower, upper, q)", "Multiples of `q` in [lower, upper], uniform in the logarithm."},
    {"randn(mean=0, sd=1)", "Normally distributed floats, without bounds."},
    {"qrandn(mean, sd, q)", "The same, rounded to the nearest multiple of `q`."},
    {"randint(lower, upper)", "Integers lower ... upper - 1: the upper bound is exclusive."},
    {"qrandint(lower, upper, q=1)", "Multiples of `q` in [lower, upper]: the upper bound is inclusive."},
    {"lograndint(lower, upper)", "Integers lower ... upper - 1, uniform in the logarithm; `lower` >= 1."},
    {"qlograndint(lower, upper, q)", "Multiples of `q` in [lower, upper], uniform in the logarithm; `lower` >= 1."},
    {"stepuniform(lower, upper, step)", "Floats lower, lower + step, ... up to `upper`, each as likely."},
    {"steprandint(lower, upper, step)", "Integers lower, lower + step, ... up to `upper`, each as likely."},
    {"choice([a, b, ...])",
     "One of the list, each as likely. `ordered` says whether neighbours are similar; default: in lists of numbers "
     "that rise or fall."},
    {"grid([a, b, ...])",
     "Every value in turn: trial i takes point i of the cross product of all grids, the last one fastest."},
};

constexpr TableInfo all_tables[] = {
    {"study", "The objective, and the limits of the whole study.",
     "[study]\nname = \"tuning\"\nmetric = \"score\"\nmode = \"max\"\nnum_trials = 60\nmax_iterations = 27\nseed = 1\n"
     "time_budget = \"8h\"\n"},
    {"trainable", "What is trained: one of `builtin`, `name` and `command`.",
     "[trainable]\ncommand = \"python3 train.py --epochs={iterations} {args}\"\nenv = { OMP_NUM_THREADS = \"4\" }\n"
     "checkpoints = true\n"},
    {"data", "Files for training, by names of your own. With options if the format does not say what a sample is.",
     "[data]\ntrain = \"train.h5\"\ntext = { path = \"corpus.bin\", dtype = \"uint16\", tokens = 2048 }\n"},
    {"resources", "What one trial gets.", "[resources]\nranks = 2\ncpus_per_rank = 4\n"},
    {"space",
     "The hyper-parameters: a domain, a list of choices, or a constant each. `require` and `forbid`: what every "
     "configuration keeps.",
     "[space]\nlr = \"loguniform(1e-4, 1.0)\"\nmomentum = \"uniform(0.5, 0.99)\"\nbatch_size = [32, 64, 128]\n"
     "nesterov = { domain = [true, false], condition = \"momentum > 0.8\" }\nrequire = \"batch_size * lr <= 64\"\n"},
    {"searcher", "The source of configurations.", "[searcher]\ntype = \"tpe\"\n\n[[searcher.start]]\nlr = 0.01\n"},
    {"scheduler", "Which trials go on, and which pause or stop.",
     "[scheduler]\ntype = \"pbt\"\ninterval = 5\n\n[scheduler.explore]\nlr = \"perturb\"\nmomentum = \"resample\"\n"},
    {"stop", "Limits of one trial, beside the ceiling, checked at every report before the scheduler; and of the study.",
     "[stop]\nmetric = \"score >= 0.99\"\ntime = \"2h\"\nplateau = { std = 0.001, results = 5 }\n"
     "study = { no_better_in = 50 }\n"},
    {"failure", "What happens when trials fail.", "[failure]\nmax_failures = 1\nreport_timeout = \"30m\"\n"},
    {"checkpoint",
     "Checkpoints while a trial runs, against crashes. (A trial also saves when it pauses, the best trial at its end.)",
     "[checkpoint]\ninterval = \"10m\"\nkeep = 2\nmax_bytes = \"500GB\"\n"},
    {"journal", "How often the journal is synced.", "[journal]\ncommit_interval = \"5s\"\n"},
    {"run", "Time-outs of ranks and programs.", "[run]\nabort_grace = \"1m\"\nheartbeat_timeout = \"2m\"\n"},
    {"slurm", "The end of a Slurm job; without effect elsewhere.", "[slurm]\nrequeue = true\nlead_time = \"2m\"\n"},
    {"predict", "How trained models predict, if the trainable itself does not.",
     "[predict]\ncommand = \"python3 predict.py --weights={checkpoint}\"\n"},
    {"before", "A program before the first trial; its end is recorded, and it does not run again.",
     "[before]\ncommand = \"python3 prepare.py\"\n"},
    {"after_trial", "A program after each trial, beside the others: its metrics are shown, and decide nothing.",
     "[after_trial]\ncommand = \"python3 evaluate.py {checkpoint}\"\ntimeout = \"30m\"\n"},
    {"after", "A program after the last trial.", "[after]\ncommand = \"python3 plots.py\"\n"},
    {"hooks", "Commands that the head runs beside the study: a mail, a message to a chat.",
     "[hooks]\non_study_end = 'mail -s \"$RANKTUNE_STUDY: exit $RANKTUNE_EXIT\" ada@example.org < /dev/null'\n"},
    {"inputs",
     "Written into `resolved.toml`: size and XXH64 of each file that `[trainable]` names. Ignored in your own file.",
     ""},
};

} // namespace

std::span<const DomainInfo> domain_infos() { return all_domains; }
std::span<const TableInfo> table_infos() { return all_tables; }
std::span<const KeyRow> key_rows() { return all_keys; }

const KeyRow* find_row(std::string_view key) {
    const auto found = std::ranges::find(all_keys, key, &KeyRow::key);
    return found == std::end(all_keys) ? nullptr : &*found;
}

std::span<const KeyInfo> key_infos() {
    struct Infos {
        std::deque<std::string> texts; ///< that `all` refers to
        std::vector<KeyInfo> all;
    };
    static const Infos infos = [] {
        StudySpec standard; // with all that may be absent
        standard.trainable.program.emplace();
        standard.stop.plateau.emplace();
        Infos made;
        for (const KeyRow& row : all_keys) {
            KeyInfo info{row.key, row.takes, row.standard, row.meaning};
            if (row.kind != nullptr) info.takes = made.texts.emplace_back(row.kind(row.limits));
            if (info.standard.empty()) info.standard = made.texts.emplace_back(row.write(standard));
            if (info.standard.empty()) info.standard = "none";
            made.all.push_back(info);
        }
        return made;
    }();
    return infos.all;
}

void read_members(TableReader& table, StudySpec& spec, bool trusted) {
    for (KeyRow row : all_keys) {
        if (row.read == nullptr || row.key != table.dotted(row.name())) continue;
        if (trusted) row.limits.shortest = {};
        row.read(table, row, spec);
    }
}

std::string rows::bounded(std::string_view kind, const Limits& limits, bool whole) {
    constexpr std::int64_t worth_saying = 10'000;
    const std::string text(kind);
    if (whole) {
        const std::string least = std::to_string(limits.least);
        return limits.most > worth_saying ? text + " >= " + least
                                          : text + " " + least + " to " + std::to_string(limits.most);
    }
    const Limits any;
    if (limits.low == any.low) return text;
    const std::string low = space::number_text(limits.low);
    if (limits.high == any.high) return text + (limits.above ? " > " : " >= ") + low;
    return text + " " + low + " to " + space::number_text(limits.high);
}

} // namespace ranktune::study
