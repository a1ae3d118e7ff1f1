// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI's lifetime in this process, and what its ranks tell each other once at the start.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/error.hpp"

namespace ranktune::comm::mpi {

/// The MPI implementation. Affects launcher settings and messages, never which calls are made.
enum class Library { open_mpi, mpich, other };

/// The first line of MPI_Get_library_version, shortened to name and version ("Open MPI 4.1.4", "MPICH 4.0.2"). May be
/// called before MPI_Init.
[[nodiscard]] std::string library_version();
[[nodiscard]] Library library();

/// Whether this MPI may be able to use PMI-1 or PMI-2 (what `srun --mpi=pmi2` offers). False for an Open MPI that
/// certainly cannot: version 5 and later, and installations without a PMI component. May be called before MPI_Init;
/// reads the file system.
[[nodiscard]] bool may_speak_pmi();

/// The bytes of a setting of the library (MPI_T); nothing: it has none of this name.
[[nodiscard]] std::optional<std::string> control_variable(const char* name);

/// MPI_Init_thread with MPI_THREAD_MULTIPLE and errors returned; MPI_Finalize at the end. One object per process, made
/// first in main and destroyed last. Construction and destruction are collective over all processes.
///
/// MPI_Finalize is not called while an exception unwinds the stack (the other ranks would wait for this one's partners)
/// nor after `abandon`. Block signals and check the launch (launch.hpp) before constructing it.
class Environment {
  public:
    /// Throws base::Error when MPI was initialised already or does not give MPI_THREAD_MULTIPLE.
    Environment();
    ~Environment();
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

    [[nodiscard]] int rank() const { return rank_; } ///< in the world
    [[nodiscard]] int size() const { return size_; } ///< of the world

    /// Call when a peer is dead or the process is about to `_exit`: from now on this process neither frees nor
    /// finalises MPI objects. Any thread. Cannot be undone.
    static void abandon() noexcept;
    [[nodiscard]] static bool abandoned() noexcept;
    /// Whether MPI objects may be freed now: initialised, not finalised, not abandoned.
    [[nodiscard]] static bool alive() noexcept;

  private:
    int rank_ = 0;
    int size_ = 1;
    int exceptions_at_start_ = 0;
};

/// Gathers one text per rank; the result is ordered by rank. Collective over the world; blocks. Throws MpiError.
[[nodiscard]] std::vector<std::string> gather_texts(const Environment& environment, std::string_view mine);

} // namespace ranktune::comm::mpi
