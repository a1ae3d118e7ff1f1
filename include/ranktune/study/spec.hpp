// SPDX-License-Identifier: Apache-2.0
#pragma once
// StudySpec: a study file after parsing and checking. Every default is resolved here and nowhere else.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/time.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/side_task.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::study {

/// How `{args}` of a command writes a boolean. off: `--amp=true`, `--amp=false`; set: `--amp` or nothing; both: `--amp`
/// or `--no-amp`.
enum class Flags : std::uint8_t { off, set, both };

/// `result`: what becomes the only report of a program that ends: the last number on its standard output, its exit
/// code, or that it has succeeded: exit code 0 (others fail the trial), and the values of a JSON object on its last
/// line.
enum class PrintedResult : std::uint8_t { none, last_number, exit_code, success };

/// [trainable] with `command`: a program of the user, one process per rank. See docs/reference/program-protocol.md.
struct ProgramSpec {
    std::string command;     ///< study::CommandTemplate; empty: `function`
    std::string function;    ///< "/path/train.py:train", called for each attempt; or empty
    std::string interpreter; ///< of the function; empty: python3
    bool fresh = false;      ///< of the function: each attempt imports the file anew
    bool shell = false;      ///< run by /bin/sh -c instead of being split into words
    Flags flags = Flags::off;
    std::vector<std::string> report; ///< regular expressions (study::PrintedValues); empty: the program reports itself
    PrintedResult result = PrintedResult::none;
    /// It knows nothing of ranktune: its results are in what it prints, and it hears no answer.
    [[nodiscard]] bool prints() const { return !report.empty() || result != PrintedResult::none; }
    /// Its trials are tasks: they only have to succeed.
    [[nodiscard]] bool has_tasks() const { return result == PrintedResult::success; }
    /// A process of each rank does one trial after the other: tasks, or attempts of the function, which the interpreter
    /// then calls itself.
    bool kept = false;
    [[nodiscard]] bool keeps_for_tasks() const { return kept && function.empty(); }
    std::uint32_t restart_after = 0;  ///< trials of a kept process, which then makes room for a new one; 0: no limit
    std::uint64_t restart_growth = 0; ///< the same, in bytes that its memory has grown by since its first attempt
    std::string directory;            ///< working directory, absolute
    bool checkpoints = true;          ///< the program can save its state, so it may be paused
    struct Variable {
        std::string name;
        std::string value;
        friend bool operator==(const Variable&, const Variable&) = default;
    };
    std::vector<Variable> env;         ///< set in its environment, overriding everything else
    std::vector<std::string> keep_env; ///< variables of launchers that are not removed; `*` at the end: a prefix
    bool launcher_variables = true;    ///< those of torchrun are set (RANK, WORLD_SIZE, ...)
    bool tf_config = false;            ///< TF_CONFIG is set
    bool jax = false;                  ///< JAX_COORDINATOR_ADDRESS and its companions are set
};

/// Option of a program: a CSV file whose row number `row`, a hyper-parameter from 0 on, is the trial's configuration.
inline constexpr const char* table_option = "table";
inline constexpr const char* row_parameter = "row";

/// Stands for the name of the trainable if it is a program.
inline constexpr const char* program_name = "program";

/// The known content of a file that an option of [trainable] names ([inputs] of a resolved file).
struct InputFile {
    std::string option;
    std::string content; ///< PathChecks::content
    friend bool operator==(const InputFile&, const InputFile&) = default;
};

/// A file that takes part in a mixture: data::MixtureSource.
struct DataPart {
    std::string source; ///< name of another entry of [data]
    double weight = 1.0;
    std::uint64_t from = 0; ///< position
    friend bool operator==(const DataPart&, const DataPart&) = default;
};

/// An entry of [data]: a file, folder or mixture that programs and trainables ask for by name. The options are those of
/// data::SourceOptions and data::LoaderOptions; empty: the format needs none, the order follows from the file.
struct DataFile {
    std::string name;
    std::string path = {};                 ///< absolute; a mixture has none
    std::string dtype = {};                ///< of raw numbers and tokens: "float32"
    std::vector<std::uint64_t> shape = {}; ///< of a sample of raw numbers
    std::uint64_t tokens = 0;              ///< in a sample of a token file
    std::string group = {};                ///< of an HDF5 file
    bool decode = false;                   ///< its copy has plain rows (data::decode_rows)
    std::string shuffle = {};              ///< "full", "lanes", "none"
    std::uint64_t shuffle_memory = 0;      ///< bytes; 0: the default
    bool drop_last = false;
    std::vector<DataPart> parts = {}; ///< of a mixture
    std::string content = {};         ///< PathChecks::content; empty: unknown (a folder)
    [[nodiscard]] bool is_mixture() const { return !parts.empty(); }
    [[nodiscard]] bool has_options() const { return !dtype.empty() || !shape.empty() || tokens > 0 || !group.empty(); }
    friend bool operator==(const DataFile&, const DataFile&) = default;
};

/// [data] but for the files: whether trials read copies that lie on their node.
struct StagingSpec {
    bool stage = false;
    std::string directory; ///< for copies, absolute; empty: $TMPDIR or memory (data::find_places)
    bool must_fit = false; ///< without room for a copy the study ends; otherwise the original is read
};

/// [trainable]: a built-in or registered trainable and its fixed options, or a program.
struct TrainableSpec {
    std::string name;              ///< key of the registry: "mlp", "curve", or what a program registered; program_name
    space::Configuration options;  ///< every other key of the table; paths already absolute. Of a program: `table`
    std::vector<InputFile> inputs; ///< of options that are paths; missing: unknown
    std::optional<ProgramSpec> program;

    /// The content of the file of this option; null: unknown.
    [[nodiscard]] const std::string* content_of(const std::string& option) const;
};

/// [resources].gpus: which of the GPUs of the job trials get.
enum class GpuUse : std::uint8_t {
    granted,      ///< unspecified: a rank gets its own GPU, if it has one
    none,         ///< `gpus = 0`: trials see none
    one_per_rank, ///< `gpus = N`: N ranks with one each (or a share of one), or the study does not start
    some          ///< `gpus = "{name}"`, which may be 0: N ranks with one each, or `ranks` ranks without GPUs
};

/// [resources].bind: whether ranks that may use the same cores divide them among themselves. automatic: if the cores
/// belong to the job alone; cores: always; none: never.
enum class Bind : std::uint8_t { automatic, cores, none };

/// [resources], per trial.
struct ResourceSpec {
    std::uint32_t ranks = 1;         ///< GpuUse::some: of trials without GPUs
    std::string ranks_parameter;     ///< `ranks = "{name}"`: the configuration's integer of that name; empty otherwise
    std::vector<Role> roles;         ///< how the ranks of a trial divide; empty: all do the same
    std::uint32_t cpus_per_rank = 1; ///< threads of BLAS and the like
    GpuUse gpus = GpuUse::granted;
    double gpu_share = 1.0;                            ///< `gpus = 0.25`: a trial is one rank with this share of a GPU
    [[nodiscard]] std::uint32_t ranks_per_gpu() const; ///< how many ranks have the same GPU; 1: each has its own
    bool gpu_metrics = false;                          ///< reports have memory, load and energy of the trial's GPUs
    Bind bind = Bind::automatic;
    std::uint32_t helpers = 0; ///< worker ranks that are for side tasks alone
};

/// [stop]: limits of one trial. (The ceiling of iterations is study.max_iterations.)
struct MetricStop {
    std::string metric;
    double threshold = 0.0;
    Mode mode = Mode::max; ///< max: stop at >= threshold; min: at <=
};
struct PlateauStop {
    std::string metric;
    double std = 0.01;               ///< standard deviation of the last results, below which the trial stops
    std::uint32_t results = 4;       ///< how many of them
    Iteration grace = 4;             ///< no check before this many iterations
    std::optional<double> threshold; ///< only when the last value is at least this good (objective's mode)
};
/// [stop.study]: when the study has done enough. (Its time is StudySpec::time_budget.)
struct StudyStop {
    std::optional<double> target;              ///< of the best value, in the objective's mode
    std::optional<std::uint32_t> no_better_in; ///< trials that have ended without failing since the best one improved
    std::optional<std::uint64_t> iterations;   ///< reports of all trials together, repeated ones included
    std::optional<std::uint32_t> trials_ok;    ///< trials that have ended without failing
};
/// [stop]: limits of one trial, and of the study.
struct StopSpec {
    StudyStop study;
    std::vector<MetricStop> metrics;
    std::optional<PlateauStop> plateau;
    std::optional<base::Duration> trial_time; ///< training time of a trial, all attempts
};

struct FailureSpec {
    double tolerate = 0.05;         ///< share of failed trials up to which the study ends with exit code 0
    std::uint32_t max_failures = 0; ///< attempts that end with an exception and are retried from the last checkpoint
    /// The exit codes of programs that max_failures is for, 128 + N for signal N; empty: all. Others fail the trial.
    std::vector<std::uint32_t> retry_on;
    std::uint32_t max_losses = 3; ///< attempts lost with their ranks before the trial is failed
    /// The study drains when this many different trials fail in a row before a report; nullopt: from groups and trials
    /// (tuner::failures_to_drain).
    std::optional<std::uint32_t> in_a_row;
    /// Longest time without progress of a trial: between two reports of a program; between any two reports or gradient
    /// steps of a trainable in this process.
    std::optional<base::Duration> report_timeout;
    /// Longest time of an iteration of a program, from an answer to the next report (the first one: from its start);
    /// then it is ended, and the attempt has failed.
    std::optional<base::Duration> iteration_timeout;
    /// Longest wait of a rank for the others of its trial; then the attempt is lost. Not of programs.
    base::Duration collective_timeout = std::chrono::minutes(30);
    /// Longest time in which the GPUs of a trial form their group; then the attempt is lost. Not of programs.
    base::Duration forming_timeout = std::chrono::minutes(2);
};

/// [checkpoint]: when a running trial saves its state, in addition to pauses and the end of the best trial.
struct CheckpointSpec {
    enum class Interval : std::uint8_t { none, iterations, time, automatic };
    bool supported = true; ///< the trainable can save its state (TrainableInfo::can_checkpoint, trainable.checkpoints)
    Interval interval = Interval::automatic;
    Iteration iterations = 0; ///< interval == iterations: how many between two
    base::Duration time{};    ///< interval == time: training time between two
    /// interval == automatic: assumed for the job before any failure was seen (tuner::mean_time_between_failures).
    base::Duration mean_time_between_failures = std::chrono::hours(24);
    /// How many of its best checkpoints, by the objective, a running trial keeps beside the newest two, and the best
    /// trial keeps after its end.
    std::uint32_t keep = 1;
    bool every_trial = false; ///< each trial keeps them after its end, not the best one alone
    /// Limit for all checkpoints of the study: beyond it paused trials lose theirs (tuner::Retention).
    std::optional<std::uint64_t> max_bytes;
    bool at_rungs = false; ///< also save when a trial goes on at a rung
    bool direct = true;    ///< large ones bypass the page cache where the file system supports it
};

struct OutputSpec {
    base::Duration commit_interval = std::chrono::seconds(1); ///< journal.commit_interval: latest start of a sync
    base::Duration abort_grace =
        std::chrono::seconds(30); ///< how long a rank may take to leave user code after an abort
    base::Duration heartbeat_timeout = std::chrono::seconds(60);
    std::uint32_t spares = 0; ///< worker ranks that get no trial before others are lost
};

/// [slurm]: what the head does before the end of the job. No effect outside Slurm.
struct SlurmSpec {
    bool requeue = false;                                ///< requeue the job after a clean stop
    std::uint32_t max_requeues = 20;                     ///< starts of one job after which it is not requeued
    base::Duration lead_time = std::chrono::seconds(30); ///< kept free before the end; at most a tenth of the time left
    base::Duration poll_interval = std::chrono::minutes(1); ///< between two questions when the job ends
};

/// [predict]: the program in which models of this study predict for `ranktune predict`, one process for each model.
struct PredictSpec {
    std::string command;     ///< study::CommandTemplate, with {checkpoint}
    std::string directory;   ///< working directory, absolute
    std::string function;    ///< "/path/predict.py:predict": a class or function of Python in place of a command
    std::string interpreter; ///< of the function; empty: python3
    /// False: the trainable itself predicts.
    [[nodiscard]] bool by_program() const { return !command.empty() || !function.empty(); }
};

/// [hooks]: commands that the head runs, by `sh -c`; empty: none. They never affect the study.
struct HookSpec {
    std::string on_trial_end;
    std::string on_study_end;                          ///< at the end of every start
    base::Duration timeout = std::chrono::seconds(60); ///< of each
};

/// [before], [after_trial] or [after]: the program of a side task.
struct SideSpec {
    std::string command;                   ///< study::CommandTemplate, for a shell; empty: there is no such task
    std::string directory;                 ///< working directory, absolute
    std::optional<base::Duration> timeout; ///< of an attempt, which has failed then
};

struct StudySpec {
    std::string name;
    Objective objective;
    std::uint32_t num_trials = 0; ///< > 0 after parsing (a grid fills it in)
    Iteration max_iterations = 1; ///< R: the one ceiling
    std::uint64_t seed = 0;
    std::uint32_t max_concurrent = 0; ///< 0: as many as ranks allow
    std::optional<base::Duration> time_budget;
    /// A trial may end without a report, and has finished then: it has done its work, and there is nothing to compare.
    bool may_be_silent = false;
    bool deterministic = false; ///< logical time: the same study for every number of ranks; max_concurrent slots

    TrainableSpec trainable;
    std::vector<DataFile> data; ///< [data], in the order of the file
    StagingSpec staging;
    ResourceSpec resources;
    space::SearchSpace space;
    SearcherSpec searcher;
    SchedulerSpec scheduler;
    StopSpec stop;
    FailureSpec failure;
    CheckpointSpec checkpoint;
    OutputSpec output;
    SlurmSpec slurm;
    PredictSpec predict;
    HookSpec hooks;
    SideSpec before;
    SideSpec after_trial;
    SideSpec after;

    /// The entry of [data] with this name; null: there is none.
    [[nodiscard]] const DataFile* data_file(std::string_view called) const;
    [[nodiscard]] const SideSpec& side(SideTask::Kind kind) const;
    /// Whether [after_trial] reads the checkpoint of the trial: then each trial saves its last state.
    [[nodiscard]] bool evaluates_checkpoints() const;
    /// Of the random numbers of a trial: study.seed; with searcher.repeats, the next ones for its repetitions.
    [[nodiscard]] std::uint64_t seed_of(TrialId trial) const { return seed + trial.value() % searcher.repeats; }
    /// How many ranks a configuration asks for.
    [[nodiscard]] std::uint32_t ranks_for(const space::Configuration& configuration) const;
    [[nodiscard]] WorkerKind workers_for(const space::Configuration& configuration) const;
    /// The largest value that `ranks_for` can take.
    [[nodiscard]] std::uint32_t max_ranks_per_trial() const;
    /// The same of the trials that use one kind of workers. Requires GpuUse::some, or WorkerKind::any.
    [[nodiscard]] std::uint32_t max_ranks_per_trial(WorkerKind kind) const;
    /// How many trials of that size train at once on so many workers, of which run.spares and resources.helpers get
    /// none.
    [[nodiscard]] std::uint32_t trials_at_once(std::uint32_t workers) const;
};

} // namespace ranktune::study
