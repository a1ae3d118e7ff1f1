// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/parameters.hpp"

#include <string>

#include "ddp/collective.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/device.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::ddp {

void share_parameters(Group& group, std::span<const base::Buffer> tensors) {
    if (group.size() == 1) return;
    DeviceSums* sums = nullptr; // of the one device that a rank has
    base::Digest sizes;
    for (const base::Buffer& tensor : tensors) {
        auto* const accelerator = device::accelerator_of(tensor.place());
        if (accelerator != nullptr) sums = &Collective::of(group).sums_on(*accelerator);
        sizes.add(tensor.type()).add(tensor.count()).add(accelerator != nullptr);
    }
    check_agreement(group, sizes.value(), "the sizes of the parameters"); // a rank that failed says so here
    for (const base::Buffer& tensor : tensors)
        device::accelerator_of(tensor.place()) != nullptr ? sums->broadcast(tensor) : group.broadcast(tensor);
    if (sums == nullptr) return;
    sums->join();
    sums->expect();
}

std::uint64_t parameter_digest(std::span<const base::ConstBuffer> tensors) {
    base::Digest digest;
    for (const base::ConstBuffer& tensor : tensors)
        base::for_each_piece(tensor, [&](std::span<const std::byte> piece) { digest.add(piece); });
    return digest.value();
}

void check_agreement(Group& group, std::uint64_t value, std::string_view what) {
    const auto [low, high] = Collective::of(group).min_max(value);
    if (low != high)
        throw base::Error(std::string(what) +
                          " differ between the ranks of the trial: this is an error of the "
                          "trainable or of the hardware, training cannot continue");
}

} // namespace ranktune::ddp
