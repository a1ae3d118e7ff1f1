// SPDX-License-Identifier: Apache-2.0
#include "comm/kept.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace ranktune::comm {
namespace {

struct Kept {
    std::mutex mutex;
    std::vector<std::shared_ptr<const void>> objects;
};

/// Never destroyed: MPI's threads and atexit handlers may outlive static objects.
Kept& kept() {
    static auto* const instance = new Kept;
    return *instance;
}

} // namespace

void keep_to_exit(std::shared_ptr<const void> object) {
    const std::lock_guard lock(kept().mutex);
    kept().objects.push_back(std::move(object));
}

std::size_t kept_to_exit() {
    const std::lock_guard lock(kept().mutex);
    return kept().objects.size();
}

} // namespace ranktune::comm
