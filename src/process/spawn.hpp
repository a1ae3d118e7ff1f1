// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starting a program from a process that has MPI, threads and GPUs in it.

#include <sys/types.h>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "ranktune/base/error.hpp"
#include "storage/file_descriptor.hpp"

namespace ranktune::process {

/// A folder, a file, a pipe or a process of ranktune's own: the outcome `unstarted`. No configuration can be the cause.
class SetUpError : public base::Error {
  public:
    using Error::Error;
    SetUpError(const std::string& what, int error)
        : Error(what + ": " + std::error_code(error, std::generic_category()).message()) {}
};

/// The path of a program, as execvp finds it along the PATH of the environment ("NAME=value" each) that it will have:
/// `name` itself when it has a slash; empty: not found.
[[nodiscard]] std::string find_program(const std::string& name, const std::vector<std::string>& environment);

/// What execve takes: a pointer to each text, which the texts keep, and a null pointer. execve changes none of them.
[[nodiscard]] std::vector<char*> exec_pointers(const std::vector<std::string>& texts);

/// What becomes of the new process's descriptors; everything else is closed in it.
struct SpawnDescriptors {
    int in = -1; ///< 0
    int out = -1;
    int error = -1;
    int control = -1; ///< trainables::control_descriptor
};

/// Starts `words` (the program and its arguments) and returns its process id, which is also that of its new process
/// group. The program has no signal blocked, handled or ignored, and gets KILL when the calling *thread* ends
/// (`dies_with_thread`). Throws base::Error in words for the user: not found, not executable, no such directory.
///
/// Neither fork (it would copy memory that MPI or a GPU has pinned) nor posix_spawn (it cannot ask for a death signal),
/// but vfork, which is what posix_spawn uses: the new process borrows the memory of this thread, which sleeps, until it
/// is the program.
[[nodiscard]] pid_t spawn(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                          const std::string& directory, const SpawnDescriptors& descriptors,
                          bool dies_with_thread = true);

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

} // namespace ranktune::process
