// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs of the command line, as functions from their arguments to an exit code. They throw errors, which `main`
// turns into messages.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/manual/command_line.hpp"
#include "ranktune/study/steering.hpp"

namespace ranktune::cli {

enum class Progress : std::uint8_t { automatic, table, lines, none };

struct RunArguments {
    std::string study;
    std::vector<std::string> overrides; ///< `a.b=v`
    std::string directory;              ///< -o; empty: ./<name>
    std::optional<std::uint32_t> local; ///< --local N: start mpirun here with N workers
    std::string faults;                 ///< --faults: file; empty: no rank is killed on purpose
    bool dry_run = false;
    bool fresh = false;          ///< move an existing study aside
    bool resume_errored = false; ///< failed trials go on from their last checkpoint
    bool restart_errored = false;
    Progress progress = Progress::automatic;
    bool verbose = false;
    /// For a verb that makes its study file; empty: the file `study` is there.
    struct MadeStudy {
        /// The text of the study file. Writes nothing, because the study may be refused. Throws base::UsageError.
        std::function<std::string()> text;
        /// Called once the lease is held and --fresh has renamed the old directory: publishes the study file.
        std::function<void()> begin;
        /// What the user typed for a key: mistakes name that, as the file need not be there. May be empty.
        std::function<std::string(const std::string& key)> option = {};
    };
    std::optional<MadeStudy> made = {};
};

struct ValidateOptions {
    bool elsewhere = false; ///< do not look for the program of the command on this machine
    bool verbose = false;
};

/// How this process was invoked, to start itself again under mpirun.
struct Invocation {
    std::string program;                ///< absolute path of this executable
    std::vector<std::string> arguments; ///< as given, without the program
};

struct ExtendArguments {
    std::string directory;
    std::vector<std::string> trials; ///< digits; or "best", or "best" and how many
    std::uint32_t max_iterations = 0;
    std::string output; ///< empty: <directory>-extended
};

struct NoteArguments {
    std::string directory;
    std::string trial;              ///< digits, or "best"
    std::string text;               ///< empty: none
    std::vector<std::string> tags;  ///< to put on
    std::vector<std::string> untag; ///< to take off
};

struct CheckpointArguments {
    std::string directory;
    std::string trial;  ///< digits, or "best"
    std::string output; ///< empty: <study>-<trial>-<iteration>.safetensors
    std::string format; ///< empty: safetensors, the only one
    bool all = false;   ///< optimizer and data scaling too
};

struct ReportArguments {
    std::vector<std::string> directories; ///< of one study or several
    std::string output;                   ///< empty: <study>-report.html, or report.html for several
};

enum class Format : std::uint8_t { text, json, csv };

struct SuperviseArguments {
    std::vector<std::string> command;
    std::string directory; ///< of the study; empty: taken from the command
    std::uint32_t max_restarts = 20;
    std::uint32_t launcher_wait_s = 90; ///< 0: wait for ever
};
/// Parses the words after `ranktune run`. Throws base::UsageError.
using ParseRun = std::function<RunArguments(const std::vector<std::string>& words)>;
int supervise(const SuperviseArguments& arguments, const ParseRun& parse_run);

/// A study as a Slurm job.
struct SubmitArguments {
    std::string study;
    std::vector<std::string> overrides;
    std::string directory; ///< -o; empty: ./<name>
    std::uint32_t nodes = 1;
    std::uint32_t gpus_per_node = 0;
    std::optional<std::uint32_t> workers_per_node; ///< without GPUs
    std::optional<std::uint32_t> cpus_per_worker;  ///< nothing: as the study says
    std::string time;                              ///< a duration of the study file; empty: the last submission's job
    std::string account;
    std::string partition;
    std::uint32_t chain = 1;         ///< number of jobs; each begins when the one before has ended
    bool print = false;              ///< print the script, submit nothing
    std::vector<std::string> sbatch; ///< further options, after `--`
    friend bool operator==(const SubmitArguments&, const SubmitArguments&) = default;
};

/// Prints the host of each task of this Slurm job, one per line: the first node for the head, then each node once per
/// worker.
int hosts();
int submit(const SubmitArguments& arguments, const Invocation& invocation);
int run(const RunArguments& arguments, const Invocation& invocation);
/// Hands out trials and takes their results, in lines of JSON on standard input and output, until input ends.
int ask(const RunArguments& arguments);
int dry_run(const RunArguments& arguments);
int validate(const RunArguments& arguments, const ValidateOptions& options);
struct InitArguments {
    std::string name;            ///< of the study, or of its file
    std::string kind = "digits"; ///< name of the template
    std::string searcher;        ///< empty: the template's
    std::string scheduler;       ///< empty: the template's
};
int init(const InitArguments& arguments);
/// Prints the searchers and schedulers that a study file may name; `markdown`: as Markdown tables.
int algorithms(bool markdown);
int stop(const std::string& directory);
/// What `stop` does; returns what it prints.
[[nodiscard]] std::string ask_to_stop(const std::string& directory);
struct ReplayArguments {
    std::string directory;
    bool verify = false;
    bool logical_digest = false;
    std::optional<std::uint64_t> until; ///< records
    std::string schedule;               ///< a trial; empty: none
};
int replay(const ReplayArguments& arguments);
// From here on, `directory` is the study directory, never its file.
int best(const std::string& directory, Format format);
/// Writes an HTML file; returns 1 if a journal's newest records are missing, else 0.
int report_page(const ReportArguments& arguments);
/// `trial`: digits, or "best"; empty: the study as a whole. `records`: name the records that each line rests on.
int explain_trial(const std::string& directory, const std::string& trial, bool records, Format format);

struct SimulateArguments {
    std::string study;
    std::vector<std::string> overrides;
    std::string directory; ///< -o; empty: ./<name>-simulated
    std::uint32_t groups = 0;
    double hours = 0.0;              ///< of virtual time; 0: no limit but the study's own
    std::string model;               ///< file, or directory of a study; empty: the defaults
    std::string faults;              ///< file; empty: nothing fails
    std::vector<std::string> sweeps; ///< `key=a,b,c`
    std::uint32_t seeds = 0;         ///< 0: not given, one study; otherwise a table, as with `sweeps`
    bool fresh = false;
};
/// Returns 0, however the simulated study ended.
int simulate(const SimulateArguments& arguments);

/// Returns 0 when nothing is wrong, else 1. `clean`: first removes what killed ranks have left behind.
int doctor(const std::string& directory, Format format, bool clean);
int support(const std::string& directory, const std::string& output);

int extract_checkpoint(const CheckpointArguments& arguments);
int extend(const ExtendArguments& arguments);
/// Adds what is given; otherwise shows what there is.
int note(const NoteArguments& arguments);

// ---- The verbs whose text comes from the program's own tables.

/// Prints the keys of a study file: those of a table, one key, or, for an empty name, all.
int keys(const std::string& name);
/// Writes what is made from the tables of this program into `folder`; `kind`: "pages" (docs/reference/generated), "man"
/// or "completions".
int reference(const std::string& kind, const std::string& folder, const CommandLine& line);

// ---- The verbs that steer a study while it runs.

struct SteerArguments {
    study::SteerVerb verb = study::SteerVerb::pause;
    std::string directory;             ///< of the study
    std::string trial;                 ///< digits; of pause, resume and cancel
    std::vector<std::string> settings; ///< `key=value`: of set, and of add the hyper-parameters
    std::string csv;                   ///< of add: a file of trials; empty: none
};
/// Leaves a request for the head and waits for its answer. A study that is not run takes the request when it goes on.
/// Throws base::UsageError with the reason when the request is refused.
int steer(const SteerArguments& arguments);
/// What `steer` does; returns what it prints. Called by several threads.
[[nodiscard]] std::string ask_of_head(const SteerArguments& arguments);
/// Why this user cannot steer the study, also later; empty: it can be tried.
[[nodiscard]] std::string why_not_steered(const std::string& directory);

} // namespace ranktune::cli
