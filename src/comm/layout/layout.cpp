// SPDX-License-Identifier: Apache-2.0
#include "comm/layout/layout.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include "base/json_text.hpp"
#include "comm/layout/binding.hpp"
#include "comm/mpi/environment.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/schema.hpp"
#include "slurm/allocation.hpp"
#include "slurm/gpus.hpp"
#include "study/printed_values.hpp"

namespace ranktune::comm {

const std::vector<std::string>& Layout::gpus_of(base::Rank rank) const {
    static const std::vector<std::string> none;
    return rank.value() < gpus.size() ? gpus[rank.value()] : none;
}

void Layout::share_gpus(std::uint32_t ranks_per_gpu) {
    slurm::GpuShares shares = slurm::share_gpus(seen, ranks_per_gpu);
    gpus = std::move(shares.by_rank);
    gpu_names = std::move(shares.identities);
    job_has_gpus = !shares.none_granted;
    gpu_problem = std::move(shares.problem);
}

std::size_t Layout::gpu_count() const {
    std::set<std::pair<std::string, std::string>> counted; // node and name: ranks may share a GPU
    std::size_t count = 0;
    for (std::size_t r = 0; r < gpus.size(); ++r) {
        const bool named = r < gpu_names.size() && !gpu_names[r].empty();
        if (!named || counted.emplace(nodes[r], gpu_names[r]).second) count += gpus[r].size();
    }
    return count;
}

std::uint32_t gpus_of_machine(const std::string& devices) {
    std::uint32_t count = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator file(devices, error), end; !error && file != end; file.increment(error)) {
        const std::string name = file->path().filename().string();
        constexpr std::string_view driver = "nvidia";
        const bool numbered =
            name.size() > driver.size() && name.find_first_not_of("0123456789", driver.size()) == std::string::npos;
        if (numbered && name.starts_with(driver)) ++count;
    }
    return count;
}

std::size_t Layout::node_count() const { return std::set<std::string>(nodes.begin(), nodes.end()).size(); }

namespace {

/// What each rank tells the others of itself.
struct Told {
    slurm::RankOnNode rank;
    std::string granted;   ///< cpu_text, which is short
    bool own_cpus = false; ///< they belong to this job alone
    std::string switches;
    std::string nccl_host;
    process::ProcessId process;
    static void fields(auto&& each, auto& r) {
        each(r.rank, r.granted, r.own_cpus, r.switches, r.nccl_host, r.process);
    }
};

/// By rank; a default value of a program of another version, whose greeting will tell. Collective over the world.
template <class T>
std::vector<T> gathered(const comm::mpi::Environment& environment, const T& mine) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    study::put(out, mine);
    std::vector<T> all;
    for (const std::string& text :
         comm::mpi::gather_texts(environment, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
        study::Decoder in(std::as_bytes(std::span(text)));
        try {
            all.push_back(study::decoded<T>(in));
        } catch (const base::FormatError&) {
            all.emplace_back();
        }
    }
    return all;
}

} // namespace

Layout survey(const comm::mpi::Environment& environment) {
    const auto variables = process::environment_variables();
    const std::string node = process::host_name();
    // Without task confinement Slurm lets tasks use the cores of other jobs.
    const comm::CpuSet granted = comm::granted_cpus();
    const auto own = slurm::cpus_on_node(variables);
    const Told mine{{node, slurm::visible_gpus(variables, gpus_of_machine("/dev"))},
                    comm::cpu_text(granted),
                    own && granted.size() <= *own,
                    slurm::switches_above(variables, node),
                    process::environment_variable("NCCL_HOSTID"),
                    process::this_process()};
    Layout layout;
    layout.own_cpus = true;
    for (Told& told : gathered(environment, mine)) {
        layout.nodes.push_back(told.rank.node);
        layout.granted.push_back(comm::cpus_of(told.granted));
        layout.own_cpus = layout.own_cpus && told.own_cpus;
        layout.switches.push_back(std::move(told.switches));
        layout.processes.push_back(std::move(told.process));
        // What NCCL takes for a node of its own is one here: such ranks may have the same GPU (tests on one card).
        if (!told.nccl_host.empty()) told.rank.node += " (NCCL_HOSTID=" + told.nccl_host + ")";
        slurm::VisibleGpus& gpus = told.rank.gpus;
        if (gpus.identities.size() != gpus.devices.size()) gpus.identities = gpus.devices;
        layout.seen.push_back(std::move(told.rank));
    }
    // One rank of each node describes its cores.
    const auto first = std::ranges::find(layout.nodes, node) - layout.nodes.begin();
    auto machines = gathered(environment, first == environment.rank() ? comm::read_machine() : comm::Machine());
    for (std::size_t r = 0; r < machines.size(); ++r)
        if (!machines[r].cores.empty()) layout.machines.emplace(layout.nodes[r], std::move(machines[r]));
    layout.share_gpus(1);
    return layout;
}

void share_as_head(Layout& layout, const comm::mpi::Environment& environment, std::uint32_t ranks_per_gpu) {
    const std::uint32_t of_head = gathered(environment, ranks_per_gpu).front();
    if (of_head > 1) layout.share_gpus(of_head);
}

namespace {

/// Some trials have GPUs, and others go to workers without one: there must be enough of both.
std::string refusal_of_some(const study::StudySpec& spec, const Layout& layout) {
    std::uint32_t with_gpu = 0;
    for (const auto& gpus : layout.gpus) with_gpu += gpus.empty() ? 0 : 1;
    const auto without_gpu = static_cast<std::uint32_t>(layout.nodes.size()) - 1 - with_gpu;
    const std::uint32_t gpus = spec.max_ranks_per_trial(study::WorkerKind::with_gpu);
    const std::uint32_t ranks = spec.max_ranks_per_trial(study::WorkerKind::without_gpu);
    if (with_gpu < gpus)
        return "resources.gpus: a trial may ask for " + base::counted(gpus, "GPU") + ", and this job has " +
               base::counted(with_gpu, "worker") + " with one" +
               (layout.gpu_problem.empty() ? "" : "\n  " + layout.gpu_problem);
    if (without_gpu < ranks)
        return "resources.gpus: a trial may ask for none, and then for " + base::counted(ranks, "worker") +
               " without a GPU, of which this job has " + std::to_string(without_gpu) +
               "\n  as many workers as there are GPUs have one each: start " + base::counted(ranks, "more worker") +
               " than there are GPUs";
    return {};
}

/// What also has to change where one trial wants more GPUs than all workers have; empty: nothing.
std::string too_few_gpus(const study::StudySpec& spec, const Layout& layout) {
    if (!layout.job_has_gpus) return "\n  or, for trials on cores: resources.gpus=0 resources.ranks=N";
    const std::size_t gpus = layout.gpu_count();
    const std::uint32_t wanted = spec.max_ranks_per_trial();
    if (gpus * spec.resources.ranks_per_gpu() >= wanted) return {};
    return "\n  and a trial may ask for " + base::counted(wanted, "GPU") + ", of which there " +
           (gpus == 1 ? "is 1" : "are " + std::to_string(gpus)) +
           ": let it ask for fewer, resources.gpus=" + std::to_string(gpus);
}

} // namespace

std::string gpu_refusal(const study::StudySpec& spec, const Layout& layout) {
    using study::GpuUse;
    if (spec.resources.gpus == GpuUse::some) return refusal_of_some(spec, layout);
    if (layout.gpu_problem.empty() || spec.resources.gpus == GpuUse::none) return {};
    if (spec.resources.gpus == GpuUse::one_per_rank)
        return std::string("resources.gpus: not every worker has ") +
               (spec.resources.ranks_per_gpu() > 1 ? "its share of a GPU" : "a GPU of its own") + "\n  " +
               layout.gpu_problem + too_few_gpus(spec, layout);
    // The study does not mention GPUs: a C++ trainable may need none, but a program uses every GPU it sees.
    if (!layout.job_has_gpus || !study::runs_programs(spec)) return {};
    return "two trials would use the same GPU\n  " + layout.gpu_problem +
           "\n  or, for programs that use none: resources.gpus = 0";
}

std::string layout_words(const Layout& layout, const std::string& dot, bool uses_gpus) {
    const std::size_t nodes = layout.node_count();
    std::string text = nodes == 1 ? layout.nodes.front() : std::to_string(nodes) + " nodes";
    const std::size_t gpus = uses_gpus ? layout.gpu_count() : 0;
    if (gpus > 0) text += dot + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
    return text;
}

std::string layout_json(const Layout& layout, const Binding& binding) {
    std::vector<std::string> order; // nodes by their first rank
    for (const auto& node : layout.nodes)
        if (std::ranges::find(order, node) == order.end()) order.push_back(node);
    std::string text;
    for (const auto& node : order) {
        std::vector<std::string> ranks;
        std::vector<std::string> gpus;
        std::vector<std::string> cpus;
        std::string switches;
        for (std::size_t r = 0; r < layout.nodes.size(); ++r) {
            if (layout.nodes[r] != node) continue;
            const base::Rank rank(static_cast<std::uint32_t>(r));
            ranks.push_back(std::to_string(r));
            gpus.push_back(base::json_string(base::join(layout.gpus_of(rank), ",")));
            cpus.push_back(base::json_string(comm::cpu_text(cpus_in_use(layout, binding, rank))));
            if (r < layout.switches.size()) switches = layout.switches[r];
        }
        text += (text.empty() ? "" : ",\n    ") + std::string("{\"node\": ") + base::json_string(node) +
                ", \"ranks\": [" + base::join(ranks) + "], \"gpus\": [" + base::join(gpus) + "]";
        if (!layout.granted.empty()) text += ", \"cpus\": [" + base::join(cpus) + "]";
        if (!switches.empty()) text += ", \"switches\": " + base::json_string(switches);
        text += "}";
    }
    return "[" + text + "]";
}

} // namespace ranktune::comm
