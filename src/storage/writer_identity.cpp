// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <fstream>

#include "storage/journal.hpp"

namespace ranktune::storage {

WriterIdentity this_writer() {
    WriterIdentity writer;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) == 0) writer.host = host.data();
    std::ifstream("/proc/sys/kernel/random/boot_id") >> writer.boot_id;
    writer.pid = static_cast<std::uint64_t>(::getpid());
    return writer;
}

} // namespace ranktune::storage
