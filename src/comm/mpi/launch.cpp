// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/launch.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/number_in.hpp"
#include "base/take_until.hpp"

namespace ranktune::comm::mpi {
namespace {

std::string_view text(const base::Variables& variables, std::string_view name) {
    return base::value_of(variables, name).value_or(std::string_view{});
}

bool has(const base::Variables& variables, std::string_view name) { return !text(variables, name).empty(); }

/// A whole number; -1: not a number.
int number(std::string_view digits) { return base::number_in<int>(digits).value_or(-1); }

/// The interfaces by which a launcher connects its processes.
struct Interfaces {
    bool pmix = false;
    bool pmi = false;      ///< PMI-1, PMI-2, and what the launchers of Cray and Flux set
    bool open_mpi = false; ///< mpirun of Open MPI
    [[nodiscard]] bool any() const { return pmix || pmi || open_mpi; }
};

Interfaces interfaces(const base::Variables& variables) {
    Interfaces found;
    found.pmix = has(variables, "PMIX_RANK") || has(variables, "PMIX_NAMESPACE");
    for (const char* name :
         {"PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMI2_RANK", "PALS_RANKID", "FLUX_TASK_RANK"}) {
        found.pmi = found.pmi || has(variables, name);
    }
    found.open_mpi = has(variables, "OMPI_COMM_WORLD_SIZE");
    return found;
}

/// Whether this is a task of a job step with more than one task; a batch script is not.
bool in_step(const base::Variables& variables) {
    return has(variables, "SLURM_STEP_ID") && has(variables, "SLURM_PROCID");
}

/// What the innermost launcher started.
struct Started {
    std::string by;
    int tasks = -1;
    int task = 0; ///< this one
};

Started started(const base::Variables& variables) {
    const auto made = [&](const char* by, const char* size, const char* rank) {
        return Started{by, number(text(variables, size)), number(text(variables, rank))};
    };
    // Open MPI's daemons are themselves tasks of srun, so its own variables come first.
    if (has(variables, "OMPI_COMM_WORLD_SIZE")) return made("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
    // Likewise Hydra's proxies (of MPICH and Intel MPI).
    if (has(variables, "MPI_LOCALNRANKS") && has(variables, "PMI_SIZE")) return made("mpiexec", "PMI_SIZE", "PMI_RANK");
    if (in_step(variables)) return made("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
    if (has(variables, "PMI_SIZE")) return made("mpiexec", "PMI_SIZE", "PMI_RANK");
    return {};
}

std::string used(const Interfaces& found) {
    if (found.pmix) return "--mpi=pmix";
    if (found.pmi) return "--mpi=pmi2";
    return "no process manager interface (--mpi=none or the site's default)";
}

BrokenLaunch describe(const Started& start, const Interfaces& found, const LaunchFacts& facts) {
    const bool srun = start.by == "srun";
    const bool mpich = facts.library == Library::mpich;
    std::string message = start.by + " started " + std::to_string(start.tasks) + (srun ? " tasks" : " processes") +
                          ", but each is alone in MPI (world size 1) (exit 2)\n";
    message +=
        "  this program  " + facts.library_version + (mpich ? ", PMI" : ", PMIx") + "     " + facts.program + "\n";
    if (srun) {
        message += "  srun used     " + used(found);
        if (!facts.offered.empty()) message += "; offered: " + facts.offered;
        message += std::string("\n  try           srun --mpi=") + (mpich ? "pmi2 " : "pmix ") + facts.command;
    } else {
        message += "  " + start.by +
                   (start.by == "mpirun" ? "        is Open MPI's" : "       is MPICH's or a relative's") +
                   ", the program was linked with another MPI\n" + "  try           the launcher of " +
                   facts.library_version + " (same module or package)";
    }
    return {message, start.task <= 0, srun};
}

} // namespace

bool is_first_task(const base::Variables& variables) { return started(variables).task <= 0; }

std::optional<std::uint32_t> launched_tasks(const base::Variables& variables) {
    const int tasks = started(variables).tasks;
    return tasks < 1 ? std::nullopt : std::optional(static_cast<std::uint32_t>(tasks));
}

std::optional<BrokenLaunch> examine_launch(const base::Variables& variables, const LaunchFacts& facts) {
    const auto start = started(variables);
    const auto found = interfaces(variables);
    if (start.tasks <= 1) return std::nullopt;
    const bool no_interface = !found.any();
    // Open MPI can use PMI under Slurm (if built for it), but not that of MPICH's own launcher.
    const bool foreign = facts.library == Library::open_mpi && !found.pmix &&
                         (start.by == "mpiexec" || (start.by == "srun" && !found.open_mpi && !facts.speaks_pmi));
    if (!no_interface && !foreign) return std::nullopt;
    return describe(start, found, facts);
}

std::optional<BrokenLaunch> examine_world(const base::Variables& variables, const LaunchFacts& facts, int world_size) {
    const auto start = started(variables);
    if (world_size != 1 || start.tasks <= 1) return std::nullopt;
    return describe(start, interfaces(variables), facts);
}

std::string offered_interfaces(std::string_view list) {
    std::string offered;
    while (!list.empty()) {
        std::string_view line = base::take_until(list, '\n');
        // "srun: pmix" or "<tab>pmix"; several versions in one line after a colon; headings end in "...".
        if (const auto colon = line.rfind(": "); colon != std::string_view::npos) line.remove_prefix(colon + 2);
        while (!line.empty()) {
            line.remove_prefix(std::min(line.find_first_not_of(" \t,"), line.size()));
            const auto end = std::min(line.find_first_of(" \t,"), line.size());
            const auto word = line.substr(0, end);
            line.remove_prefix(end);
            if (word.starts_with("pmi") || word.starts_with("cray"))
                offered += (offered.empty() ? "" : ", ") + std::string(word);
        }
    }
    return offered;
}

std::vector<std::pair<std::string, std::string>> settings_before_init(const base::Variables& variables, Library library,
                                                                      int cores) {
    if (library != Library::open_mpi) return {};
    int here = number(text(variables, "OMPI_COMM_WORLD_LOCAL_SIZE"));
    // "16(x2),8": take the first node's count for this node.
    if (here < 0 && in_step(variables)) {
        const auto tasks = text(variables, "SLURM_STEP_TASKS_PER_NODE");
        here = number(tasks.substr(0, tasks.find_first_not_of("0123456789")));
    }
    if (here <= cores || started(variables).task == 0) return {};
    constexpr const char* yield = "OMPI_MCA_mpi_yield_when_idle";
    if (has(variables, yield)) return {};
    return {{yield, "1"}};
}

namespace {

bool is_open_mpi_4(std::string_view library_version) { return survival_variable(library_version) == recovery_variable; }

/// The user's word on it; nothing: none.
std::optional<bool> told(const base::Variables& variables, const char* name) {
    const auto set = text(variables, name);
    if (set.empty()) return std::nullopt;
    constexpr std::string_view no[] = {"0", "f", "false", "no", "n", "off", "disable", "disabled"};
    return std::ranges::find(no, set) == std::end(no);
}

bool is_intel(std::string_view library_version) { return survival_variable(library_version) == fault_variable; }

/// Whether the launcher was told to outlive its ranks.
bool is_told(Starter launcher, const base::Variables& variables, std::string_view library_version) {
    const char* const variable = survival_variable(library_version);
    if (variable == nullptr) return false;
    if (launcher != Starter::srun) return told(variables, variable).value_or(false);
    return is_open_mpi_4(library_version) && text(variables, "SLURM_KILL_BAD_EXIT") == "0" &&
           has(variables, "SLURM_NO_KILL");
}

} // namespace

const char* survival_variable(std::string_view library_version) {
    if (library_version.starts_with("Intel(R) MPI")) return fault_variable;
    constexpr std::string_view name = "Open MPI ";
    if (!library_version.starts_with(name)) return nullptr;
    const auto version = library_version.substr(name.size());
    return number(version.substr(0, version.find('.'))) < 5 ? recovery_variable : ulfm_variable;
}

bool outlives_ranks(const base::Variables& variables, std::string_view library_version) {
    const std::string launcher = started(variables).by;
    if (launcher == "mpirun" || (launcher == "mpiexec" && is_intel(library_version)))
        return is_told(Starter::mpirun, variables, library_version);
    // Each worker's guard keeps Slurm's PMIx server from noticing (pmix.hpp).
    return launcher == "srun" && interfaces(variables).pmix && is_told(Starter::srun, variables, library_version);
}

std::vector<std::string> survival_options(const base::Variables& variables, std::string_view library_version) {
    const char* const variable = survival_variable(library_version);
    if (variable == nullptr || told(variables, variable)) return {};
    if (is_open_mpi_4(library_version)) return {"--mca", "orte_enable_recovery", "1"};
    if (is_intel(library_version)) return {"-genv", fault_variable, "on"};
    return {"--with-ft", "ulfm"};
}

base::Variables survival_settings(Starter launcher, const base::Variables& variables,
                                  std::string_view library_version) {
    if (is_intel(library_version) && launcher != Starter::srun && !has(variables, fault_variable))
        return {{fault_variable, "on"}};
    if (!is_open_mpi_4(library_version)) return {};
    base::Variables settings{{"SLURM_NO_KILL", "set"}}; // of mpirun: for the srun by which it starts its daemons
    if (launcher == Starter::srun)
        settings.emplace("SLURM_KILL_BAD_EXIT", "0");
    else
        settings.emplace(recovery_variable, "1");
    std::erase_if(settings, [&](const auto& setting) { return has(variables, setting.first); });
    return settings;
}

bool will_outlive_ranks(Starter launcher, const base::Variables& variables, std::string_view library_version) {
    if (launcher == Starter::here && !survival_options(variables, library_version).empty()) return true;
    base::Variables all = variables;
    for (const auto& [name, value] : survival_settings(launcher, variables, library_version)) all[name] = value;
    return is_told(launcher, all, library_version);
}

std::uint64_t shared_memory_needed(const base::Variables& variables, std::uint32_t ranks) {
    std::uint64_t segment = 4'194'312;
    const auto set = text(variables, "OMPI_MCA_btl_vader_segment_size");
    std::from_chars(set.data(), set.data() + set.size(), segment);
    constexpr std::uint64_t at_once = 256 << 10; // 70 to 80 kB were seen
    return segment + segment / 20 + ranks * at_once;
}

} // namespace ranktune::comm::mpi
