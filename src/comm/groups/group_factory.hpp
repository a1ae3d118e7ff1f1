// SPDX-License-Identifier: Apache-2.0
#pragma once
// GroupFactory: makes sub-communicators for the trials of one process, and keeps those that will be wanted again.

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

/// The group was not formed: this rank or another one was told to give up. The communicator, if any, stays as it was.
class FormationAborted : public base::Error {
  public:
    using Error::Error;
};

/// One number for (trial, attempt, incarnation): the ticket of an attempt's group.
[[nodiscard]] std::uint64_t formation_ticket(base::TrialId trial, base::Attempt attempt, base::Incarnation incarnation);

/// Forming a group has two parts. First its ranks meet by messages: each tells the first rank of the roster (the
/// leader) that it is there and which communicator for this roster it holds; the leader answers "use that one", "make
/// one" or "not this time". This part waits with naps and ends when `abort` is raised (on a member about a second
/// later, unless the leader answers), so a dead rank strands nobody. Only then, and only if one has to be made, all
/// call MPI_Comm_create_group, which cannot be interrupted: a rank that dies between its message and that call leaves
/// the others hanging there, to be ended with their process (abort_grace).
///
/// *Keeping.* After use a communicator is kept for the next trial on the same roster, up to `keep` rosters per process.
/// MPI_Comm_free is collective and may synchronise, so a rank must never free by itself what other ranks still hold,
/// and those others are busy with other trials. Hence whether a communicator is kept is decided when it is made, by all
/// of its ranks together (each says in its message whether it has room), and a kept one is never evicted: it lives
/// until MPI_Finalize. One that is not kept is freed by all of its ranks right after use. So the number of
/// communicators is bounded, every rank frees the same ones at the same points, and rosters that come back (placement
/// prefers aligned blocks: about log2(ranks) rosters per rank) find theirs; the others pay for making one, 10 to 300
/// us.
///
/// *Poison.* A communicator on which an operation was given up can be neither freed nor used. The rank that gave up
/// says so at the next formation by holding none; then the others give up theirs, too, and a new one is made. Given-up
/// communicators and the buffers of their operations stay in the graveyard until the process ends (`lost`).
///
/// Used by one thread, the trial thread. Groups must not outlive the factory, nor the factory the environment.
class GroupFactory {
  public:
    /// Collective over all ranks: duplicates the world communicator. `keep` may differ between ranks.
    explicit GroupFactory(const mpi::Environment& environment, std::size_t keep = 32);
    /// Collective over all ranks while MPI is alive. Requires that all groups are gone.
    ~GroupFactory();
    GroupFactory(const GroupFactory&) = delete;
    GroupFactory& operator=(const GroupFactory&) = delete;

    /// Collective over `ranks` (distinct world ranks, this one among them, the leader first, the same order on all of
    /// them). `ticket` names this formation: the same on all members, never used before on the same roster. One group
    /// per roster at a time. Throws FormationAborted, on all members that are alive, when `abort` was raised on one of
    /// them in time; MpiError when MPI fails.
    [[nodiscard]] std::unique_ptr<WorkerGroup> form(std::span<const base::Rank> ranks, std::uint64_t ticket,
                                                    const std::atomic<bool>& abort);

    struct Counts {
        std::uint64_t made = 0;   ///< communicators created
        std::uint64_t reused = 0; ///< formations that found a kept one
        std::size_t kept = 0;     ///< rosters with a communicator now
        std::size_t lost = 0;     ///< communicators that can never be freed
    };
    [[nodiscard]] Counts counts() const;

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::comm
