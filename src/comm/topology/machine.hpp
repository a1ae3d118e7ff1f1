// SPDX-License-Identifier: Apache-2.0
#pragma once
// The cores of a node as a value, and the two calls that touch the real ones.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::comm {

/// Logical processors (hardware threads) by the numbers of the operating system, ascending, none twice.
using CpuSet = std::vector<std::uint32_t>;

/// "0-3,8"; empty for none.
[[nodiscard]] std::string cpu_text(const CpuSet& cpus);
/// The same back. What is no number or range is left out.
[[nodiscard]] CpuSet cpus_of(std::string_view text);

struct Core {
    CpuSet cpus; ///< its hardware threads
    std::uint32_t domain = 0;
    friend bool operator==(const Core&, const Core&) = default;
};

/// The cores of one node, those of a NUMA domain side by side. Without any: not known.
struct Machine {
    std::vector<Core> cores;
    friend bool operator==(const Machine&, const Machine&) = default;
};

/// One line, for sending: "0,4:0;1,5:0". And back; what cannot be read gives an unknown machine.
[[nodiscard]] std::string encode(const Machine& machine);
[[nodiscard]] Machine decode_machine(std::string_view text);

/// All cores of this node, whether or not this process may use them, as hwloc finds them.
[[nodiscard]] Machine read_machine();
/// What this process may use: its affinity mask.
[[nodiscard]] CpuSet granted_cpus();
/// From now on all threads of this process, and what they start, run there. False: the system refuses.
[[nodiscard]] bool bind_process(const CpuSet& cpus);

} // namespace ranktune::comm
