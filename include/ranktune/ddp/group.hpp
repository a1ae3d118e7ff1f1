// SPDX-License-Identifier: Apache-2.0
#pragma once
// Group: what the ranks of one trial do together. Examples: docs/reference/group.md.

#include <memory>
#include <span>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::ddp {

/// Another rank of the trial failed. Thrown on every healthy rank by the same operation, so that all leave at the same
/// place and the group stays usable.
class PeerFailed : public base::Error {
  public:
    using Error::Error;
};
/// The trial was told to give up (a member died, the study ends at once).
class Aborted : public base::Error {
  public:
    using Error::Error;
};

/// How numbers of several ranks become one.
enum class Reduce : std::uint8_t { sum, min, max };

class Collective;

/// The ranks of one trial. Made by ranktune (TrialContext::group, make_self_group); used by one thread of each rank.
///
/// barrier, all_reduce, broadcast and all_gather are *collective*: all ranks call the same ones in the same order, with
/// the same types, counts and roots. Where they do not, all ranks get base::Error. When a rank fails (an exception
/// leaves its trainable), the operation that the others are in, or enter next, throws PeerFailed on each of them. So
/// nobody waits for a rank that is gone, and an exception needs no clean-up call: let it leave the trainable.
///
/// Every function takes buffers of host memory. A buffer on a device, numbers that cannot be reduced (bytes, or at an
/// address that is not aligned), a root or rank that is not there, and a call within a gradient step are refused with
/// base::UsageError before anything is sent.
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
    /// The same of one number: `double loss = group.reduced(my_loss);`
    template <base::Element T>
    [[nodiscard]] T reduced(T value, Reduce how = Reduce::sum) {
        all_reduce(std::span(&value, 1), how);
        return value;
    }

    /// Copies rank `root`'s values to all. Collective.
    void broadcast(base::Buffer values, int root = 0);

    /// Rank r's values become the r-th part of `all` on every rank; all.count() is size() * mine.count(). `mine` may be
    /// this rank's own part of `all`, and may not overlap it otherwise. Collective.
    void all_gather(base::ConstBuffer mine, base::Buffer all);

    /// Sends a message to one rank, itself included. Not collective. *Buffered*: the message is copied and the call
    /// returns, whether or not rank `to` receives yet; the copy takes memory on this rank until it has. So no pattern
    /// of sends and receives in which every receive has its send can deadlock: ranks that exchange send first, then
    /// receive. Messages of one rank to another arrive in the order of sending.
    void send(base::ConstBuffer message, int to);
    /// Waits for the next message of rank `from`. Throws base::UsageError when its type or count is another one; the
    /// message is lost then. A message that is never sent is waited for until failure.report_timeout.
    void receive(base::Buffer message, int from);

  private:
    friend class Collective; // what only the library may call: src/ddp/collective.hpp
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
