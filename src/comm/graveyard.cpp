// SPDX-License-Identifier: Apache-2.0
#include "comm/graveyard.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace ranktune::comm {
namespace {

struct Graveyard {
    std::mutex mutex;
    std::vector<std::shared_ptr<const void>> graves;
};

/// Never destroyed: MPI's threads and atexit handlers may outlive static objects.
Graveyard& graveyard() {
    static auto* const instance = new Graveyard;
    return *instance;
}

} // namespace

void bury(std::shared_ptr<const void> remains) {
    auto& yard = graveyard();
    const std::lock_guard lock(yard.mutex);
    yard.graves.push_back(std::move(remains));
}

std::size_t buried() {
    auto& yard = graveyard();
    const std::lock_guard lock(yard.mutex);
    return yard.graves.size();
}

} // namespace ranktune::comm
