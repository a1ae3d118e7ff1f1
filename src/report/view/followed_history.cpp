// SPDX-License-Identifier: Apache-2.0
#include "report/view/followed_history.hpp"

#include <cstdint>
#include <utility>

namespace ranktune::report {

FollowedHistory::FollowedHistory(storage::FileSystem& files, std::string directory)
    : files_(files), directory_(std::move(directory)) {
    load();
}

void FollowedHistory::load() {
    History history;
    LoadedStudy study = load_study(files_, directory_, &history); // may throw: what was known stays
    study_ = std::move(study);
    history_ = std::move(history);
    follower_ = std::make_unique<storage::JournalFollower>(files_, directory_, study_.journal);
}

bool FollowedHistory::refresh() {
    const auto found = follower_->look([this](study::Record&& record, std::uint64_t number) {
        study_.tuner->apply(record);
        study_.add(record, number);
        history_.add(record, number, *study_.tuner);
    });
    if (found == storage::Followed::rebuild) load();
    return found != storage::Followed::nothing;
}

} // namespace ranktune::report
