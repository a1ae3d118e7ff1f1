// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupFactory: makes sub-communicators for the trials of one process, and caches them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/mpi/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::comm {

class WorkerGroup;

/// The group was not formed: this rank or another one was told to give up. A cached communicator stays usable.
class FormationAborted : public base::Error {
  public:
    using Error::Error;
};

/// The ticket of an attempt's group: a hash of (trial, attempt, incarnation).
[[nodiscard]] std::uint64_t formation_ticket(base::TrialId trial, base::AttemptId attempt,
                                             base::Incarnation incarnation);

/// Forming a group has two parts. First its ranks meet by messages: each tells the first rank of the roster (the
/// leader) that it is ready and which communicator it holds for this roster; the leader answers "use that one", "make
/// one" or "give up". This part can be interrupted: it ends when `abort` is raised (on a member about a second later,
/// unless the leader answers), so a dead rank blocks nobody. Only if a communicator has to be made, all ranks then call
/// MPI_Comm_create_group, which cannot be interrupted: if a rank dies between its message and that call, the others
/// hang there until their processes are ended (abort_grace).
///
/// *Keeping.* After use a communicator is kept for the next trial on the same roster, up to `keep` rosters per process.
/// MPI_Comm_free is collective and may synchronise, so a rank must not free alone what busy ranks still hold. All ranks
/// therefore decide together, when a communicator is made, whether to keep it (each says in its message whether it has
/// room). A kept one is never evicted: it lives until MPI_Finalize. One that is not kept is freed by all of its ranks
/// right after use. So the number of communicators is bounded, every rank frees the same ones at the same points, and
/// recurring rosters (placement prefers aligned blocks: about log2(ranks) rosters per rank) reuse theirs; others pay 10
/// to 300 us for a new one.
///
/// *Poison.* A communicator on which an operation was given up can be neither freed nor used. At the next formation the
/// rank that gave up reports that it holds none; then the others drop theirs too, and a new one is made. Dropped
/// communicators and the buffers of their operations stay until the process ends (`lost`).
///
/// Used by one thread, the trial thread. Groups must not outlive the factory, nor the factory the environment.
class GroupFactory {
  public:
    /// Collective over all ranks: duplicates the world communicator. `keep` may differ between ranks.
    explicit GroupFactory(const mpi::Environment& environment, std::size_t keep = 32);
    /// Collective over all ranks while MPI is alive. Requires that all groups are destroyed.
    ~GroupFactory();
    GroupFactory(const GroupFactory&) = delete;
    GroupFactory& operator=(const GroupFactory&) = delete;

    /// Collective over `ranks` (distinct world ranks, this one among them, the leader first, the same order on all of
    /// them). `ticket` identifies this formation: the same on all members, never reused on the same roster. One group
    /// per roster at a time. Throws FormationAborted, on all members that are alive, when `abort` was raised on one of
    /// them in time; MpiError when MPI fails.
    [[nodiscard]] std::unique_ptr<WorkerGroup> form(std::span<const base::Rank> ranks, std::uint64_t ticket,
                                                    const std::atomic<bool>& abort);

    struct Counts {
        std::uint64_t made = 0;   ///< communicators created
        std::uint64_t reused = 0; ///< formations that reused a kept one
        std::size_t kept = 0;     ///< rosters with a communicator now
        std::size_t lost = 0;     ///< communicators that can never be freed
    };
    [[nodiscard]] Counts counts() const;

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::comm
