// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/gpu_checks.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "process/environment.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {

namespace {

using State = Check::State;

/// ncclConfig_t has a name for the communicator since then.
constexpr int oldest_nccl = 22703;

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
            "NCCL 2.27.3 or newer is needed: load the one that ranktune was built with (" + found.built_with + ")";
    }
    return check;
}

Check gpu_check(std::size_t number, const device::SurveyedGpu& gpu) {
    Check check{fmt::format("gpu {}", number), State::good,
                fmt::format("{}, {} of {} used, {}", gpu.name, report::bytes_text(gpu.used_bytes),
                            report::bytes_text(gpu.memory_bytes), gpu.uuid)};
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

} // namespace

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
    found.mps = mps_runs();
    return found;
}

std::vector<Check> gpu_checks(const GpuFindings& found) {
    std::vector<Check> checks{cuda_check(found)};
    if (found.libraries.cuda_runtime != 0) checks.push_back(nccl_check(found));
    if (!found.survey.driver.empty()) checks.push_back({"gpu driver", State::good, "NVIDIA " + found.survey.driver});
    for (std::size_t i = 0; i < found.survey.gpus.size(); ++i) checks.push_back(gpu_check(i, found.survey.gpus[i]));
    if (!found.survey.gpus.empty()) checks.push_back(mps_check(found.mps));
    return checks;
}

} // namespace ranktune::cli
