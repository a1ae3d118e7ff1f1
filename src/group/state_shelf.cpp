// SPDX-License-Identifier: Apache-2.0
#include "group/state_shelf.hpp"

#include <utility>

#include "trial/checkpoints/state_exchange.hpp"

namespace ranktune::group {

void StateShelf::put(const std::string& path, std::uint64_t digest, State state) {
    study::Bytes description;
    trial::encode_form(*state, description);
    study::Encoder(description).u64(digest);
    auto kept = std::make_shared<const Kept>(Kept{path, std::move(description), std::move(state)});
    const std::lock_guard lock(mutex_);
    kept_.swap(kept); // the old state is freed after the lock
}

StateShelf::State StateShelf::find(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    return kept_ && kept_->path == path ? kept_->state : nullptr;
}

std::optional<comm::BlockExchange::Offer> StateShelf::offer(std::string_view path) const {
    std::shared_ptr<const Kept> kept;
    {
        const std::lock_guard lock(mutex_);
        kept = kept_;
    }
    if (!kept || kept->path != path) return {};
    comm::BlockExchange::Offer offer{kept, {kept->description}};
    for (const auto& tensor : kept->state->stored_tensors()) offer.blocks.emplace_back(tensor.bytes);
    return offer;
}

} // namespace ranktune::group
