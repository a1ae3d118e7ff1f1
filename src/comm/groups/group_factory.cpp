// SPDX-License-Identifier: Apache-2.0
#include "comm/groups/group_factory.hpp"

#include <algorithm>
#include <cassert>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "comm/backoff.hpp"
#include "comm/groups/group_parent.hpp"
#include "comm/groups/worker_group.hpp"
#include "comm/kept.hpp"
#include "comm/mpi/error.hpp"
#include "comm/mpi/request.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::comm {
namespace {

constexpr int note_tag = 2;

enum class Kind : std::uint64_t {
    ready,  ///< member to leader: ready, holding communicator `generation` (0: none)
    make,   ///< leader to member: make one and call it `generation`
    use,    ///< leader to member: use the one you hold
    give_up ///< either direction: this formation is aborted
};

/// The message that ranks exchange before MPI_Comm_create_group.
struct Note {
    std::uint64_t ticket = 0;
    Kind kind = Kind::ready;
    std::uint64_t generation = 0;
    std::uint64_t keep = 0;   ///< ready: this rank has room; make: all have room
    std::uint64_t parent = 0; ///< ready: this rank has so many successors of the parent; make: use that one
};

using Roster = std::vector<base::Rank>;

int roster_tag(const Roster& roster, std::uint64_t generation) {
    base::Digest digest(generation);
    for (const auto rank : roster) digest.add(rank.value());
    constexpr int tags = 32768; // that MPI guarantees
    return note_tag + 1 + static_cast<int>(digest.value() % (tags - note_tag - 1));
}

} // namespace

std::uint64_t formation_ticket(base::TrialId trial, base::AttemptId attempt, base::Incarnation incarnation) {
    return base::Digest().add(trial.value()).add(attempt.value()).add(incarnation.value()).value();
}

struct GroupFactory::Impl {
    struct Entry {
        mpi::Communicator communicator;
        std::uint64_t generation = 0;
        bool kept = false;
        bool in_use = false;
    };
    struct Sending {
        Note note;
        mpi::Request request;
    };

    Impl(mpi::Communicator w, std::size_t k) : world(std::move(w)), keep(k) {}

    mpi::Communicator world; ///< for notes
    GroupParent parent;
    std::size_t keep;
    std::map<Roster, Entry> entries; ///< kept ones, and those in use
    std::uint64_t last_generation = 0;
    std::map<int, Note> arrived; ///< latest note per rank; a rank takes part in one formation at a time
    std::list<Sending> sending;
    Counts counts;

    void drive_sends() {
        for (auto it = sending.begin(); it != sending.end();) {
            it = it->request.ended() ? sending.erase(it) : std::next(it);
        }
    }

    void send(base::Rank to, const Note& note) {
        drive_sends();
        auto& item = sending.emplace_back();
        item.note = note;
        // An error: `to` has died. Nobody waits for its answer longer than for that of a rank that is silent.
        if (MPI_Isend(&item.note, sizeof(Note), MPI_BYTE, static_cast<int>(to.value()), note_tag, world.get(),
                      item.request.slot()) != MPI_SUCCESS)
            sending.pop_back();
    }

    void receive() {
        auto found = world.match(MPI_ANY_SOURCE, note_tag);
        if (!found) return;
        Note note;
        // Small enough to arrive with its envelope, so this does not wait for the sender.
        mpi::check(MPI_Mrecv(&note, sizeof(Note), MPI_BYTE, &found->message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        arrived[found->source] = note;
    }

    /// `from`'s note with this ticket, if it has arrived. Notes with other tickets are stale.
    std::optional<Note> look(base::Rank from, std::uint64_t ticket) {
        receive();
        const auto it = arrived.find(static_cast<int>(from.value()));
        if (it == arrived.end() || it->second.ticket != ticket) return std::nullopt;
        const Note note = it->second;
        arrived.erase(it);
        if (note.kind == Kind::give_up) {
            throw FormationAborted("rank " + std::to_string(from.value()) + " did not join the group");
        }
        return note;
    }

    [[nodiscard]] std::uint64_t held(const Roster& roster) const {
        const auto it = entries.find(roster);
        return it == entries.end() ? 0 : it->second.generation;
    }
    [[nodiscard]] bool room() const { return counts.kept < keep; }

    /// The leader's part: decides what all members do.
    Note lead(const Roster& roster, std::uint64_t ticket, const std::atomic<bool>& abort) {
        const auto tell = [&](const Note& note) {
            for (std::size_t i = 1; i < roster.size(); ++i) send(roster[i], note);
        };
        const auto mine = held(roster);
        bool same = mine != 0;
        bool all_have_room = room() || same;
        std::uint64_t successor = 0;
        try {
            for (std::size_t i = 1; i < roster.size(); ++i) {
                const Note note = await_member(roster[i], ticket, abort);
                same = same && note.generation == mine;
                all_have_room = all_have_room && note.keep != 0;
                successor = std::max(successor, note.parent);
            }
            if (!same) successor = await_parent(successor, abort);
        } catch (const FormationAborted&) {
            tell({.ticket = ticket, .kind = Kind::give_up});
            throw;
        }
        const Note verdict{ticket, same ? Kind::use : Kind::make, same ? mine : ++last_generation, all_have_room,
                           successor};
        tell(verdict);
        return verdict;
    }

    /// The parent of a new group: one without a dead rank, and no older than `least`, which a member has already.
    std::uint64_t await_parent(std::uint64_t least, const std::atomic<bool>& abort) {
        Backoff backoff;
        while (parent.successor() < least || parent.is_damaged()) {
            if (abort.load()) throw FormationAborted("told to give up while dead ranks were left out");
            backoff.pause();
        }
        return parent.successor();
    }

    Note await_member(base::Rank member, std::uint64_t ticket, const std::atomic<bool>& abort) {
        Backoff backoff;
        for (;;) {
            if (abort.load()) throw FormationAborted("told to give up while the group was formed");
            if (const auto note = look(member, ticket)) return *note;
            backoff.pause();
        }
    }

    /// A member's part. After its ready note only the leader may release it, because the others may already be entering
    /// MPI_Comm_create_group. A leader that stays silent counts as dead.
    Note follow(const Roster& roster, std::uint64_t ticket, const std::atomic<bool>& abort) {
        constexpr unsigned patience = 2500; // turns of 200 us at least
        const auto mine = held(roster);
        send(roster.front(), {ticket, Kind::ready, mine, room() || mine != 0, parent.successor()});
        Backoff backoff;
        for (unsigned turns_after_abort = 0; turns_after_abort < patience;) {
            if (const auto note = look(roster.front(), ticket)) return *note;
            if (abort.load() && turns_after_abort++ == 0)
                send(roster.front(), {.ticket = ticket, .kind = Kind::give_up});
            backoff.pause();
        }
        throw FormationAborted("told to give up while the group was formed");
    }

    Entry& make(const Roster& roster, const Note& verdict) {
        lose(roster); // another rank dropped it, so it can never be freed collectively
        // The leader has this successor already. It is made collectively, so it is here soon.
        for (Backoff backoff; parent.successor() < verdict.parent;) backoff.pause();
        auto communicator = parent.create_group(roster, roster_tag(roster, verdict.generation), verdict.parent);
        Entry& entry = entries[roster];
        entry.communicator = std::move(communicator);
        entry.generation = verdict.generation;
        entry.kept = verdict.keep != 0;
        ++counts.made;
        counts.kept += entry.kept ? 1 : 0;
        return entry;
    }

    void lose(const Roster& roster) {
        const auto it = entries.find(roster);
        if (it == entries.end()) return;
        it->second.communicator.leak();
        counts.kept -= it->second.kept ? 1 : 0;
        ++counts.lost;
        entries.erase(it);
    }

    void give_back(const Roster& roster, bool poisoned) {
        const auto it = entries.find(roster);
        if (it == entries.end()) return; // a group of one
        if (poisoned) {
            lose(roster);
        } else if (it->second.kept) {
            it->second.in_use = false;
        } else {
            entries.erase(it);
        }
    }
};

GroupFactory::GroupFactory(const mpi::Environment&, std::size_t keep)
    : impl_(std::make_unique<Impl>(mpi::Communicator::world().duplicate(), keep)) {}

GroupFactory::~GroupFactory() {
    // Kept communicators are left to MPI_Finalize: ranks that hold different ones could not free them in the same
    // order.
    for (auto& [roster, entry] : impl_->entries) {
        assert(!entry.in_use);
        entry.communicator.leak();
    }
    if (mpi::Environment::alive()) impl_->drive_sends();
    if (!impl_->sending.empty()) {
        impl_->world.leak();
        keep_to_exit(std::make_shared<std::list<Impl::Sending>>(std::move(impl_->sending)));
    }
}

std::unique_ptr<WorkerGroup> GroupFactory::form(std::span<const base::Rank> ranks, std::uint64_t ticket,
                                                const std::atomic<bool>& abort) {
    const base::Rank me{static_cast<std::uint32_t>(impl_->world.rank())};
    Roster roster(ranks.begin(), ranks.end());
    const auto position = std::find(roster.begin(), roster.end(), me);
    assert(position != roster.end());
    const int rank = static_cast<int>(position - roster.begin());
    if (roster.size() == 1) return std::make_unique<WorkerGroup>(*impl_, std::move(roster), 0, MPI_COMM_SELF);

    const Note verdict = rank == 0 ? impl_->lead(roster, ticket, abort) : impl_->follow(roster, ticket, abort);
    if (verdict.kind == Kind::use) ++impl_->counts.reused;
    Impl::Entry& entry = verdict.kind == Kind::use ? impl_->entries.at(roster) : impl_->make(roster, verdict);
    assert(!entry.in_use);
    entry.in_use = true;
    return std::make_unique<WorkerGroup>(*impl_, std::move(roster), rank, entry.communicator.get());
}

GroupFactory::Counts GroupFactory::counts() const { return impl_->counts; }

WorkerGroup::WorkerGroup(GroupFactory::Impl& factory, std::vector<base::Rank> ranks, int rank, MPI_Comm communicator)
    : factory_(factory), ranks_(std::move(ranks)), rank_(rank), communicator_(communicator) {}

WorkerGroup::~WorkerGroup() { factory_.give_back(ranks_, poisoned_); }

} // namespace ranktune::comm
