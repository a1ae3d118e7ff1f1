// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI's life time in this process.

#include <string>

#include "ranktune/base/error.hpp"

namespace ranktune::comm::mpi {

/// Which implementation: decides launcher settings and messages, never what is called.
enum class Library { open_mpi, mpich, other };

/// The first line of MPI_Get_library_version, shortened to name and version ("Open MPI 4.1.4", "MPICH 4.0.2"). May be
/// called before MPI_Init.
[[nodiscard]] std::string library_version();
[[nodiscard]] Library library();

/// Whether this MPI can possibly use PMI-1 or PMI-2 (what `srun --mpi=pmi2` gives). False for an Open MPI for certain
/// without: 5 and later, and those where no component for it is installed among the others. May be called before
/// MPI_Init; looks into the file system.
[[nodiscard]] bool may_speak_pmi();

/// MPI_Init_thread with MPI_THREAD_MULTIPLE and errors returned; MPI_Finalize at the end. One object per process, made
/// first in main and destroyed last. Collective over all processes, both ends.
///
/// MPI_Finalize is not called while an exception unwinds the stack (the other ranks would wait for this one's partners)
/// nor after `abandon`. Blocking signals and checking the launch (launch.hpp) come before.
class Environment {
  public:
    /// Throws base::Error when MPI was initialised already or does not give MPI_THREAD_MULTIPLE.
    Environment();
    ~Environment();
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

    [[nodiscard]] int rank() const { return rank_; } ///< in the world
    [[nodiscard]] int size() const { return size_; } ///< of the world

    /// A peer is dead or the process is about to `_exit`: from now on nothing in this process frees or finalises MPI
    /// objects. Any thread. Cannot be undone.
    static void abandon() noexcept;
    [[nodiscard]] static bool abandoned() noexcept;
    /// Whether MPI objects may be freed now: initialised, not finalised, not abandoned.
    [[nodiscard]] static bool alive() noexcept;

  private:
    int rank_ = 0;
    int size_ = 1;
    int exceptions_at_start_ = 0;
};

} // namespace ranktune::comm::mpi
