// SPDX-License-Identifier: Apache-2.0
#include "launch/supervisor.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <unistd.h>

#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "comm/mpi/launcher_words.hpp"
#include "launch/mpirun.hpp"
#include "launch/node_survey.hpp"
#include "launch/overdue.hpp"
#include "launch/restarts.hpp"
#include "launch/shared_memory.hpp"
#include "launch/step.hpp"
#include "process/descendants.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/view/load.hpp"
#include "slurm/allocation.hpp"
#include "slurm/nodes.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/last_end.hpp"
#include "studydir/log_file.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::launch {
namespace {

namespace fs = std::filesystem;

/// Options for the first start only: repeated, they would undo its work.
constexpr const char* only_once[] = {"--fresh", "--resume-errored", "--restart-errored"};

/// For a launcher that outlives ranks, after the head has ended: mpirun (Open MPI 4.1) does not return when a rank has
/// died on another node.
constexpr std::chrono::seconds after_end{5};

/// Lines of a text file; none when it cannot be read.
std::vector<std::string> lines_of(const std::string& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (!line.empty()) lines.push_back(line);
    return lines;
}

/// State of the study, from its journal.
struct Standing {
    bool has_journal = false;
    std::string uuid;
    std::uint32_t incarnation = 0;
    std::uint64_t progress = 0;
    std::uint64_t reports = 0;
    std::optional<int> finished; ///< exit code of a study that is over for good
};

Standing standing_of(const std::string& directory) {
    Standing found;
    auto& files = storage::posix_file_system();
    if (!storage::has_journal(files, directory)) return found;
    try {
        const auto loaded = report::load_state(files, directory);
        const auto& state = loaded.tuner->state();
        found = {true,          loaded.journal.uuid, loaded.journal.incarnation, tuner::progress_of(state),
                 state.reports, std::nullopt};
        if (tuner::is_over(state)) found.finished = static_cast<int>(state.outcome);
    } catch (const base::Error&) { // nothing written yet, or damaged: the next start reports it
        found.has_journal = true;
    }
    return found;
}

class Supervisor {
  public:
    Supervisor(LaunchLine line, std::string directory, const SuperviseOptions& options)
        : line_(std::move(line)),
          directory_(std::move(directory)),
          options_(options),
          before_(standing_of(directory_)),
          restarts_(options.max_restarts, before_.progress),
          relay_(line_.launcher == Launcher::none) {
        forget_old_requests();
        if (const auto job = slurm::allocation(process::environment_variables()); job && job->nodes) {
            nodes_.all = *job->nodes;
            if (job->tasks_by_node) nodes_.tasks = *job->tasks_by_node;
        }
        if (const auto tasks = process::environment_variable("SLURM_NTASKS"); !tasks.empty())
            nodes_.job_tasks = static_cast<std::uint32_t>(std::strtoul(tasks.c_str(), nullptr, 10));
        if (const auto file = hosts_file(line_, process::environment_variable("SLURM_HOSTFILE")); !file.empty())
            nodes_.hosts = lines_of(file);
        hosts_path_ = (fs::temp_directory_path() / ("ranktune-hosts-" + std::to_string(getpid()))).string();
    }
    ~Supervisor() {
        std::error_code ignored;
        fs::remove(hosts_path_, ignored);
    }
    Supervisor(const Supervisor&) = delete;
    Supervisor& operator=(const Supervisor&) = delete;

    SuperviseEnd run() {
        constexpr int resumable = static_cast<int>(study::StudyOutcome::resumable);
        if (pause_unless_asked(std::chrono::milliseconds(1), relay_)) return {resumable, {}};
        while (true) {
            const RestartDecision decision = restarts_.after(run_once());
            if (!decision.restart) return {decision.code, decision.words};
            if (!job_goes_on(process::slurm_job())) {
                say(decision.words + "; the job is ending: the same command goes on in the next one");
                return {resumable, {}};
            }
            if (stop_was_asked()) return {resumable, {}};
            blameless_ = decision.blameless;
            drop_one_time_options();
            look_for_lost_nodes();
            say(decision.words + "; starting the study again (restart " + std::to_string(restarts_.count()) + ")" +
                left_out());
            if (pause_unless_asked(std::chrono::seconds(1), relay_) || stop_was_asked()) return {resumable, {}};
        }
    }

  private:
    /// Removes a stop request that is older than this process, unless the run it was meant for still lives.
    void forget_old_requests() const {
        auto& files = storage::posix_file_system();
        const auto holder = storage::read_lease(files, directory_);
        const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
        if (holder && storage::judge(*holder, me, storage::process_start) == storage::LeaseState::held) return;
        files.remove(study().stop_file());
    }

    /// Whether `ranktune stop` was called while no head lived. Writes `outcome`, as a head would have.
    [[nodiscard]] bool stop_was_asked() const {
        auto& files = storage::posix_file_system();
        try {
            const auto who = studydir::take_stop_request(files, study().stop_file());
            if (!who) return false;
            say(std::string(study::name(*who)) + ": the study is not started again; the same command goes on with it");
            const Standing now = standing_of(directory_);
            studydir::OutcomeFile outcome;
            outcome.outcome = study::StudyOutcome::resumable;
            outcome.reason = study::name(*who);
            outcome.progress = now.progress > before_.progress;
            outcome.reports = now.reports;
            outcome.start = now.incarnation;
            outcome.time = studydir::wall_time_now();
            outcome.cause = studydir::EndCause::asked;
            outcome.by = *who;
            studydir::publish_text(files, study().outcome_file(), studydir::outcome_text(outcome), true);
        } catch (const base::IoError& error) {
            say(error.what());
        }
        return true;
    }

    /// For Ctrl-C at this process: tells the head in words, so that it does not take the signal for Slurm's.
    [[nodiscard]] bool ask_head() const {
        try {
            auto& files = storage::posix_file_system();
            if (!storage::read_lease(files, directory_)) return false; // no head would see it
            studydir::ask_to_stop(files, study(), study::Asker::keyboard);
            return true;
        } catch (const base::IoError&) { // a full disk
            return false;
        }
    }

    [[nodiscard]] studydir::StudyDirectory study() const { return {directory_}; }

    void say(const std::string& what) const { options_.say(what); }

    StepFacts run_once() {
        auto& files = storage::posix_file_system();
        const auto earlier = studydir::read_outcome(files, {directory_});
        const bool had_directory = files.exists(directory_);
        const auto before = reading(standing_of(directory_));
        if (restarts_.count() > 0 && (same_study_.is_replaced(before) || same_study_.is_lost(before))) {
            StepFacts facts; // changed since the previous step ended
            facts.code = static_cast<int>(study::StudyOutcome::resumable);
            facts.directory_replaced = before.exists;
            facts.directory_lost = !before.exists;
            return facts;
        }
        same_study_.begin(before, may_begin_anew());
        StepOptions options = step();
        // A folder of its own, so that killed ranks leave nothing behind, even if this process is killed.
        std::optional<SharedMemoryFolder> shared_memory;
        if (ranks_are_here() && comm::mpi::library() == comm::mpi::Library::open_mpi &&
            process::environment_variable(backing_directory).empty())
            shared_memory.emplace();
        if (shared_memory && !shared_memory->path().empty())
            options.variables.emplace_back(backing_directory, shared_memory->path());
        const auto held_before = storage::read_lease(files, directory_);
        const StepEnded ended = run_step(options, relay_);
        const auto held = storage::read_lease(files, directory_);
        if (ended.asked) files.remove(study().stop_file()); // no head is left to take it
        const Standing now = standing_of(directory_);
        StepFacts facts;
        facts.code = ended.code;
        facts.asked = ended.asked;
        facts.outlives = outlives_ranks();
        facts.head_died = held && held != held_before;
        if (auto outcome = studydir::read_outcome(files, {directory_}); outcome != earlier)
            facts.outcome = std::move(outcome);
        // A study that was over before says so and starts nothing; a study that was about to begin is not over.
        const bool is_new = now.uuid != before_.uuid || now.incarnation > before_.incarnation;
        if (now.finished && (is_new || *now.finished == ended.code)) facts.finished = now.finished;
        facts.directory_replaced = same_study_.is_replaced(reading(now));
        facts.has_journal = now.has_journal;
        facts.progress = now.progress;
        facts.nodes_left_out = !gone_.empty();
        // A head creates its directory first, and exits with this code when that fails.
        facts.directory_lost = !files.exists(directory_) &&
                               (had_directory || facts.code == static_cast<int>(study::StudyOutcome::resumable));
        const bool speechless = !facts.outcome && facts.code == static_cast<int>(study::StudyOutcome::resumable);
        facts.can_write = !speechless || can_write();
        return facts;
    }

    [[nodiscard]] DirectoryReading reading(const Standing& standing) const {
        auto& files = storage::posix_file_system();
        std::error_code unreadable;
        const bool is_empty = fs::is_empty(directory_, unreadable);
        return {files.exists(directory_), unreadable || !is_empty, files.exists(study().status_file()),
                standing.has_journal, standing.uuid};
    }

    /// `--fresh` (dropped for later starts), or a script, which may contain it.
    [[nodiscard]] bool may_begin_anew() const {
        return !line_.program || std::find(line_.words.begin(), line_.words.end(), "--fresh") != line_.words.end();
    }

    /// Tests with about as much data as a head needs to begin.
    [[nodiscard]] bool can_write() const {
        auto& files = storage::posix_file_system();
        const std::string probe = (fs::path(directory_) / (".room-" + process::make_uuid())).string();
        bool done = true;
        try {
            studydir::publish_text(files, probe, std::string(1 << 20, '\n'), true);
        } catch (const base::IoError&) {
            done = false;
        }
        try {
            files.remove(probe);
        } catch (const base::IoError&) { // it does not exist, or takes little space
        }
        return done;
    }

    /// Whether all ranks of the step run on this machine, as far as its line and the job tell.
    [[nodiscard]] bool ranks_are_here() const {
        if (line_.launcher != Launcher::srun && line_.launcher != Launcher::mpirun) return false;
        if (!nodes_.all.empty()) return nodes_.all.size() == 1 && nodes_.all.front() == process::host_name();
        // Outside Slurm, a line that names hosts may start ranks anywhere.
        const auto names_hosts = [](const std::string& word) {
            return word == "-H" || word.starts_with("--host") || word.starts_with("-host") ||
                   word.find("machinefile") != std::string::npos || word.find("default_hostfile") != std::string::npos;
        };
        return line_.launcher == Launcher::mpirun && std::none_of(line_.words.begin(), line_.words.end(), names_hosts);
    }

    StepOptions step() {
        StepOptions options;
        options.words = line_.words;
        options.variables.emplace_back(supervised_variable, "1");
        if (const auto starter = this->starter())
            for (auto& setting :
                 comm::mpi::survival_settings(*starter, process::environment_variables(), comm::mpi::library_version()))
                options.variables.push_back(setting);
        if (restarts_.count() > 0)
            options.variables.emplace_back(
                studydir::last_end_variable,
                name(by_a_node_ || blameless_ ? studydir::ToldEnd::outside : studydir::ToldEnd::crash));
        // A step that lost its slurmstepd keeps its resources in Slurm's records until the job ends; without this, srun
        // would wait for them.
        if (restarts_.count() > 0 && line_.launcher == Launcher::srun && !asks_for_cores_of_its_own())
            options.variables.emplace_back("SLURM_OVERLAP", "1");
        options.ask = [this] { return ask_head(); };
        options.heard = [this] { return !storage::posix_file_system().exists(study().stop_file()); };
        if (line_.launcher != Launcher::other) options.overdue = launcher_is_overdue(); // a script may have more to do
        nodes_.gone.clear();
        for (const auto& [node, why] : gone_) nodes_.gone.push_back(node);
        if (!gone_.empty()) {
            if (auto reduced = without_nodes(line_, nodes_, hosts_path_)) {
                options.words = std::move(reduced->words);
                if (!reduced->hosts.empty()) write_hosts(reduced->hosts, options);
            }
        }
        if (line_.launcher == Launcher::mpirun)
            options.keep_error_line = [](const std::string& line) { return comm::mpi::is_noise(line); };
        task_died_ = false;
        if (line_.launcher == Launcher::srun || (nodes_.all.size() > 1 && line_.launcher == Launcher::mpirun)) {
            options.on_error_line = [this](const std::string& line) {
                task_died_ = task_died_ || slurm::is_about_a_dead_task(line);
                if (nodes_.all.size() <= 1) return;
                for (const auto& node : slurm::nodes_blamed(line, nodes_.all))
                    blamed_.emplace(node, "\"" + line + "\"");
            };
        }
        return options;
    }

    /// Nothing: the step has another launcher, or starts its own.
    [[nodiscard]] std::optional<comm::mpi::Starter> starter() const {
        if (line_.launcher == Launcher::srun) return comm::mpi::Starter::srun;
        return line_.launcher == Launcher::mpirun ? std::optional(comm::mpi::Starter::mpirun) : std::nullopt;
    }

    /// Whether the launcher of the step is told to outlive ranks.
    [[nodiscard]] bool outlives_ranks() const {
        const auto launcher = starter();
        auto variables = process::environment_variables();
        if (line_.has_ulfm()) variables[comm::mpi::ulfm_variable] = "1";
        return launcher && comm::mpi::will_outlive_ranks(*launcher, variables, comm::mpi::library_version());
    }

    /// srun refuses --overlap together with --exclusive.
    [[nodiscard]] bool asks_for_cores_of_its_own() const {
        return !process::environment_variable("SLURM_EXCLUSIVE").empty() ||
               std::any_of(line_.words.begin(), line_.words.end(),
                           [](const std::string& word) { return word.starts_with("--exclusive"); });
    }

    /// Whether the holder of a lease is a living process of this machine that is not stopped.
    [[nodiscard]] static bool lives_here(const storage::LeaseHolder& holder) {
        const auto me = storage::this_holder(process::slurm_job(), process::slurm_restart_count());
        return storage::judge(holder, me, storage::process_start) == storage::LeaseState::held &&
               !process::is_stopped(static_cast<pid_t>(holder.writer.pid));
    }

    /// Only mpirun's ranks are its children; srun's tasks are not.
    [[nodiscard]] std::function<bool(pid_t)> launcher_is_overdue() const {
        auto& files = storage::posix_file_system();
        const auto before = storage::read_lease(files, directory_);
        const bool outlives = outlives_ranks();
        return [this, &files, before, outlives,
                overdue = Overdue(options_.launcher_wait, before, {}, outlives ? after_end : options_.launcher_wait),
                earlier = studydir::read_outcome(files, study()),
                here = line_.launcher == Launcher::mpirun && ranks_are_here()](pid_t launcher) mutable {
            const auto lease = storage::read_lease(files, directory_);
            const auto outcome = studydir::read_outcome(files, study());
            if (task_died_ && lease == before && outcome == earlier) { // the others wait for it in MPI_Init
                say("a task has died before the study began (see above): ending the step");
                return true;
            }
            const bool known = lease || files.exists(directory_);
            const auto children = here ? process::has_living_children(launcher) : std::nullopt;
            const bool head_died = outlives && lease && lease != before &&
                                   !storage::possible_writer(files, directory_); // known: it was on this machine
            const bool ended = head_died || (outcome && outcome != earlier);
            if (!overdue.next({known, head_died ? std::nullopt : lease, ended, children, lease && lives_here(*lease)}))
                return false;
            const std::string launcher_name = fs::path(line_.words.front()).filename().string();
            if (ended && outlives)
                say("the head of the study has ended, and " + launcher_name + " has not: ending it");
            else
                say("no head of the study, or no process of its step, has lived for " +
                    std::to_string(options_.launcher_wait.count()) + " s, and " + launcher_name +
                    " has not ended (--launcher-wait): ending it");
            return true;
        };
    }

    void write_hosts(const std::vector<std::string>& hosts, StepOptions& options) const {
        std::ofstream out(hosts_path_, std::ios::trunc);
        for (const auto& host : hosts) out << host << "\n";
        if (!out.flush()) throw base::IoError("cannot write", hosts_path_, std::make_error_code(std::errc::io_error));
        if (line_.launcher == Launcher::srun) options.variables.emplace_back("SLURM_HOSTFILE", hosts_path_);
    }

    void drop_one_time_options() {
        if (!line_.program) return;
        const auto first = line_.words.begin() + static_cast<std::ptrdiff_t>(*line_.program) + 2;
        line_.words.erase(std::remove_if(first, line_.words.end(),
                                         [](const std::string& word) {
                                             return std::find(std::begin(only_once), std::end(only_once), word) !=
                                                    std::end(only_once);
                                         }),
                          line_.words.end());
    }

    /// Asks again each time, because a node may come back. Nodes that a launcher blamed stay blamed.
    void look_for_lost_nodes() {
        const auto earlier = std::exchange(gone_, {});
        find_lost_nodes();
        const auto is_new = [&](const auto& node) { return earlier.count(node.first) == 0; };
        by_a_node_ = std::any_of(gone_.begin(), gone_.end(), is_new);
    }

    void find_lost_nodes() {
        if (nodes_.all.size() < 2 || (line_.launcher != Launcher::srun && line_.launcher != Launcher::mpirun)) return;
        gone_ = nodes_gone(nodes_.all);
        gone_.insert(blamed_.begin(), blamed_.end());
        if (gone_.size() < nodes_.all.size()) return;
        blamed_.clear(); // no node would be left: the launcher may have been wrong
        gone_ = nodes_gone(nodes_.all);
    }

    [[nodiscard]] std::string left_out() const {
        std::vector<std::string> words;
        for (const auto& [node, why] : gone_) words.push_back(node + " (" + why + ")");
        return words.empty() ? "" : " without " + base::join(words);
    }

    LaunchLine line_;
    std::string directory_;
    SuperviseOptions options_;
    Standing before_;
    Restarts restarts_;
    SameStudy same_study_;
    SignalRelay relay_;
    StepNodes nodes_;
    std::map<std::string, std::string> gone_;
    std::map<std::string, std::string> blamed_; ///< by the launcher's messages
    bool task_died_ = false;                    ///< of srun, in this step
    bool by_a_node_ = false;                    ///< the previous step ended because a node was lost
    bool blameless_ = false;                    ///< it ended for a cause outside the trials
    std::string hosts_path_;
};

} // namespace

SuperviseEnd supervise(LaunchLine line, std::string directory, const SuperviseOptions& options) {
    return Supervisor(std::move(line), std::move(directory), options).run();
}

} // namespace ranktune::launch
