// SPDX-License-Identifier: Apache-2.0
// Which device a rank takes, and what `ranktune doctor` says about GPUs. Needs no CUDA.

#include "device/module.hpp"
#include "cli/checks/gpu_checks.hpp"
#include "support/catch.hpp"

namespace module_test {

using namespace ranktune;

std::optional<int> number_of(std::string_view name, std::optional<std::string_view> visible,
                             const std::vector<device::DeviceFacts>& devices, const device::Survey& survey = {}) {
    return device::find_granted(name, survey, visible, devices).number;
}

namespace {

std::vector<device::DeviceFacts> three_devices() {
    return {{"A", "GPU-aa11", "0:1", 1, 9, 0}, {"B", "GPU-aa22", "0:2", 1, 9, 0}, {"C", "GPU-bb33", "0:3", 1, 9, 0}};
}

cli::GpuFindings healthy() {
    cli::GpuFindings found;
    found.built_with = "CUDA 13.0, NCCL 2.28.9";
    found.libraries = {13000, 13010, 13000, 22809};
    found.visible = {{"NVIDIA H200", "GPU-5c", "0:1", 141ULL << 30U, 9, 0}};
    found.survey.driver = "580.65.06";
    found.survey.gpus = {{"NVIDIA H200", "GPU-5c", 1ULL << 30U, 0, 5, 16, 16, 18, false, false}};
    found.network.interfaces = {"eth0"};
    return found;
}

const cli::Check& named(const std::vector<cli::Check>& checks, const std::string& name) {
    for (const auto& check : checks)
        if (check.name == name) return check;
    FAIL("no check " << name);
    return checks.front();
}

} // namespace

TEST_CASE("a granted name is a position in CUDA_VISIBLE_DEVICES where that is set", "[device]") {
    CHECK(number_of("2", "0,2,3", three_devices()) == 1);
    CHECK(number_of("0", "0,2,3", three_devices()) == 0);
    CHECK(number_of("1", "0,2,3", three_devices()) == std::nullopt);
    CHECK(number_of("MIG-7", "MIG-5,MIG-7", {three_devices()[0], three_devices()[1]}) == 1);
    CHECK(number_of("3", "0,1,2,3", three_devices()) == std::nullopt); // the fourth of three
}

TEST_CASE("a granted name is the device's own number or UUID otherwise", "[device]") {
    CHECK(number_of("2", std::nullopt, three_devices()) == 2);
    CHECK(number_of("3", std::nullopt, three_devices()) == std::nullopt);
    CHECK(number_of("-1", std::nullopt, three_devices()) == std::nullopt);
    CHECK(number_of("GPU-bb", std::nullopt, three_devices()) == 2);
    CHECK(number_of("GPU-aa", std::nullopt, three_devices()) == std::nullopt); // two fit
    CHECK(number_of("GPU-aa22", "1,0", three_devices()) == 1);                 // facts are in the order of the list
}

namespace {

device::SurveyedGpu gpu_at(const std::string& uuid, const std::string& bus, std::vector<std::string> linked = {}) {
    device::SurveyedGpu gpu;
    gpu.uuid = uuid;
    gpu.bus = bus;
    gpu.linked = std::move(linked);
    return gpu;
}

} // namespace

TEST_CASE("a library that initialised CUDA early does not give a rank another rank's GPU", "[device]") {
    device::Survey survey;
    survey.gpus = {gpu_at("GPU-aa11", "1"), gpu_at("GPU-aa22", "2"), gpu_at("GPU-bb33", "3")};
    const auto all = three_devices();
    // Narrowed to one GPU, but CUDA had read the whole list before.
    CHECK(number_of("1", "1", all, survey) == 1);
    CHECK(number_of("2", "2", all, survey) == 2);
    CHECK(number_of("GPU-bb33", "GPU-bb33", all, survey) == 2);
    const auto blind = device::find_granted("1", {}, "1", all);
    CHECK_FALSE(blind.number);
    CHECK(
        blind.why.starts_with("this rank was granted the GPU 1, but CUDA shows this process GPU-aa11, GPU-aa22, "
                              "GPU-bb33 (CUDA_VISIBLE_DEVICES=1): another library, such as an MPI with CUDA, "));
    CHECK(number_of("GPU-bb33", "GPU-bb33", all) == 2);
    // CUDA had read "0,7", of which it takes the first alone.
    CHECK(number_of("7", "7", {all[0]}, survey) == std::nullopt);
    CHECK(device::find_granted("7", survey, "7", {all[0]}).why ==
          "this rank was granted the GPU 7, but CUDA shows this process GPU-aa11 (CUDA_VISIBLE_DEVICES=7); ranktune "
          "doctor on that node shows what there is");
}

TEST_CASE("a GPU that only the driver or only CUDA counts moves no rank to another one", "[device]") {
    device::Survey survey; // the first one is too old for CUDA
    survey.gpus = {gpu_at("GPU-0000", "0"), gpu_at("GPU-aa11", "1"), gpu_at("GPU-aa22", "2")};
    CHECK(number_of("0", "0", {three_devices()[0]}, survey) == 0);
    survey.gpus = {gpu_at("GPU-9999", "9")}; // of another machine
    CHECK(number_of("1", "0,1,2", three_devices(), survey) == 1);
    CHECK(number_of("2", "2", {three_devices()[2]}, survey) == 0);
}

TEST_CASE("the GPUs of a rank are named by UUID", "[device]") {
    device::Survey survey;
    survey.gpus = {gpu_at("GPU-aa11", "1"), gpu_at("GPU-aa22", "2")};
    CHECK(device::place_of({"1"}, survey) == device::GpuPlace{"GPU-aa22", 0, ""});
    CHECK(device::place_of({"GPU-aa1"}, survey).uuid == "GPU-aa11");
    CHECK(device::place_of({"0", "1"}, survey).uuid == "GPU-aa11,GPU-aa22");
    CHECK(device::place_of({"2"}, survey) == device::GpuPlace{}); // the driver does not show it
    CHECK(device::place_of({"MIG-7"}, survey) == device::GpuPlace{});
    CHECK(device::place_of({"0"}, {}) == device::GpuPlace{});
}

TEST_CASE("GPUs that reach each other over NVLink form an island, where a node has several", "[device]") {
    device::Survey pairs; // 0-2 and 1-3 are linked; one end may not say so
    pairs.gpus = {gpu_at("a", "1", {"3"}), gpu_at("b", "2", {"4"}), gpu_at("c", "3"), gpu_at("d", "4", {"2"})};
    const auto island = [](const device::Survey& survey, const std::string& name) {
        return place_of({name}, survey).island;
    };
    CHECK(island(pairs, "0") == 1);
    CHECK(island(pairs, "1") == 2);
    CHECK(island(pairs, "2") == 1);
    CHECK(island(pairs, "3") == 2);
    device::Survey chain = pairs; // a ring of links joins all
    chain.gpus[2].linked = {"2"};
    CHECK(island(chain, "3") == 0);
    device::Survey switched; // all links end at a switch
    switched.gpus = {gpu_at("a", "1", {"9", "10"}), gpu_at("b", "2", {"9", "10"}), gpu_at("c", "3", {"10"})};
    CHECK(island(switched, "2") == 0);
    device::Survey unlinked;
    unlinked.gpus = {gpu_at("a", "1"), gpu_at("b", "2")};
    CHECK(island(unlinked, "1") == 0);
    unlinked.gpus[1].fabric = "00ff-1";
    CHECK(device::place_of({"1"}, unlinked).fabric == "00ff-1");
}

TEST_CASE("versions as NVIDIA writes them", "[device]") {
    CHECK(device::version_text(13000) == "13.0");
    CHECK(device::version_text(12080) == "12.8");
    CHECK(device::nccl_version_text(22809) == "2.28.9");
}

TEST_CASE("doctor finds nothing wrong with a healthy GPU", "[device]") {
    const auto checks = cli::gpu_checks(healthy());
    for (const auto& check : checks) CHECK(check.state == cli::Check::State::good);
    CHECK(named(checks, "cuda").text ==
          "CUDA 13.0, cuBLAS 13.0; the driver supports CUDA 13.1; 1 GPU can be used from here");
    CHECK(named(checks, "gpu 0").text == "NVIDIA H200, 0 B of 1.1 GB used, GPU-5c, PCIe 5 x16, 18 NVLinks");
}

TEST_CASE("doctor says how to mend GPUs that CUDA cannot use", "[device]") {
    auto found = healthy();
    found.why = "no CUDA device: the NVIDIA driver supports CUDA up to 12.4";
    found.visible.clear();
    CHECK(named(cli::gpu_checks(found), "cuda").state == cli::Check::State::wrong);
    CHECK(named(cli::gpu_checks(found), "cuda").mend == found.why);
    found.survey = {"this machine has no NVIDIA driver", "", {}};
    CHECK(named(cli::gpu_checks(found), "cuda").state == cli::Check::State::good); // a login node
}

TEST_CASE("doctor finds names of GPUs that the driver does not show", "[device]") {
    auto found = healthy();
    found.named_by = "CUDA_VISIBLE_DEVICES=0,GPU-5c,MIG-7,1";
    found.named = {"0", "GPU-5c", "MIG-7", "1"};
    CHECK(named(cli::gpu_checks(found), "gpus named").text == found.named_by + ": the driver shows 1 of 4 not");
    found.survey = {"this machine has no NVIDIA driver", "", {}};
    found.named = {"0"};
    CHECK(named(cli::gpu_checks(found), "gpus named").state == cli::Check::State::wrong);
    CHECK(named(cli::gpu_checks(found), "gpus named").text == found.named_by + ": the driver shows no GPU");
    const auto counts = [&] {
        return std::ranges::count_if(cli::gpu_checks(found),
                                     [](const auto& check) { return check.name == "gpus named"; });
    };
    found.other_driver = true;
    CHECK(counts() == 0);
    found = healthy();
    found.named = {"0", "GPU-5c"};
    CHECK(counts() == 0);
}

TEST_CASE("doctor notes a narrow link, an exclusive GPU, an old NCCL, and a build without CUDA", "[device]") {
    auto found = healthy();
    found.survey.gpus[0].pcie_width = 4;
    CHECK(named(cli::gpu_checks(found), "gpu 0").mend.find("4 lanes of 16") != std::string::npos);
    found.survey.gpus[0] = healthy().survey.gpus[0];
    found.survey.gpus[0].exclusive = true;
    CHECK(named(cli::gpu_checks(found), "gpu 0").state == cli::Check::State::note);
    found.libraries.nccl = 21304;
    CHECK(named(cli::gpu_checks(found), "nccl").state == cli::Check::State::wrong);
    found.built_with.clear();
    found.why = "this build has no CUDA (meson -Dcuda=enabled)";
    CHECK(named(cli::gpu_checks(found), "cuda").state == cli::Check::State::note);
    CHECK(named(cli::gpu_checks(found), "cuda").text == found.why);
}

TEST_CASE("doctor says that float32 runs without TF32, what to set, and what the environment decides", "[device]") {
    auto found = healthy();
    CHECK(named(cli::gpu_checks(found), "float32").text.find("without TF32 by default") != std::string::npos);
    CHECK(named(cli::gpu_checks(found), "float32").text.find("precision = \"tf32\"") != std::string::npos);
    found.tf32_override = "0";
    CHECK(named(cli::gpu_checks(found), "float32").state == cli::Check::State::note);
    found.tf32_override = "1";
    CHECK(named(cli::gpu_checks(found), "float32").text.find("in TF32, unasked") != std::string::npos);
    found.visible[0].major = 7; // has no TF32
    CHECK(std::ranges::none_of(cli::gpu_checks(found), [](const auto& check) { return check.name == "float32"; }));
}

TEST_CASE("doctor says which networks NCCL has between nodes", "[device]") {
    auto found = healthy();
    found.network = {{"docker0", "eth0", "eth1", "ib0"}, {"mlx5_0"}, "", false};
    const auto said = [&] { return named(cli::gpu_checks(found), "nccl network"); };
    CHECK(said().text == "mlx5_0 (InfiniBand or RoCE); sockets over ib0, eth0, eth1");
    found.network.without_infiniband = true;
    for (const auto& [wanted, sockets] :
         std::vector<std::pair<std::string, std::string>>{{"eth", "eth0, eth1"},
                                                          {"=eth1", "eth1"},
                                                          {"=eth", "none"},
                                                          {"ib,eth1:5000", "ib0, eth1"},
                                                          {"^docker,ib", "eth0, eth1"},
                                                          {"^=eth0", "ib0, docker0, eth1"},
                                                          {"eno", "none"}}) {
        CAPTURE(wanted);
        found.network.wanted = wanted;
        if (sockets != "none") {
            CHECK(said().text == "sockets over " + sockets);
            continue;
        }
        CHECK(said().state == cli::Check::State::wrong);
        CHECK(said().mend ==
              "NCCL_SOCKET_IFNAME=" + wanted + " fits none of docker0, eth0, eth1, ib0: name one of them, or unset it");
    }
    found.network = {};
    CHECK(said().state == cli::Check::State::note);
}

} // namespace module_test
