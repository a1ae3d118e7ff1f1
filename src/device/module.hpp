// SPDX-License-Identifier: Apache-2.0
#pragma once
// The module libranktune-cuda.so: what it exports, and how it is opened. Nothing else is linked to CUDA, so that every
// verb starts on a machine without a driver.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/communicator.hpp"
#include "device/device.hpp"
#include "device/survey.hpp"

namespace ranktune::device {

/// The libraries of the module, as loaded. 13000 means 13.0; 0: unknown or absent.
struct LibraryVersions {
    int cuda_runtime = 0;
    int cuda_driver = 0; ///< the newest CUDA that the driver supports
    int cublas = 0;
    int nccl = 0; ///< 22809 means 2.28.9
};

/// The devices of this process. There is one, which lives until the process ends.
class Runtime {
  public:
    virtual ~Runtime() = default;
    [[nodiscard]] virtual LibraryVersions versions() const = 0;
    /// Why there is no device; empty: there is at least one.
    [[nodiscard]] virtual std::string absence() const = 0;
    [[nodiscard]] virtual std::vector<DeviceFacts> devices() const = 0;
    /// CUDA_VISIBLE_DEVICES when the module was opened; nullopt: it was not set. CUDA may have read another value.
    [[nodiscard]] virtual const std::optional<std::string>& visible() const = 0;
    /// Opens device `number`, or returns it when it is open. Throws DeviceError, UsageError when there is none.
    [[nodiscard]] virtual Accelerator& open(int number) = 0;
    /// Throws UsageError in a build without NCCL.
    [[nodiscard]] virtual CommunicatorId make_id() const = 0;
};

/// The only symbol of the module, `ranktune_cuda_module`. Both sides compare `version` first: the rest is only equal in
/// the same build of ranktune.
struct ModuleEntry {
    const char* version;
    Runtime& (*runtime)();
};

/// "CUDA 13.0, NCCL 2.28.9", as built; empty: this build has no CUDA. Loads nothing.
[[nodiscard]] std::string built_with();

/// The module, or why it cannot be used.
struct Opened {
    Runtime* runtime = nullptr; ///< also set when the libraries work but there is no device
    std::string why;            ///< "this build has no CUDA (...)" or "no CUDA device: ..."; empty: devices are there
};
/// Opens the module; the first call does the work. Not for threads at the same time.
[[nodiscard]] const Opened& open_module();

/// This process cannot use the device that it was to use.
class NoDeviceError : public base::UsageError {
  public:
    using UsageError::UsageError;
};

/// Requires devices: throws NoDeviceError with Opened::why otherwise.
[[nodiscard]] Runtime& require_devices();

/// What stands between the commas of a list in the environment. Views of `list`.
[[nodiscard]] std::vector<std::string_view> items(std::string_view list);

/// Which device of this process a launcher granted, or why there is none.
struct Granted {
    std::optional<int> number;
    std::string why; ///< what stands in the way, and what to do; empty with a number
};
/// Pure. `name`: as CUDA_VISIBLE_DEVICES names it ("1", "GPU-5ca1ab1e"; as for CUDA, a prefix of a UUID is enough if it
/// fits one device alone). The device is found by its UUID, where `survey` shows it: another library, such as an MPI
/// with CUDA, may have initialised CUDA before that variable had the value `visible`. Numbers are those of
/// CUDA_DEVICE_ORDER=PCI_BUS_ID.
[[nodiscard]] Granted find_granted(std::string_view name, const Survey& survey, std::optional<std::string_view> visible,
                                   const std::vector<DeviceFacts>& devices);
/// find_granted for this process. Throws NoDeviceError.
[[nodiscard]] int granted_number(std::string_view name);

/// The share of the memory of its GPU that this process may allocate; 1: all. For devices that are opened later.
/// (LibTorch has an allocator of its own.)
void set_memory_share(double share);
[[nodiscard]] double memory_share();
/// The bytes of `device` that this process may allocate with that share: it leaves 512 MiB of its part, at most a
/// quarter, for what CUDA and its libraries take beside (contexts, kernels, workspaces).
[[nodiscard]] std::uint64_t memory_limit(const DeviceFacts& device);

/// Opens the device that a launcher granted as `name`. Throws NoDeviceError when there is no such device.
[[nodiscard]] Accelerator& open_granted(std::string_view name);

/// What the devices that open_granted has opened say when they do not answer this process any more (DeviceError::lost);
/// empty: they all do, or none was opened. Does not wait. Not for threads at the same time.
[[nodiscard]] std::string sickness();

/// An attempt has ended: frees what libraries keep of its memory on the devices that open_granted has opened. Without
/// that, the next one could be called too large because of it.
void free_caches() noexcept;
/// Frees all that is only kept for later; returns whether something was that no allocation could have freed before: the
/// attempt that found no room deserves another try.
[[nodiscard]] bool relieve() noexcept;

/// 13000 -> "13.0"; 22809 -> "2.28.9" with `nccl`.
[[nodiscard]] std::string version_text(int version);
[[nodiscard]] std::string nccl_version_text(int version);

} // namespace ranktune::device
