// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicator: a move-only MPI_Comm that knows whether it owns.

#include <mpi.h>

#include <cstddef>
#include <span>

#include "ranktune/base/ids.hpp"

namespace ranktune::comm::mpi {

/// Owning objects come from `duplicate`, `create_group` and `adopt` and free their communicator in the destructor,
/// which is collective over its ranks in MPI's sense: every rank does it once, after its last use. Borrowed ones never
/// free. A moved-from or default object is null. Nothing is freed once MPI is not alive (Environment::alive) or after
/// `leak`. Must not outlive the Environment.
class Communicator {
  public:
    Communicator() = default;
    [[nodiscard]] static Communicator borrow(MPI_Comm handle);
    /// Takes over a handle made elsewhere; errors on it are returned from now on.
    [[nodiscard]] static Communicator adopt(MPI_Comm handle);
    /// MPI_COMM_WORLD, borrowed.
    [[nodiscard]] static Communicator world() { return borrow(MPI_COMM_WORLD); }

    ~Communicator() { reset(); }
    Communicator(Communicator&& other) noexcept;
    Communicator& operator=(Communicator&& other) noexcept;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    /// Collective over this communicator; blocks.
    [[nodiscard]] Communicator duplicate() const;
    /// Collective over `ranks` (of this communicator, distinct) only; blocks until all of them call. They become 0, 1,
    /// ... in the order given. `tag` (0 .. 32767) tells concurrent calls of one process apart.
    [[nodiscard]] Communicator create_group(std::span<const base::Rank> ranks, int tag) const;

    [[nodiscard]] explicit operator bool() const { return handle_ != MPI_COMM_NULL; }
    [[nodiscard]] MPI_Comm get() const { return handle_; }
    [[nodiscard]] int rank() const;
    [[nodiscard]] int size() const;

    /// Frees (when owning) and becomes null.
    void reset() noexcept;
    /// Gives the communicator up without freeing it: operations on it may still be under way.
    void leak() noexcept { handle_ = MPI_COMM_NULL; }

    /// Communicators owned by objects of this process that were not freed, leaked ones included.
    [[nodiscard]] static std::size_t live();

  private:
    Communicator(MPI_Comm handle, bool owns) : handle_(handle), owns_(owns) {}

    MPI_Comm handle_ = MPI_COMM_NULL;
    bool owns_ = false;
};

} // namespace ranktune::comm::mpi
