// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/parameters.hpp"

#include <string>

#include "ddp/collective.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::ddp {

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
