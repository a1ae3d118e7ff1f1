// SPDX-License-Identifier: Apache-2.0
#include "ranktune/trainables/algorithms.hpp"

#include <algorithm>
#include <mutex>

#include "ranktune/base/error.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"

namespace ranktune::trainables {
namespace {

/// One for this process.
struct KnownAlgorithms {
    std::mutex mutex;
    study::Algorithms known{schedulers::built_in(), searchers::built_in()};
};

KnownAlgorithms& of_process() {
    static KnownAlgorithms instance;
    return instance;
}

template <class Info>
void add(std::vector<std::shared_ptr<const Info>>& known, Info info, const char* kind) {
    study::check_description(info);
    const bool taken = std::ranges::any_of(known, [&](const auto& other) { return other->name == info.name; });
    if (taken) throw base::UsageError(std::string("a ") + kind + " named '" + info.name + "' exists already");
    known.push_back(std::make_shared<const Info>(std::move(info)));
}

} // namespace

void register_scheduler(study::SchedulerInfo info) {
    const std::lock_guard lock(of_process().mutex);
    add(of_process().known.schedulers, std::move(info), "scheduler");
}

void register_searcher(study::SearcherInfo info) {
    const std::lock_guard lock(of_process().mutex);
    add(of_process().known.searchers, std::move(info), "searcher");
}

study::Algorithms known_algorithms() {
    const std::lock_guard lock(of_process().mutex);
    return of_process().known;
}

} // namespace ranktune::trainables
