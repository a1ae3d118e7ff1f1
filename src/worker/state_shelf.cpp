// SPDX-License-Identifier: Apache-2.0
#include "worker/state_shelf.hpp"

#include <algorithm>
#include <utility>

#include "worker/checkpoints/state_exchange.hpp"

namespace ranktune::worker {

namespace {

constexpr std::ptrdiff_t most_of_a_trial = 2; // as on disk: others may still ask for the one before

} // namespace

void StateShelf::put(base::TrialId trial, const std::string& path, std::uint64_t digest, State state) {
    study::Bytes description;
    worker::encode_form(*state, description);
    study::Encoder(description).u64(digest);
    const auto entry = std::make_shared<const Kept>(Kept{trial, path, std::move(description), std::move(state)});
    std::vector<Entry> dropped; // freed after the lock
    const std::lock_guard lock(mutex_);
    const auto drop = [&](const std::deque<Entry>::iterator& at) {
        bytes_ -= (*at)->state->bytes();
        dropped.push_back(std::move(*at));
        kept_.erase(at);
    };
    const auto trial_of = [](const Entry& each) { return each->trial; };
    if (std::ranges::count(kept_, trial, trial_of) >= most_of_a_trial) drop(std::ranges::find(kept_, trial, trial_of));
    bytes_ += entry->state->bytes();
    while (!kept_.empty() && bytes_ > most_bytes_) drop(kept_.begin());
    kept_.push_back(entry);
}

std::optional<comm::BlockExchange::Offer> StateShelf::offer(std::string_view path) const {
    Entry found;
    {
        const std::lock_guard lock(mutex_);
        const auto at = std::ranges::find(kept_, path, [](const Entry& each) { return std::string_view(each->path); });
        if (at == kept_.end()) return {};
        found = *at;
    }
    comm::BlockExchange::Offer offer{found, {found->description}};
    for (const auto& tensor : found->state->stored_tensors()) offer.blocks.emplace_back(tensor.bytes);
    return offer;
}

} // namespace ranktune::worker
