// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/parameters.hpp"

#include <string>

#include "ranktune/base/digest.hpp"

namespace ranktune::ddp {

void broadcast_parameters(Collective& collective, std::span<const std::span<float>> tensors) {
    for (const std::span<float> tensor : tensors) collective.broadcast(std::as_writable_bytes(tensor), 0);
}

std::uint64_t parameter_digest(std::span<const std::span<const float>> tensors) {
    base::Digest digest;
    for (const std::span<const float> tensor : tensors) digest.add(std::as_bytes(tensor));
    return digest.value();
}

void check_agreement(Collective& collective, std::uint64_t value, std::string_view what) {
    const auto [low, high] = collective.min_max(value);
    if (low != high)
        throw base::Error(std::string(what) +
                          " differ between the ranks of the trial: this is an error of the "
                          "trainable or of the hardware, training cannot go on");
}

} // namespace ranktune::ddp
