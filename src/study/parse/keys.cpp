// SPDX-License-Identifier: Apache-2.0
#include "study/parse/keys.hpp"

namespace ranktune::study {
namespace {

constexpr KeyInfo all_keys[] = {
    {"study.name", "string", "required",
     "Letters, digits, `_`, `-`, `.`; at most 100. Results go to `./<name>` unless `-o` says otherwise."},
    {"study.metric", "string, list of strings", "required",
     "Metric to optimise, by the name that the trainable reports. A list of up to 4: several objectives."},
    {"study.mode", "`\"min\"`, `\"max\"`, list", "required",
     "Whether smaller or larger is better; a list for a list of metrics. A value that is not finite is worst."},
    {"study.constraints", "list of comparisons", "none",
     "`[\"latency_ms <= 5\"]`: limits that a result must keep. `>=` and `<=` only."},
    {"study.num_trials", "integer >= 1", "required; `grid`: its size",
     "Configurations to try. For a grid, at most its size."},
    {"study.max_iterations", "integer >= 1", "required",
     "Most iterations of a trial: the ceiling. An iteration is the work between two reports, such as an epoch."},
    {"study.seed", "integer >= 0", "0",
     "Configurations, initial parameters and shuffling depend only on the seed and the trial's number."},
    {"study.max_concurrent", "integer >= 0", "0", "Trials that may train side by side; 0: as many as the ranks allow."},
    {"study.time_budget", "duration", "none",
     "Running time of the study, without down time. Then no trial starts, and running ones end at their next report."},
    {"study.deterministic", "boolean", "false",
     "The same results for every number of ranks, delay and kill. Needs `max_concurrent`; refuses `time_budget` and "
     "`stop.time`."},

    {"trainable.builtin", "string", "none",
     "A trainable of ranktune: `\"mlp\"`, `\"curve\"`, `\"torch\"`. Further keys are its options."},
    {"trainable.name", "string", "none", "A trainable that your program has registered. Further keys are its options."},
    {"trainable.command", "string", "none",
     "A program in any language, started once per rank of a trial. Split into words as a shell does, run without a "
     "shell."},
    {"trainable.shell", "boolean", "false",
     "Run the command by `/bin/sh -c`, with variables, pipes, `&&`. Values are quoted where necessary."},
    {"trainable.flags", "boolean, `\"both\"`", "false",
     "How `{args}` writes a boolean. false: `--amp=true`; true: `--amp` or nothing; `\"both\"`: `--amp` or "
     "`--no-amp`."},
    {"trainable.directory", "path", "of the study file",
     "Working directory of the program. `{trial}` and `{folder}` in it make one for each trial."},
    {"trainable.cwd", "`\"trial\"`", "none",
     "The program works in a folder of its trial, `trials/N` of the study directory. Files that the command names are "
     "found in `directory`."},
    {"trainable.checkpoints", "boolean", "true",
     "The program can save its state, so trials may pause. With false, a trial starts only if all of it fits into the "
     "job."},
    {"trainable.env", "table", "empty",
     "Environment variables, `{ NAME = \"value\", VERSION = 3.10 }`, as written, over all others. `{trial}` and "
     "`{folder}` are filled in; `{{trial}}` means `{trial}`."},
    {"trainable.keep_env", "list of strings", "[]",
     "Variables of MPI, its launcher or Slurm that the program gets, too. `\"SLURM_*\"` matches a prefix."},
    {"trainable.launcher_variables", "boolean", "true",
     "Set torchrun's variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR`, ...). false, for trials of one rank: frameworks "
     "see a single process."},
    {"trainable.tf_config", "boolean", "false", "Set `TF_CONFIG`, for TensorFlow's MultiWorkerMirroredStrategy."},
    {"trainable.jax", "boolean", "false", "Set `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID`."},

    {"resources.ranks", "integer >= 1, `\"{parameter}\"`", "1",
     "MPI ranks of a trial. `\"{workers}\"` takes the number from the hyper-parameter `workers`, an integer without a "
     "condition."},
    {"resources.cpus_per_rank", "integer >= 1", "1", "Threads of a rank, for BLAS and the like."},
    {"resources.gpus", "integer >= 0, share from 0.02 to 0.5, `\"{parameter}\"`", "the granted GPUs",
     "N: N ranks with one GPU each. 0.25: four ranks share a GPU. 0: none. A parameter may be 0: then `ranks` ranks "
     "without GPUs."},
    {"resources.gpu_metrics", "boolean", "false",
     "Reports have three more metrics: `gpu/peak_MB`, `gpu/busy` and `gpu/joules`, of the trial's GPUs on the node of "
     "its rank 0."},
    {"resources.bind", "`\"auto\"`, `\"cores\"`, `\"none\"`", "\"auto\"",
     "Whether ranks of a node divide its cores. `\"auto\"`: in Slurm jobs; `\"cores\"`: everywhere; `\"none\"`: "
     "never."},

    {"searcher.type", "string", "\"auto\"",
     "The source of configurations; its options are further keys. A study that goes on keeps the one that it began "
     "with."},
    {"searcher.start", "list of points", "none", "Points to try first: the first trials of the study, in this order."},

    {"searcher.repeats", "integer 1 to 1000", "1",
     "So many trials have each configuration, with other random numbers. Searchers see their mean. With `fifo` only."},
    {"searcher.warm_start", "list of paths", "none",
     "Results of earlier studies to learn from: study directories, CSV tables, journal files of Optuna."},

    {"scheduler.type", "string", "\"fifo\"",
     "Decides which trials go on; its options are further keys. Required when the table is there."},
    {"scheduler.explore", "table", "none",
     "For `pbt`: how a hyper-parameter changes: `\"perturb\"` (times 0.8 or 1.2), a list of factors, "
     "`\"resample\"`, or `\"keep\"`. `{}`: trials only take over states."},
    {"scheduler.schedule", "table", "none",
     "For `schedule`: a hyper-parameter and its list of `[iterations, value]`: after so many iterations it has this "
     "value."},

    {"stop.metric", "string, list of strings", "none",
     "`\"val_accuracy >= 0.99\"`, `\"train_loss <= 1e-3\"`: the trial stops when any of them holds. `>=` and `<=` "
     "only."},
    {"stop.time", "duration", "none", "Training time of the trial, all attempts together, without pauses."},
    {"stop.plateau", "table", "none", "Stops a trial that no longer improves, by the keys below."},
    {"stop.plateau.metric", "string", "`study.metric`", "The metric to watch."},
    {"stop.plateau.std", "number > 0", "0.01",
     "The trial stops when the standard deviation of its last results is below this."},
    {"stop.plateau.results", "integer 2 to 10000", "4", "Number of these results."},
    {"stop.plateau.grace", "integer >= 0", "4", "No check before this iteration."},
    {"stop.plateau.threshold", "number", "none", "Only stop if the last value is at least this good."},

    {"failure.tolerate", "number 0 to 1", "0.05",
     "Share of failed trials up to which the study ends with exit code 0."},
    {"failure.max_failures", "integer >= 0", "0",
     "Failed attempts of a trial that are retried from its last checkpoint. 0: a failed attempt fails the trial."},
    {"failure.max_losses", "integer >= 1", "3", "A trial that has lost its ranks this many times has failed."},
    {"failure.in_a_row", "integer >= 2", "10 + log2 of `num_trials` + groups",
     "When so many different trials in a row fail before their first report, the study ends with exit code 75."},
    {"failure.report_timeout", "duration", "none",
     "A trial that makes no progress for this long has failed: no report, or no gradient step on a rank."},
    {"failure.collective_timeout", "duration", "\"30m\"",
     "A rank waits for others no longer: the attempt is lost and tried again. Not of programs."},
    {"failure.forming_timeout", "duration", "\"2m\"",
     "The GPUs of a trial connect within this time, or the attempt is lost and tried again. Not of programs."},

    {"checkpoint.interval", "integer >= 1, duration, `\"auto\"`, `\"none\"`", "\"auto\"",
     "Iterations, or training time, between checkpoints. `\"auto\"`: every sqrt(2 C M), C the measured cost of one. "
     "`\"none\"`: only at pauses and ends."},
    {"checkpoint.mean_time_between_failures", "duration", "\"24h\"",
     "M of `\"auto\"` before the study has seen failures; then M = (this + running time) / (1 + failures)."},
    {"checkpoint.at_rungs", "boolean", "false",
     "Also save at each rung of ASHA or HyperBand at which a trial goes on without a pause."},
    {"checkpoint.supported", "boolean", "as the trainable says",
     "Whether the trainable can save its state. ranktune writes it into `resolved.toml`; you need not."},
    {"checkpoint.keep", "integer 1 to 1000", "1",
     "Best checkpoints that a running trial keeps beside its newest two, and the best trial after its end."},
    {"checkpoint.max_bytes", "integer >= 1, `\"500GB\"`, `\"2TiB\"`", "no limit",
     "Limit for all checkpoints. Paused trials lose theirs first; running trials and the result keep theirs, even "
     "above it."},
    {"checkpoint.direct", "boolean", "true",
     "Write large tensors with direct I/O where the file system supports it; it does not evict the page cache."},

    {"journal.commit_interval", "duration", "\"1s\"",
     "The journal is synced at most this long after a write. The loss of the head's node loses no more."},

    {"run.abort_grace", "duration", "\"30s\"",
     "Time for a rank or program to end when its trial is aborted; ten times as long to save."},
    {"run.heartbeat_timeout", "duration, \"3s\" at least", "\"1m\"",
     "A rank without a heartbeat for this long is lost; one that runs, or waits for a core, after twice that. Sent "
     "each "
     "second."},
    {"run.spares", "integer, 0 to 1000000", "0",
     "So many workers get no trial before others have died, and then take their places."},

    {"slurm.requeue", "boolean", "false",
     "After a clean stop near the time limit or by a signal, requeue the job; its next start goes on."},
    {"slurm.max_requeues", "integer >= 1", "20",
     "Limit for requeues of the job. Two starts in a row without progress end them, too."},
    {"slurm.lead_time", "duration", "\"30s\"",
     "Time reserved before the end of the job for results, beside that of checkpoints and the slowest iteration."},
    {"slurm.poll_interval", "duration, \"10s\" at least", "\"1m\"",
     "How often the head asks Slurm when the job ends; with `ranktune submit`, how often a job of several nodes is "
     "watched, too."},

    {"hooks.on_trial_end", "string", "none",
     "A command for `sh -c`, run when a trial has finished, was stopped, or failed."},
    {"hooks.on_study_end", "string", "none",
     "A command for `sh -c`, run at the end of each start, also of a resumable one."},
    {"hooks.timeout", "duration", "\"1m\"",
     "A command that takes longer is killed. The end of a study waits this long for those of trials."},
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
    {"resources", "What one trial gets.", "[resources]\nranks = 2\ncpus_per_rank = 4\n"},
    {"space", "The hyper-parameters: a domain, a list of choices, or a constant each.",
     "[space]\nlr = \"loguniform(1e-4, 1.0)\"\nmomentum = \"uniform(0.5, 0.99)\"\nbatch_size = [32, 64, 128]\n"
     "nesterov = { domain = [true, false], condition = \"momentum > 0.8\" }\n"},
    {"searcher", "The source of configurations.", "[searcher]\ntype = \"tpe\"\n\n[[searcher.start]]\nlr = 0.01\n"},
    {"scheduler", "Which trials go on, and which pause or stop.",
     "[scheduler]\ntype = \"pbt\"\ninterval = 5\n\n[scheduler.explore]\nlr = \"perturb\"\nmomentum = \"resample\"\n"},
    {"stop", "Limits of one trial, beside the ceiling; checked at every report, before the scheduler.",
     "[stop]\nmetric = \"score >= 0.99\"\ntime = \"2h\"\nplateau = { std = 0.001, results = 5 }\n"},
    {"failure", "What happens when trials fail.", "[failure]\nmax_failures = 1\nreport_timeout = \"30m\"\n"},
    {"checkpoint",
     "Checkpoints while a trial runs, against crashes. (A trial also saves when it pauses, the best trial at its end.)",
     "[checkpoint]\ninterval = \"10m\"\nkeep = 2\nmax_bytes = \"500GB\"\n"},
    {"journal", "How often the journal is synced.", "[journal]\ncommit_interval = \"5s\"\n"},
    {"run", "Time-outs of ranks and programs.", "[run]\nabort_grace = \"1m\"\nheartbeat_timeout = \"2m\"\n"},
    {"slurm", "The end of a Slurm job; without effect elsewhere.", "[slurm]\nrequeue = true\nlead_time = \"2m\"\n"},
    {"hooks", "Commands that the head runs beside the study: a mail, a message to a chat.",
     "[hooks]\non_study_end = 'mail -s \"$RANKTUNE_STUDY: exit $RANKTUNE_EXIT\" ada@example.org < /dev/null'\n"},
    {"inputs",
     "Written into `resolved.toml`: size and XXH64 of each file that `[trainable]` names. Ignored in your own file.",
     ""},
};

} // namespace

std::span<const DomainInfo> domain_infos() { return all_domains; }
std::span<const TableInfo> table_infos() { return all_tables; }
std::span<const KeyInfo> key_infos() { return all_keys; }

} // namespace ranktune::study
