// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pipe whose ends are owned.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "ranktune/base/error.hpp"
#include "storage/file_descriptor.hpp"

namespace ranktune::drivers {

struct Pipe {
    storage::FileDescriptor read;
    storage::FileDescriptor write;
};

/// Both ends are closed on exec. Throws base::IoError.
[[nodiscard]] inline Pipe make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw base::IoError("cannot create", "pipe", {errno, std::generic_category()});
    return {storage::FileDescriptor(ends[0]), storage::FileDescriptor(ends[1])};
}

} // namespace ranktune::drivers
