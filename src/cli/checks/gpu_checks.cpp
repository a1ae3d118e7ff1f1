// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/gpu_checks.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "process/environment.hpp"
#include "ranktune/base/text.hpp"
#include "report/screens/text.hpp"
#include "slurm/gpus.hpp"

namespace ranktune::cli {

namespace {

using State = Check::State;

/// Communicators that do not block.
constexpr int oldest_nccl = 21400;

Check cuda_check(const GpuFindings& found) {
    const bool gpus = !found.survey.gpus.empty();
    if (found.built_with.empty()) {
        Check check{"cuda", State::good, found.why};
        if (gpus) {
            check.state = State::note;
            check.mend = "programs as trials use the GPUs all the same; built-in trainables compute on the cores";
        }
        return check;
    }
    if (found.libraries.cuda_runtime == 0) // the module cannot be loaded
        return {"cuda", gpus ? State::wrong : State::note, "built with " + found.built_with, found.why};
    Check check{
        "cuda", State::good,
        fmt::format("CUDA {}, cuBLAS {}; the driver supports CUDA {}",
                    device::version_text(found.libraries.cuda_runtime), device::version_text(found.libraries.cublas),
                    found.libraries.cuda_driver == 0 ? "none" : device::version_text(found.libraries.cuda_driver))};
    if (found.why.empty()) {
        check.text +=
            fmt::format("; {} GPU{} can be used from here", found.visible.size(), found.visible.size() == 1 ? "" : "s");
    } else if (gpus) {
        check.state = State::wrong;
        check.mend = found.why;
    } else {
        check.text = found.why + "; built with " + found.built_with;
    }
    return check;
}

Check nccl_check(const GpuFindings& found) {
    if (found.libraries.nccl == 0)
        return {"nccl", State::note, "this build has none, so a trial can use one GPU",
                "meson -Dnccl=enabled, for trials of several"};
    Check check{"nccl", State::good, "NCCL " + device::nccl_version_text(found.libraries.nccl)};
    if (found.libraries.nccl < oldest_nccl) {
        check.state = State::wrong;
        check.mend =
            "NCCL 2.14 or newer is needed: load the one that ranktune was built with (" + found.built_with + ")";
    }
    return check;
}

Check network_check(const NcclNetwork& network) {
    const auto sockets = socket_interfaces(network);
    Check check{"nccl network", State::good, {}};
    if (!network.infiniband.empty() && !network.without_infiniband)
        check.text = base::join(network.infiniband) + " (InfiniBand or RoCE); ";
    check.text += sockets.empty() ? "no interface for sockets" : "sockets over " + base::join(sockets);
    if (sockets.empty() && !network.wanted.empty()) {
        check.state = State::wrong;
        check.mend = "NCCL_SOCKET_IFNAME=" + network.wanted + " fits none of " + base::join(network.interfaces) +
                     ": name one of them, or unset it";
    } else if (sockets.empty()) {
        check.state = State::note;
        check.mend = "no network interface is up: trials on GPUs stay within this node";
    }
    return check;
}

Check gpu_check(std::size_t number, const device::SurveyedGpu& gpu) {
    Check check{fmt::format("gpu {}", number), State::good,
                fmt::format("{}, {} of {} used, {}", gpu.name, base::bytes_text(gpu.used_bytes),
                            base::bytes_text(gpu.memory_bytes), gpu.uuid)};
    if (gpu.pcie_generation > 0) check.text += fmt::format(", PCIe {} x{}", gpu.pcie_generation, gpu.pcie_width);
    check.text += gpu.nvlinks > 0 ? fmt::format(", {} NVLinks", gpu.nvlinks) : ", no NVLink";
    if (gpu.pcie_width > 0 && gpu.pcie_width < gpu.pcie_most_width) {
        check.state = State::note;
        check.mend = fmt::format("its PCIe link has {} lanes of {}: copies are slow; a slot or a riser may be at fault",
                                 gpu.pcie_width, gpu.pcie_most_width);
    }
    if (gpu.exclusive) {
        check.state = State::note;
        check.mend = "one process at a time may use it: trials that share it fail (nvidia-smi -c DEFAULT changes that)";
    }
    if (gpu.partitioned) {
        check.state = State::note;
        check.mend = "it is cut into MIG slices: a process sees one of them, and NCCL does not connect slices";
    }
    return check;
}

/// GPUs that multiply float32 faster in TF32: since the A100, compute capability 8.0. nullopt: none.
std::optional<Check> float32_check(const GpuFindings& found) {
    if (std::ranges::none_of(found.visible, [](const device::DeviceFacts& gpu) { return gpu.major >= 8; }))
        return std::nullopt;
    if (found.tf32_override == "0")
        return Check{"float32", State::note, "NVIDIA_TF32_OVERRIDE=0 keeps all products of float32 from TF32",
                     "unset it where precision = \"tf32\" is to be faster"};
    if (!found.tf32_override.empty())
        return Check{"float32", State::note,
                     "NVIDIA_TF32_OVERRIDE=" + found.tf32_override + " makes cuBLAS multiply float32 in TF32, unasked",
                     "unset it for 23 bits of the fraction in place of 10"};
    return Check{
        "float32", State::good,
        "matrix products of float32 run without TF32 by default (PyTorch's convolutions use it); faster, with 10 bits "
        "of the fraction: "
        "precision = \"tf32\" (mlp, torch), torch.set_float32_matmul_precision(\"high\") in PyTorch"};
}

/// Complains of GPUs that the environment names and the driver does not show; nullopt: it shows all.
std::optional<Check> names_check(const GpuFindings& found) {
    const auto unknown = std::ranges::count_if(found.named, [&](const std::string& name) {
        // (Slices have names that are not in the survey.)
        return !name.starts_with("MIG-") && device::position_of(name, found.survey.gpus) == found.survey.gpus.size();
    });
    if (unknown == 0 || found.other_driver) return std::nullopt;
    return Check{
        "gpus named", State::wrong,
        fmt::format("{}: the driver shows {}", found.named_by,
                    found.survey.gpus.empty() ? "no GPU" : fmt::format("{} of {} not", unknown, found.named.size())),
        "a study that computes on them ends at its first trial: name GPUs that nvidia-smi -L lists, or none"};
}

Check mps_check(bool runs) {
    if (runs) return {"gpu sharing", State::good, "MPS runs: processes on one GPU run at the same time"};
    return {"gpu sharing", State::good,
            "MPS does not run: with resources.gpus = 0.25 trials on a GPU take turns; `nvidia-cuda-mps-control -d` "
            "starts it"};
}

/// Where its daemon listens.
bool mps_runs() {
    const std::string folder = process::environment_variable("CUDA_MPS_PIPE_DIRECTORY");
    return access(((folder.empty() ? "/tmp/nvidia-mps" : folder) + "/control").c_str(), F_OK) == 0;
}

bool is_docker(const std::string& interface) { return interface.starts_with("docker"); }

bool fits(const std::string& interface, std::string_view words) {
    const bool others = words.starts_with('^');
    if (others) words.remove_prefix(1);
    const bool exactly = words.starts_with('=');
    if (exactly) words.remove_prefix(1);
    const auto list = device::items(words);
    const bool named = std::ranges::any_of(list, [&](std::string_view word) {
        word = word.substr(0, word.find(':')); // a port
        return !word.empty() && (exactly ? interface == word : interface.starts_with(word));
    });
    return named != others;
}

NcclNetwork find_network() {
    NcclNetwork network;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) == 0) {
        std::set<std::string> names;
        for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
            const bool internet = each->ifa_addr != nullptr &&
                                  (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6);
            if (internet && (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0)
                names.insert(each->ifa_name);
        }
        freeifaddrs(all);
        network.interfaces.assign(names.begin(), names.end());
    }
    std::error_code none;
    for (const auto& adapter : std::filesystem::directory_iterator("/sys/class/infiniband", none))
        network.infiniband.push_back(adapter.path().filename().string());
    std::ranges::sort(network.infiniband);
    network.wanted = process::environment_variable("NCCL_SOCKET_IFNAME");
    network.without_infiniband = process::environment_variable("NCCL_IB_DISABLE") == "1";
    return network;
}

} // namespace

std::vector<std::string> socket_interfaces(const NcclNetwork& network) {
    std::vector<std::string> found;
    for (const std::string& each : network.interfaces)
        if (network.wanted.empty() ? !is_docker(each) : fits(each, network.wanted)) found.push_back(each);
    std::stable_partition(found.begin(), found.end(), [](const std::string& each) { return each.starts_with("ib"); });
    return found;
}

GpuFindings find_gpus() {
    GpuFindings found;
    found.built_with = device::built_with();
    const device::Opened& opened = device::open_module();
    found.why = opened.why;
    if (opened.runtime != nullptr) {
        found.libraries = opened.runtime->versions();
        if (opened.why.empty()) found.visible = opened.runtime->devices();
    }
    found.survey = device::survey_gpus();
    slurm::VisibleGpus named = slurm::visible_gpus(process::environment_variables());
    found.named_by = std::move(named.by);
    found.named = std::move(named.devices);
    found.other_driver = access("/dev/kfd", F_OK) == 0;
    found.network = find_network();
    found.mps = mps_runs();
    found.tf32_override = process::environment_variable("NVIDIA_TF32_OVERRIDE");
    return found;
}

std::vector<Check> gpu_checks(const GpuFindings& found) {
    std::vector<Check> checks{cuda_check(found)};
    if (found.libraries.cuda_runtime != 0) checks.push_back(nccl_check(found));
    if (!found.survey.driver.empty()) checks.push_back({"gpu driver", State::good, "NVIDIA " + found.survey.driver});
    for (std::size_t i = 0; i < found.survey.gpus.size(); ++i) checks.push_back(gpu_check(i, found.survey.gpus[i]));
    if (auto check = float32_check(found)) checks.push_back(*std::move(check));
    if (auto check = names_check(found)) checks.push_back(*std::move(check));
    if (!found.survey.gpus.empty() && found.libraries.nccl != 0) checks.push_back(network_check(found.network));
    if (!found.survey.gpus.empty()) checks.push_back(mps_check(found.mps));
    return checks;
}

} // namespace ranktune::cli
