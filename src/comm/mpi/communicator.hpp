// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicator: a move-only MPI_Comm, owned or borrowed.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <span>

#include "ranktune/base/ids.hpp"

namespace ranktune::comm::mpi {

/// A message that was matched and is to be received by MPI_Mrecv or MPI_Imrecv.
struct Matched {
    MPI_Message message = MPI_MESSAGE_NULL;
    int source = 0;
    int bytes = 0;
};

/// `duplicate`, `create_group` and `adopt` return owning objects. The destructor of an owning object frees the
/// communicator, which is collective over its ranks: every rank does it once, after its last use. Borrowed ones are
/// never freed. A moved-from or default object is null. Nothing is freed once MPI is not alive (Environment::alive) or
/// after `leak`. Must not outlive the Environment.
class Communicator {
  public:
    Communicator() = default;
    [[nodiscard]] static Communicator borrow(MPI_Comm handle);
    /// Takes ownership of a handle made elsewhere and sets its error handler to MPI_ERRORS_RETURN.
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
    /// Collective over `ranks` (of the world, members of this communicator, distinct) only; blocks until all of them
    /// call. They become ranks 0, 1, ... in the order given. `tag` (0 .. 32767) distinguishes concurrent calls of one
    /// process.
    [[nodiscard]] Communicator create_group(std::span<const base::Rank> ranks, int tag) const;

    /// Matches the next message of `source` (or MPI_ANY_SOURCE) with this tag; nothing: there is none yet. Local. From
    /// any source, deaths that MPI reports are acknowledged, so that messages of the living come, and errors are no
    /// message: they do not say whose. From one source, throws MpiError, also when it has died and MPI says so.
    [[nodiscard]] std::optional<Matched> match(int source, int tag) const;

    [[nodiscard]] explicit operator bool() const { return handle_ != MPI_COMM_NULL; }
    [[nodiscard]] MPI_Comm get() const { return handle_; }
    [[nodiscard]] int rank() const;
    [[nodiscard]] int size() const;

    /// Frees (when owning) and becomes null.
    void reset() noexcept;
    /// Drops the communicator without freeing it, because operations on it may still be pending.
    void leak() noexcept { handle_ = MPI_COMM_NULL; }

    /// Number of owned communicators of this process that were not freed, leaked ones included.
    [[nodiscard]] static std::size_t live();

  private:
    Communicator(MPI_Comm handle, bool owns) : handle_(handle), owns_(owns) {}

    MPI_Comm handle_ = MPI_COMM_NULL;
    bool owns_ = false;
};

} // namespace ranktune::comm::mpi
