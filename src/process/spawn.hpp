// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starts a program from a process with MPI, threads and GPUs.

#include <sys/types.h>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "ranktune/base/error.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {

/// A folder, file, pipe or process of ranktune's own could not be created: the outcome `unstarted`. The trial's
/// configuration cannot be the cause.
class SetUpError : public base::Error {
  public:
    using Error::Error;
    SetUpError(const std::string& what, int error)
        : Error(what + ": " + std::error_code(error, std::generic_category()).message()) {}
};

/// The program that was to be started does not exist.
class NoSuchProgram : public base::Error {
  public:
    using Error::Error;
};

/// The path of a program, searched as by execvp in the PATH of `environment` (entries "NAME=value"): `name` itself when
/// it has a slash; empty: not found.
[[nodiscard]] std::string find_program(const std::string& name, const std::vector<std::string>& environment);

/// The argument form of execve: pointers into `texts`, then a null pointer. execve does not change the texts.
[[nodiscard]] std::vector<char*> exec_pointers(const std::vector<std::string>& texts);

/// The new process's descriptors; all others are closed in it.
struct SpawnDescriptors {
    int in = -1; ///< 0
    int out = -1;
    int error = -1;
    int control = -1; ///< process::control_descriptor
};

/// Starts `words` (the program and its arguments) and returns its process id, which is also that of its new process
/// group. The program has no signal blocked, handled or ignored. With `dies_with_thread` it gets KILL when the calling
/// *thread* ends. Throws base::Error with a message for the user (NoSuchProgram: not in PATH): not executable, no such
/// directory.
///
/// Uses vfork, because fork would copy memory that MPI or a GPU has pinned, and posix_spawn cannot set a death signal.
/// Until execve the new process shares the memory of this thread, which is suspended.
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
