// SPDX-License-Identifier: Apache-2.0
#pragma once
// CoreWait: how a rank waits for its peers, on a core of its own and on one that it shares.

namespace ranktune::ddp {

/// A rank that waits for a reduction has to go on testing, because MPI makes progress only inside calls. On a core of
/// its own nothing is faster than testing all the time. On a shared core that takes the core from the very peer it
/// waits for, and giving it away by yielding loses a whole time slice for each message; a short nap is woken promptly
/// there. Which of the two it is, the kernel knows: a yield that lets another thread run counts as an involuntary
/// context switch of this one.
class CoreWait {
  public:
    /// A new wait begins.
    void begin();
    /// One turn of waiting, after a test that found nothing.
    void turn();

  private:
    static constexpr unsigned spins = 100;             ///< tests before anything else: about 50 us of MPI_Test
    static constexpr unsigned waits_until_probe = 200; ///< on a shared core: it may have become free again

    unsigned turns_ = 0;
    unsigned shared_waits_ = 0;
    bool shared_ = false;
};

} // namespace ranktune::ddp
