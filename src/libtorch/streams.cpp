// SPDX-License-Identifier: Apache-2.0
#include "libtorch/streams.hpp"

#include "device/device.hpp"

namespace ranktune::libtorch {

namespace {

CurrentStreams*& chosen_streams() {
    static CurrentStreams* streams = nullptr;
    return streams;
}

} // namespace

CurrentStreams& current_streams() { return chosen_streams() != nullptr ? *chosen_streams() : streams_of_libtorch(); }
void set_current_streams(CurrentStreams* streams) { chosen_streams() = streams; }

std::unique_ptr<StreamScope> stream_scope(const Where& where) {
    device::Accelerator* const accelerator = device::accelerator_of(where.place);
    return accelerator == nullptr ? nullptr : std::make_unique<StreamScope>(*accelerator, where.device.index());
}

} // namespace ranktune::libtorch
