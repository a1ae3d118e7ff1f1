// SPDX-License-Identifier: Apache-2.0
#include "slurm/job_script.hpp"

#include "slurm/gpus.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <wordexp.h>

namespace ranktune::slurm {
namespace {

bool is_template(const JobScript& script) { return script.arguments.empty(); }

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string directive(const std::string& option) { return "#SBATCH " + option + "\n"; }

/// Writes the origin above the line; behind it, Slurm would read it as an option.
std::string marked(const ScriptLine& line, const std::string& text) {
    return (line.from.empty() ? "" : "# from " + line.from + ":\n") + text;
}

std::string title(const JobScript& script) {
    const std::string what = script.gpus.text.empty()         ? "A study on CPUs"
                             : script.workers_without_gpu > 0 ? "A study on GPUs and CPUs"
                                                              : "A study on GPUs, one rank per GPU";
    if (!is_template(script))
        return "# " + what + ", written by `ranktune submit`. The same command again, or `sbatch " + script.file +
               "`, continues the study.\n";
    return "# " + what + ":   sbatch " + script.file +
           R"( STUDY.toml [options of `ranktune run`]
# Submit it from the folder in which to create the study directory (on a shared file system if nodes > 1).
# Options on sbatch's command line override the lines below: sbatch --nodes=2 --time=8:00:00 )" +
           script.file + R"( ...
# docs/guides/slurm.md (installed: share/doc/ranktune/docs/guides/slurm.md) explains it line by line.
)";
}

constexpr std::string_view log_comment = R"(
# The name of the job, and its log beside the study: name and job number.
)";
constexpr std::string_view append_comment =
    R"(# Append to the log when Slurm requeues the job; the default would truncate it.
)";
constexpr std::string_view cpu_comment = R"(
# Nodes, workers per node, cores per worker. The head is one more task, on the first node: it searches, schedules and
# records, and trains nothing. With `resources.ranks = 2` in the study, 4 workers are 2 groups that train 2 trials at a
# time. For whole nodes: --exclusive, and as many workers as fit into their cores.
)";
constexpr std::string_view gpu_comment = R"(
# Nodes, GPUs per node, and one worker per GPU: the last two numbers must be equal. The head is one more task, on the
# first node, and gets no GPU: it searches, schedules and records, and trains nothing. With `resources.gpus = 2` in the
# study, 4 GPUs train 2 trials at a time; with `resources.gpus = 0.25`, write four times as many workers as GPUs.
# On sites without --gpus-per-node: --gres=gpu:4.
)";
constexpr std::string_view shared_gpu_comment = R"(
# Nodes, GPUs per node, and @SHARE@ workers per GPU, which share it. The head is one more task, on the first node, and
# gets no GPU: it searches, schedules and records, and trains nothing.
)";
constexpr std::string_view some_gpus_comment = R"(
# Nodes, GPUs per node, and workers: @SHARE@ have a GPU, and the others train trials without one. The head is one more task,
# on the first node, and gets no GPU: it searches, schedules and records, and trains nothing.
)";

void replace_all(std::string& text, std::string_view what, const std::string& with) {
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
        text.replace(at, what.size(), with);
}

std::string resources(const JobScript& script) {
    std::string text;
    if (script.gpus.text.empty()) {
        text += cpu_comment;
        text += directive("--nodes=" + number(script.nodes));
        text += directive("--ntasks-per-node=" + number(script.workers_per_node));
        text +=
            "# Set `resources.cpus_per_rank` in the study to the same number, so that the matrix library uses all of "
            "them.\n";
    } else {
        const bool some = script.workers_without_gpu > 0;
        std::string comment(some ? some_gpus_comment : script.ranks_per_gpu > 1 ? shared_gpu_comment : gpu_comment);
        replace_all(comment, "@SHARE@",
                    number(some ? script.workers_per_node - script.workers_without_gpu : script.ranks_per_gpu));
        text += comment;
        text += directive("--nodes=" + number(script.nodes));
        text += marked(script.gpus, directive(script.gpus.text));
        text += directive("--ntasks-per-node=" + number(script.workers_per_node));
        text +=
            "# Cores per worker, for data loading: the node's cores divided by its GPUs (sinfo -N -o '%N %c %G' lists "
            "both).\n# `resources.cpus_per_rank` in the study, the threads of its mathematics, is this number at "
            "most.\n";
    }
    return text + directive("--cpus-per-task=" + number(script.cpus_per_worker));
}

std::string endings(const JobScript& script) {
    return R"(
# The head knows the time limit and stops the study early enough to save checkpoints.
)" + directive("--time=" + time_limit_text(script.time)) +
           "# In case it cannot ask Slurm: " + number(static_cast<std::uint64_t>(script.lead.count())) +
           R"( s before the end (Slurm may be up to 60 s early) this script gets USR1
# and passes it on: no new trials are started, and running ones save a checkpoint at their next iteration.
)" +
           marked({"", script.lead_from},
                  directive("--signal=B:USR1@" + number(static_cast<std::uint64_t>(script.lead.count())))) +
           R"(# The job is requeued when it is preempted or its first node dies, and then continues the study. So does submitting it
# again after a stop. With `slurm.requeue = true` in the study, it is also requeued at its time limit.
)" + directive("--requeue") +
           R"(# If another node dies, the job continues: the study is restarted on the remaining nodes.
)" + directive("--no-kill");
}

std::string site(const JobScript& script) {
    std::string text =
        "\n# Your site's lines: account, partition, and modules with the MPI that ranktune was built "
        "with.\n";
    if (is_template(script)) text += "##SBATCH --account=...\n##SBATCH --partition=...\n";
    for (const auto& option : script.options) text += marked(option, directive(option.text));
    text += R"(
# Remember a signal that comes before the study runs; untrapped, it would kill this script.
asked=
launched=
for name in USR1 USR2 TERM HUP; do trap "asked=$name" $name; done
)";
    if (is_template(script)) return text + "# module load openmpi ranktune\n";
    for (const auto& command : script.commands) text += marked(command, command.text + "\n");
    return text;
}

std::string launcher(const JobScript& script) {
    const auto chosen = [](const ScriptLine& line, const char* name, const char* variable) {
        return marked(line, std::string(name) + "=${" + variable + ":-" + line.text + "}\n");
    };
    return R"(
# srun or mpirun. For srun, the MPI library's interface: pmix for Open MPI, pmi2 for MPICH (srun --mpi=list).
)" + chosen(script.launcher, "launcher", "LAUNCHER") +
           chosen(script.mpi, "mpi_type", "MPI_TYPE");
}

std::string arguments(const JobScript& script) {
    if (is_template(script))
        return R"(
if [ $# -eq 0 ]; then
    echo "usage: sbatch )" +
               script.file + R"( STUDY.toml [options of \`ranktune run\`]" >&2
    exit 2
fi
)";
    return "\n# Arguments of `ranktune run`, and the study directory.\nset -- " + script.arguments +
           "\ndirectory=" + script.directory + "\n";
}

constexpr std::string_view launch = R"(
if [ -n "$SLURM_GPUS_PER_TASK" ]; then # would leave no GPU for the last task, as the head is a task too
    gpus=$((SLURM_NTASKS_PER_NODE * ${SLURM_GPUS_PER_TASK##*:}))
    echo "@FILE@: ask for GPUs by node, not by task (--gpus-per-task): #SBATCH --gpus-per-node=$gpus" >&2
    exit 2
fi

# The host of each task, one line per task: the head first, on the first node, then every node's workers.
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
@PROGRAM@ hosts >"$hosts" || exit
tasks=$(wc -l <"$hosts")
@CORES@
# --no-kill keeps the job even when the first node dies, and this script with it: a watcher on the last node then
# requeues the job.
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    first=$(head -n 1 "$hosts")
    last=$(tail -n 1 "$hosts")
    exec {watch}< <(env -u SLURM_GPUS srun --overlap --nodes=1 --ntasks=1 --nodelist="$last" bash -c '
        echo watching
        job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID} # of an array, only this task
        job=${job:-$SLURM_JOB_ID}
        while sleep @POLL@; do
            nodes=$(squeue --noheader --states=RUNNING --format=%N --jobs="$job") && [ -n "$nodes" ] || continue
            nodes=$(scontrol show hostnames "$nodes") && [ -n "$nodes" ] || continue
            grep -qx "$0" <<<"$nodes" || scontrol requeue "$job"
        done >/dev/null' "$first" </dev/null 2>/dev/null)
    read -r -t 30 -u $watch # wait for the watcher: a busy Slurm may start it late, and the first node may die before
    exec {watch}<&-
fi

# The head sleeps between messages and shares the cores of the workers beside it: --overcommit, --oversubscribe. No
# binding, which would pin two tasks to one core, or all of them to few.
case $launcher in
srun)
    export SLURM_HOSTFILE=$hosts # what --distribution=arbitrary reads
    launch=(srun --mpi="$mpi_type" --ntasks="$tasks" --distribution=arbitrary --overcommit --cpu-bind=none@GPU_BIND@)
    # All tasks share all cores of the job. srun would take these variables as options.
    unset SLURM_NTASKS_PER_NODE SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK
    ;;
mpirun)
    launch=(mpirun --hostfile "$hosts" --map-by seq --oversubscribe --bind-to none)
    if [ -n "$SLURM_GPUS" ]; then # --gpus=8: the srun by which mpirun starts its daemons would ask for them on fewer nodes
        export SLURM_GRES=gpu:$SLURM_GPUS_ON_NODE
        unset SLURM_GPUS
    fi
    ;;
*)
    echo "@FILE@: LAUNCHER is '$launcher'; srun or mpirun" >&2
    exit 2
    ;;
esac

# Forwards a signal to `supervise`, which stops cleanly; waits until it handles signals, as they would kill it before.
pass_on() {
    for ((try = 0; try < 100; try++)); do
        grep -qs '^SigBlk:.*[abef]..$' "/proc/$launched/status" && break
        sleep 0.1
    done
    kill -s "$1" "$launched" 2>/dev/null
}

# `supervise` restarts the step when a rank or a node was lost; the study continues where it was.
# In the background, because bash runs no trap while it waits for a foreground program; a background program must not
# read standard input.
if [ -z "$asked" ]; then
    @PROGRAM@ supervise -- "${launch[@]}" @PROGRAM@ run "$@" </dev/null &
    launched=$!
    for name in USR1 USR2 TERM HUP; do trap "pass_on $name" $name; done
    [ -z "$asked" ] || pass_on "$asked" # it came meanwhile
    # Each signal ends one `wait`; the last one returns the exit code.
    while kill -0 $launched 2>/dev/null; do wait $launched; done
    wait $launched
    code=$?
else
    echo "@FILE@: SIG$asked came before the study was started; submit it again to continue" >&2
    code=75
fi
)";

constexpr std::string_view few_cores = R"(
cores=${SLURM_CPUS_ON_NODE%%[!0-9]*}
if [ -n "$cores" ] && [ $((cores / SLURM_NTASKS_PER_NODE)) -lt @ENOUGH@ ]; then
    echo "@FILE@: warning: $SLURM_NTASKS_PER_NODE workers share $cores cores of this node; with" \
        "fewer than @ENOUGH@ each, GPUs often wait for data. Ask for the node's cores divided by its GPUs" \
        "(sinfo -N -o '%N %c %G'): #SBATCH --cpus-per-task=N" >&2
fi
)";

constexpr std::string_view chain_end = R"sh(
# The following jobs (--chain) that still wait; all of them when squeue gives no answer. `ranktune stop` puts the line
# "stop" below the jobs that are there: those below it were submitted after the stop.
following() {
    local which="$1 && \$1 != \"stop\"; \$1 == me { found = 1 } found && \$1 == \"stop\" { stopped = 1 }" jobs waiting
    jobs=$(awk -v me="$SLURM_JOB_ID" "$which" "$directory/submit/jobs" 2>/dev/null | xargs)
    [ -n "$jobs" ] &&
        waiting=$(squeue --noheader --states=PENDING --format=%i --jobs="$SLURM_JOB_ID,${jobs// /,}" 2>/dev/null) &&
        jobs=$(xargs <<<"$waiting")
    echo "$jobs"
}
cancel() {
    [ -z "$1" ] || scancel --state=PENDING $1 ||
        echo "@FILE@: the jobs that follow could not be cancelled; type: scancel $1" >&2
}
outcome=$directory/outcome
[ -n "$launched" ] || outcome=/dev/null # the file is of an earlier start
case $code in
0 | 2 | 3 | 4) # complete, or an error that a new try cannot fix: the followers have nothing to do
    cancel "$(following found)"
    ;;
75) # stopped early: by a person, so cancel the followers; or the head requeued the job, or a follower continues
    if grep -qxE 'reason=(ranktune stop|Ctrl-C)' "$outcome" 2>/dev/null; then
        cancel "$(following 'found && !stopped')"
        [ -z "$(following 'found && stopped')" ] || exit 0
    elif [ -n "$(following found)" ] || grep -qsx requeue=yes "$outcome"; then
        exit 0
    fi
    ;;
esac
)sh";

constexpr std::string_view last_words = R"(
# 0: the study is complete. 75: stopped early and resumable. Others: see the log, and the file `outcome` in the study
# directory. The job's exit code (sacct, mail) is the study's.
exit $code
)";

/// Where the arguments of `ranktune run` are in a text; empty: nowhere.
std::string_view arguments_in(const std::string& text) {
    const std::string begin = "\nset -- ";
    const auto at = text.find(begin);
    if (at == std::string::npos) return {};
    const auto from = at + begin.size();
    return std::string_view(text).substr(from, std::min(text.find('\n', from), text.size()) - from);
}

} // namespace

std::string with_arguments(std::string text, const std::string& arguments) {
    const std::string_view before = arguments_in(text);
    if (before.empty()) return {};
    return text.replace(static_cast<std::size_t>(before.data() - text.data()), before.size(), arguments);
}

std::vector<std::string> arguments_of(const std::string& text) {
    wordexp_t words{};
    if (wordexp(std::string(arguments_in(text)).c_str(), &words, WRDE_NOCMD) != 0) return {};
    std::vector<std::string> result(words.we_wordv, words.we_wordv + words.we_wordc);
    wordfree(&words);
    return result;
}

std::string render(const JobScript& script) {
    std::string text = "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n" + title(script);
    text += log_comment;
    text += directive("--job-name=" + script.name) + directive("--output=" + script.log);
    text += append_comment;
    text += directive("--open-mode=append");
    text += resources(script) + endings(script) + site(script) + launcher(script) + arguments(script);
    std::string rest(launch);
    if (!is_template(script)) rest += chain_end;
    // Every task must see all GPUs of its node; ranktune assigns them.
    replace_all(rest, "@GPU_BIND@", script.ranks_per_gpu > 1 ? " --gpu-bind=none" : "");
    replace_all(rest, "@CORES@", script.gpus.text.empty() ? "" : std::string(few_cores));
    replace_all(rest, "@ENOUGH@", number(enough_cores));
    replace_all(rest, "@FILE@", script.file);
    replace_all(rest, "@POLL@", std::to_string(script.poll.count()));
    replace_all(rest, "@PROGRAM@", script.program);
    text += rest;
    text += last_words;
    return text;
}

std::string time_limit_text(std::chrono::seconds time) {
    const auto total = time.count();
    char text[64];
    if (total >= 86'400)
        std::snprintf(text, sizeof text, "%lld-%02lld:%02lld:%02lld", static_cast<long long>(total / 86'400),
                      static_cast<long long>(total / 3600 % 24), static_cast<long long>(total / 60 % 60),
                      static_cast<long long>(total % 60));
    else
        std::snprintf(text, sizeof text, "%02lld:%02lld:%02lld", static_cast<long long>(total / 3600),
                      static_cast<long long>(total / 60 % 60), static_cast<long long>(total % 60));
    return text;
}

} // namespace ranktune::slurm
