// SPDX-License-Identifier: Apache-2.0
#pragma once
// CoreWait: how a rank waits for its peers, on its own core or on a shared one.

namespace ranktune::ddp {

/// A rank that waits for a reduction has to keep testing, because MPI makes progress only inside calls. On its own
/// core, constant testing is fastest. On a shared core it would take the core from the very peer it waits for, and a
/// yield would lose a whole time slice per message; a short sleep is woken promptly. The kernel tells which case it is:
/// a yield that lets another thread run counts as an involuntary context switch of the caller.
class CoreWait {
  public:
    /// Starts a new wait.
    void begin();
    /// Waits for one turn, after a test found nothing.
    void turn();
    /// Waits until `done()`; calls `look`, which may throw, between tests.
    template <class Done, class Look>
    void until(Done&& done, Look&& look) {
        begin();
        while (!done()) {
            look();
            turn();
        }
    }

  private:
    static constexpr unsigned spins = 100;             ///< tests without a yield: about 50 us of MPI_Test
    static constexpr unsigned waits_until_probe = 200; ///< on a shared core: probe again whether it has become free

    unsigned turns_ = 0;
    unsigned shared_waits_ = 0;
    bool shared_ = false;
};

} // namespace ranktune::ddp
