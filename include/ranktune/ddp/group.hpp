// SPDX-License-Identifier: Apache-2.0
#pragma once
// Group: operations over the ranks of one trial. Examples: docs/reference/group.md.

#include <memory>
#include <span>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::ddp {

/// Another rank of the trial failed. The same operation throws it on every healthy rank, so all leave at the same place
/// and the group stays usable.
class PeerFailed : public base::Error {
  public:
    using Error::Error;
};
/// The trial has to give up (a member died, the study ends at once).
class Aborted : public base::Error {
  public:
    using Error::Error;
};

/// How numbers of several ranks are combined.
enum class Reduce : std::uint8_t { sum, min, max };

class Collective;

/// The ranks of one trial. Made by ranktune (TrialContext::group, make_self_group); used by one thread of each rank.
///
/// barrier, all_reduce, broadcast and all_gather are *collective*: all ranks call the same ones in the same order, with
/// the same types, counts and roots. Otherwise all ranks get base::Error. When a rank fails (an exception leaves its
/// trainable), the operation that the others are in, or enter next, throws PeerFailed on each of them. So no rank waits
/// for a failed one, and an exception needs no clean-up call: let it leave the trainable.
///
/// Every function takes buffers of host memory. They throw base::UsageError, before anything is sent, for a buffer on a
/// device, numbers that cannot be reduced (bytes, or an unaligned address), a root or rank that does not exist, and a
/// call within a gradient step.
class Group {
  public:
    virtual ~Group() = default;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    [[nodiscard]] virtual int rank() const = 0; ///< within the trial: 0 is the leader
    [[nodiscard]] virtual int size() const = 0;

    /// Returns when all ranks have called it. Collective.
    void barrier();

    /// Reduces element by element, in place; the same bits on all ranks, and the same bits again for the same input and
    /// number of ranks. float32, float64, float16, bfloat16, int32, int64, uint64. Collective.
    /// - Sums: float16 and bfloat16 are added in float and rounded once at the end; integers wrap around.
    /// - Minimum and maximum: as in IEEE 754-2019, so NaN wins and -0 < +0.
    void all_reduce(base::Buffer values, Reduce how = Reduce::sum);
    /// The same for one number: `double loss = group.reduced(my_loss);`
    template <base::Element T>
    [[nodiscard]] T reduced(T value, Reduce how = Reduce::sum) {
        all_reduce(std::span(&value, 1), how);
        return value;
    }

    /// Copies rank `root`'s values to all. Collective.
    void broadcast(base::Buffer values, int root = 0);

    /// Rank r's values become the r-th part of `all` on every rank; all.count() is size() * mine.count(). `mine` may be
    /// this rank's own part of `all`, but must not overlap it otherwise. Collective.
    void all_gather(base::ConstBuffer mine, base::Buffer all);

    /// Sends a message to one rank, possibly itself. Not collective. *Buffered*: copies the message and returns at
    /// once; the copy stays in this rank's memory until rank `to` has received it. So ranks that exchange messages
    /// cannot deadlock if they send first, then receive. Messages of one rank to another arrive in the order of
    /// sending.
    void send(base::ConstBuffer message, int to);
    /// Waits for the next message of rank `from`. Throws base::UsageError when its type or count differs; the message
    /// is lost then. Waits for a message that is never sent until failure.collective_timeout.
    void receive(base::Buffer message, int from);

  private:
    friend class Collective; // functions for the library only: src/ddp/collective.hpp
    Group() = default;

    [[nodiscard]] virtual bool reaches(const base::Place& place) const = 0;
    virtual void do_barrier() = 0;
    virtual void do_all_reduce(base::Buffer values, Reduce how) = 0;
    virtual void do_broadcast(base::Buffer values, int root) = 0;
    virtual void do_all_gather(base::ConstBuffer mine, base::Buffer all) = 0;
    virtual void do_send(base::ConstBuffer message, int to) = 0;
    virtual void do_receive(base::Buffer message, int from) = 0;

    void require_reachable(const base::ConstBuffer& values, const char* operation) const;
    void require_rank(int rank, const char* operation) const;
};

/// A group of one rank, in which every operation is local: for tests of trainables.
[[nodiscard]] std::unique_ptr<Group> make_self_group();

} // namespace ranktune::ddp
