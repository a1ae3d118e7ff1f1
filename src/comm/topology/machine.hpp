// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cores of a node as a value, and the calls that read and bind the real ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::comm {

/// Logical processors (hardware threads), numbered by the operating system; ascending, without duplicates.
using CpuSet = std::vector<std::uint32_t>;

/// "0-3,8"; empty for none.
[[nodiscard]] std::string cpu_text(const CpuSet& cpus);
/// Parses the text of `cpu_text`; skips anything that is not a number or range.
[[nodiscard]] CpuSet cpus_of(std::string_view text);

struct Core {
    CpuSet cpus; ///< its hardware threads
    std::uint32_t domain = 0;
    static void fields(auto&& each, auto& r) { each(r.cpus, r.domain); }
    friend bool operator==(const Core&, const Core&) = default;
};

/// The cores of one node, grouped by NUMA domain. Empty: unknown.
struct Machine {
    std::vector<Core> cores;
    static void fields(auto&& each, auto& r) { each(r.cores); }
    friend bool operator==(const Machine&, const Machine&) = default;
};

/// All cores of this node as hwloc finds them, whether or not this process may use them.
[[nodiscard]] Machine read_machine();
/// The affinity mask of this process.
[[nodiscard]] CpuSet granted_cpus();
/// Binds all threads of this process and later children to `cpus`. False: the system refuses.
[[nodiscard]] bool bind_process(const CpuSet& cpus);

} // namespace ranktune::comm
