// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/head_services.hpp"

#include <exception>
#include <utility>

#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

HeadServices::HeadServices(storage::FileSystem& files, storage::Journal& journal, std::string study_directory,
                           Waker& waker, base::LogSink& log, AtTheEnd publish_results, AtTheEnd leave_word)
    : files_(files),
      journal_(journal),
      directory_(std::move(study_directory)),
      waker_(waker),
      log_(log),
      publish_results_(std::move(publish_results)),
      leave_word_(std::move(leave_word)),
      unlinker_(std::make_shared<Unlinker>(files, directory_, log)) {}

HeadServices::~HeadServices() {
    if (publisher_.joinable()) publisher_.join();
}

void HeadServices::delete_checkpoint(const study::DeleteCheckpoint& checkpoint) {
    journal_.when_synced([unlinker = unlinker_, checkpoint] {
        for (const std::string& path : storage::paths_of(checkpoint.path, checkpoint.shards)) unlinker->remove(path);
    });
}

void HeadServices::publish(const study::EndStudy& end) {
    publisher_ = std::thread([this, end] { publish_now(end); });
}

void HeadServices::publish_now(const study::EndStudy& end) {
    const char* kept = "what the journal could take: everything that was acknowledged";
    try {
        journal_.sync();
        kept = "the journal is complete";
        publish_results_(end);
    } catch (const std::exception& error) {
        log_.write(base::LogLevel::error, "results", {{"error", error.what()}, {"kept", kept}});
    }
    leave_word_(end);
    published_.store(true);
    waker_.wake();
}

} // namespace ranktune::drivers
