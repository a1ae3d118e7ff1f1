// SPDX-License-Identifier: Apache-2.0
#include "report/view/followed_study.hpp"

#include <utility>

#include "ranktune/trainables/algorithms.hpp"

namespace ranktune::report {

FollowedStudy::FollowedStudy(storage::FileSystem& files, std::string directory)
    : files_(files), directory_(std::move(directory)) {
    load();
}

void FollowedStudy::load() {
    LoadedStudy loaded = load_state(files_, directory_);
    follower_ = std::make_unique<storage::JournalFollower>(files_, directory_, loaded.journal);
    grown_ = std::make_unique<tuner::Regrown>(directory_, trainables::known_algorithms(), std::move(loaded.tuner));
    if (std::exchange(metrics_, nullptr)) (void)metrics();
}

bool FollowedStudy::refresh() {
    const auto found = follower_->look([this](study::Record&& record, auto) {
        grown_->apply(record);
        if (const auto* report = std::get_if<study::Reported>(&record); report != nullptr && metrics_)
            metrics_->add(*report);
    });
    if (found == storage::Followed::rebuild) load();
    return found != storage::Followed::nothing;
}

const LastMetrics& FollowedStudy::metrics() {
    if (!metrics_) {
        metrics_ = std::make_unique<LastMetrics>();
        read_reports(files_, directory_, journal().records,
                     [this](const study::Reported& report) { metrics_->add(report); });
    }
    return *metrics_;
}

} // namespace ranktune::report
