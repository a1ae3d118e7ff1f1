// SPDX-License-Identifier: Apache-2.0
#include "process/program/environment.hpp"

#include <algorithm>

#include "ranktune/space/value.hpp"
#include "ranktune/study/command_template.hpp"

#include <nlohmann/json.hpp>

namespace ranktune::process {
namespace {

/// What launchers set for the processes that they start, and no settings of users: MPI_HOME, OMPI_CC, MPICH_GPU_...
/// and I_MPI_ROOT are for the program. Open MPI, its run-times and PMIx (and what its libraries for fabrics set);
/// MPICH's Hydra, MVAPICH2, Intel MPI, Platform MPI; Cray, jsrun, Flux; Slurm; ranktune.
constexpr std::string_view launcher_patterns[] = {"OMPI_COMM_WORLD_*",
                                                  "OMPI_MCA_*",
                                                  "OMPI_APP_CTX_NUM_PROCS",
                                                  "OMPI_ARGV",
                                                  "OMPI_COMMAND",
                                                  "OMPI_FILE_LOCATION",
                                                  "OMPI_FIRST_RANKS",
                                                  "OMPI_NUM_APP_CTX",
                                                  "OMPI_UNIVERSE_SIZE",
                                                  "ORTE_*",
                                                  "PRTE_*",
                                                  "PMIX_*",
                                                  "IPATH_NO_BACKTRACE",
                                                  "HFI_NO_BACKTRACE", //
                                                  "PMI_*",
                                                  "PMI2_*",
                                                  "HYDI_*",
                                                  "MPI_LOCALRANKID",
                                                  "MPI_LOCALNRANKS",
                                                  "MPI_RANKID",
                                                  "MPI_NRANKS",
                                                  "MPIR_CVAR_CH3_INTERFACE_HOSTNAME*",
                                                  "MPICH_INTERFACE_HOSTNAME*",
                                                  "MPIEXEC_RANK",
                                                  "MPISPAWN_*",
                                                  "MPIRUN_RANK",
                                                  "MPIRUN_NPROCS",
                                                  "MPIRUN_HOST",
                                                  "MPIRUN_PORT",
                                                  "MPIRUN_ID",
                                                  "MPIRUN_MPD",
                                                  "MPIRUN_PROCESSES",
                                                  "MV2_COMM_WORLD_*",
                                                  "MVP_COMM_WORLD_*",
                                                  "I_MPI_HYDRA_*",
                                                  "I_MPI_MPIRUN",
                                                  "I_MPI_PIN_INFO",
                                                  "I_MPI_PIN_MAPPING", //
                                                  "PALS_*",
                                                  "ALPS_*",
                                                  "JSM_NAMESPACE_*",
                                                  "FLUX_TASK_*", //
                                                  "SLURM_*",
                                                  "SLURMD_*",
                                                  "SRUN_*",
                                                  "SBATCH_CPU_BIND*",
                                                  "SBATCH_MEM_BIND*",
                                                  "RANKTUNE_*"};

/// Where Slurm's commands find their settings: of the machine, not of a job.
constexpr std::string_view slurm_settings = "SLURM_CONF";

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

bool matches(std::string_view name, std::string_view pattern) {
    if (!pattern.ends_with('*')) return name == pattern;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

class Variables {
  public:
    void set(std::string_view name, const std::string& value) {
        std::string entry = std::string(name) + "=" + value;
        const auto same = std::ranges::find_if(entries_, [&](const auto& e) { return name_of(e) == name; });
        if (same == entries_.end())
            entries_.push_back(std::move(entry));
        else
            *same = std::move(entry);
    }
    void set_default(std::string_view name, const std::string& value) {
        const auto has_name = [&](const auto& entry) { return name_of(entry) == name; };
        if (std::ranges::none_of(entries_, has_name)) set(name, value);
    }
    /// Prepends to a colon-separated list.
    void prepend(std::string_view name, const std::string& value) {
        const auto same = std::ranges::find_if(entries_, [&](const auto& e) { return name_of(e) == name; });
        const std::string before = same == entries_.end() ? "" : same->substr(name.size() + 1);
        set(name, before.empty() ? value : value + ":" + before);
    }
    template <class Number>
    void number(std::string_view name, Number value) {
        set(name, std::to_string(value));
    }
    void unset(std::string_view name) {
        std::erase_if(entries_, [&](const auto& e) { return name_of(e) == name; });
    }
    void change(const std::vector<VariableChange>& changes) {
        for (const auto& [name, value] : changes) value ? set(name, *value) : unset(name);
    }
    std::vector<std::string> take() { return std::move(entries_); }

  private:
    std::vector<std::string> entries_;
};

std::vector<VariableChange> torchrun_variables(const ProgramFacts& facts) {
    const GroupPlace& place = facts.place;
    const auto text = [](auto number) { return std::to_string(number); };
    return {{"RANK", text(place.rank)},
            {"WORLD_SIZE", text(place.size)},
            {"LOCAL_RANK", text(place.local_rank)},
            {"LOCAL_WORLD_SIZE", text(place.local_size)},
            {"GROUP_RANK", text(place.node)},
            {"GROUP_WORLD_SIZE", text(place.nodes)},
            {"ROLE_RANK", text(place.rank)},
            {"ROLE_WORLD_SIZE", text(place.size)},
            {"ROLE_NAME", "default"},
            {"MASTER_ADDR", facts.master_address},
            {"MASTER_PORT", text(facts.master_port)},
            {"TORCHELASTIC_RUN_ID", facts.run_id},
            {"TORCHELASTIC_RESTART_COUNT", text(facts.attempt.value() - 1)},
            {"TORCHELASTIC_MAX_RESTARTS", "0"}};
}

/// {"text": {"path": "/d/corpus.bin", "dtype": "uint16", "tokens": 2048}}
std::string data_json(std::span<const study::DataFile> files) {
    nlohmann::ordered_json json;
    for (const study::DataFile& file : files) {
        auto& entry = json[file.name];
        for (const study::DataPart& part : file.parts)
            entry["mix"].push_back({{"source", part.source}, {"weight", part.weight}, {"from", part.from}});
        if (file.is_mixture()) continue;
        entry["path"] = file.path;
        if (!file.dtype.empty()) entry["dtype"] = file.dtype;
        if (!file.shape.empty()) entry["shape"] = file.shape;
        if (file.tokens > 0) entry["tokens"] = file.tokens;
        if (!file.group.empty()) entry["group"] = file.group;
        if (!file.shuffle.empty()) entry["shuffle"] = file.shuffle;
        if (file.shuffle_memory > 0) entry["shuffle_memory"] = file.shuffle_memory;
        if (file.drop_last) entry["drop_last"] = true;
    }
    return json.dump();
}

void set_own(Variables& out, const ProgramFacts& facts) {
    out.number("RANKTUNE_FD", control_descriptor);
    out.set("RANKTUNE_STUDY", facts.study);
    out.set("RANKTUNE_STUDY_DIR", facts.study_directory);
    if (facts.trial) out.number("RANKTUNE_TRIAL", facts.trial->value());
    out.number("RANKTUNE_ATTEMPT", facts.attempt.value());
    if (!facts.config_path.empty()) out.set("RANKTUNE_CONFIG", facts.config_path);
    out.number("RANKTUNE_SEED", facts.seed);
    out.number("RANKTUNE_ITERATIONS", facts.iterations);
    out.number("RANKTUNE_ITERATION", facts.iteration);
    if (facts.checkpoint) out.set("RANKTUNE_CHECKPOINT", *facts.checkpoint);
    out.set("RANKTUNE_CHECKPOINT_DIR", facts.checkpoint_directory);
    if (!facts.data.empty()) out.set("RANKTUNE_DATA", data_json(facts.data));
    out.number("RANKTUNE_CPUS", facts.cpus_per_rank);
    out.set("RANKTUNE_METRIC", facts.objective.metric);
    out.set("RANKTUNE_MODE", std::string(study::name(facts.objective.mode)));
}

/// Trials share the GPU. ranktune.py tells PyTorch; JAX reads a variable, whose default is three quarters of a GPU.
void limit_gpu_memory(Variables& out, double share) {
    constexpr double default_of_jax = 0.75;
    out.set("RANKTUNE_GPU_SHARE", space::float_text(share));
    out.set_default("XLA_PYTHON_CLIENT_MEM_FRACTION", space::float_text(default_of_jax * share));
    out.set_default("TF_FORCE_GPU_ALLOW_GROWTH", "true"); // TensorFlow would take all of it
}

/// Rank 0 is an ordinary worker: there is no chief and no parameter server.
std::string tf_config(const ProgramFacts& facts) {
    nlohmann::ordered_json json;
    json["cluster"]["worker"] = facts.addresses;
    json["task"] = {{"type", "worker"}, {"index", facts.place.rank}};
    return json.dump();
}

} // namespace

GroupPlace place_in_group(std::span<const std::uint64_t> node_of_rank, int rank) {
    GroupPlace place;
    place.rank = rank;
    place.size = static_cast<int>(node_of_rank.size());
    place.local_size = 0;
    const std::uint64_t own = node_of_rank[static_cast<std::size_t>(rank)];
    std::vector<std::uint64_t> nodes;
    for (std::size_t r = 0; r < node_of_rank.size(); ++r) {
        if (std::ranges::find(nodes, node_of_rank[r]) == nodes.end()) nodes.push_back(node_of_rank[r]);
        if (node_of_rank[r] != own) continue;
        ++place.local_size;
        if (static_cast<int>(r) < rank) ++place.local_rank;
    }
    place.nodes = static_cast<int>(nodes.size());
    place.node = static_cast<int>(std::ranges::find(nodes, own) - nodes.begin());
    return place;
}

std::vector<VariableChange> gpu_variables(const std::string& list) {
    if (list.empty()) {
        // For CUDA an empty list means no device. For the others it means all, and a device that does not exist means
        // none.
        return {{"CUDA_VISIBLE_DEVICES", ""},
                {"HIP_VISIBLE_DEVICES", "-1"},
                {"ROCR_VISIBLE_DEVICES", "-1"},
                {"GPU_DEVICE_ORDINAL", "-1"},
                {"ZE_AFFINITY_MASK", "-1"}};
    }
    // HIP and AMD's OpenCL number only the devices that ROCR_VISIBLE_DEVICES leaves: setting both would filter twice.
    // The last two accept only numbers.
    const bool numbers = list.find_first_not_of("0123456789,") == std::string::npos;
    const auto numbered = numbers ? std::optional(list) : std::nullopt;
    return {{"CUDA_VISIBLE_DEVICES", list},
            {"HIP_VISIBLE_DEVICES", list},
            {"ROCR_VISIBLE_DEVICES", std::nullopt},
            {"GPU_DEVICE_ORDINAL", numbered},
            {"ZE_AFFINITY_MASK", numbered}};
}

bool is_launcher_variable(std::string_view name, std::string_view value) {
    if (name == "ENVIRONMENT") return value == "BATCH";
    if (name == slurm_settings) return false;
    return std::ranges::any_of(launcher_patterns, [&](std::string_view pattern) { return matches(name, pattern); });
}

std::vector<std::string> launcher_variables() {
    std::vector<std::string> list(std::begin(launcher_patterns), std::end(launcher_patterns));
    list.push_back("ENVIRONMENT=BATCH");
    return list;
}

std::vector<std::string> program_environment(std::span<const std::string> inherited, const study::ProgramSpec& program,
                                             const ProgramFacts& facts) {
    Variables out;
    out.set("PYTHONUNBUFFERED", "1"); // printed text is in the log at once, also before a crash
    for (const std::string& variable : inherited) {
        const std::string_view name = name_of(variable);
        const bool kept =
            std::ranges::any_of(program.keep_env, [&](const auto& pattern) { return matches(name, pattern); });
        if (variable.size() == name.size()) continue;
        const std::string value = variable.substr(name.size() + 1);
        if (kept || !is_launcher_variable(name, value)) out.set(name, value);
    }
    // As if the program worked there: `python3 -m train`.
    if (study::works_apart(program)) out.prepend("PYTHONPATH", study::common_directory(program));
    if (!facts.python_path.empty()) out.prepend("PYTHONPATH", facts.python_path);
    if (facts.visible_devices) out.change(gpu_variables(*facts.visible_devices));
    if (facts.gpu_share < 1.0) limit_gpu_memory(out, facts.gpu_share);
    auto torchrun = torchrun_variables(facts);
    if (!program.launcher_variables) // also without those of an outer torchrun
        for (auto& [name, value] : torchrun) value.reset();
    out.change(torchrun);
    out.number("OMP_NUM_THREADS", facts.cpus_per_rank);
    set_own(out, facts);
    if (program.keeps_for_tasks()) out.set("RANKTUNE_KEPT", "1");
    if (program.tf_config) out.set("TF_CONFIG", tf_config(facts));
    if (program.jax) {
        out.set("JAX_COORDINATOR_ADDRESS", facts.master_address + ":" + std::to_string(facts.master_port));
        out.number("JAX_NUM_PROCESSES", facts.place.size);
        out.number("JAX_PROCESS_ID", facts.place.rank);
    }
    for (const auto& [name, value] : program.env) {
        const bool braces = value.starts_with('{') && value.ends_with('}') && value.size() > 2;
        const auto* filling = braces ? facts.configuration.find(value.substr(1, value.size() - 2)) : nullptr;
        out.set(name, filling != nullptr
                          ? filling->text()
                          : study::fill_in_trial(value, facts.trial.value_or(base::TrialId{}), facts.trial_folder));
    }
    return out.take();
}

} // namespace ranktune::process
