// SPDX-License-Identifier: Apache-2.0
#pragma once
// An owned POSIX file descriptor.

#include <unistd.h>

#include "storage/unique_handle.hpp"

namespace ranktune::storage {

struct FileDescriptorTraits {
    using Value = int;
    static constexpr int null() noexcept { return -1; }
    /// Errors of close(2) say nothing that a sync has not said before.
    static void close(int fd) noexcept { ::close(fd); }
};
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

} // namespace ranktune::storage
