// SPDX-License-Identifier: Apache-2.0
#pragma once
// StreamTurn: the order between the compute stream and a stream of another library.

#include <memory>

#include "device/device.hpp"

namespace ranktune::device {

/// While it lives, the compute stream works in the place of `theirs`: its work begins after all that was issued on
/// `theirs` before, and what is issued on `theirs` later begins after the compute stream's. The host waits for nothing.
class StreamTurn {
  public:
    /// `theirs`: a cudaStream_t of `on`; null: the default stream. There is nothing to order when it is the compute
    /// stream itself: turns may be nested. Throws DeviceError.
    StreamTurn(Accelerator& on, void* theirs) : on_(on) {
        if (theirs == on.compute_stream().native()) return;
        theirs_ = on.borrow(theirs);
        passed_ = on.make_event();
        theirs_->record(*passed_);
        on.compute_stream().wait(*passed_);
    }
    ~StreamTurn() {
        if (!theirs_) return;
        try {
            on_.compute_stream().record(*passed_);
            theirs_->wait(*passed_);
        } catch (const DeviceError&) { // a lost device says so again at the next call
        }
    }
    StreamTurn(const StreamTurn&) = delete;
    StreamTurn& operator=(const StreamTurn&) = delete;

  private:
    Accelerator& on_;
    std::unique_ptr<Stream> theirs_; ///< null: nothing to order
    std::unique_ptr<Event> passed_;
};

} // namespace ranktune::device
