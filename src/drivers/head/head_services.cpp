// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/head_services.hpp"

#include <exception>
#include <utility>

namespace ranktune::drivers {

HeadServices::HeadServices(storage::FileSystem& files, storage::Journal& journal, std::string study_directory,
                           Waker& waker, base::LogSink& log,
                           std::function<void(const study::EndStudy&)> publish_results)
    : files_(files),
      journal_(journal),
      directory_(std::move(study_directory)),
      waker_(waker),
      log_(log),
      publish_results_(std::move(publish_results)) {}

HeadServices::~HeadServices() {
    if (publisher_.joinable()) publisher_.join();
}

void HeadServices::delete_checkpoint(const std::string& path) {
    // Only what outlives the journal's thread is captured: the file system and the log.
    journal_.when_synced([&files = files_, &log = log_, path, full = directory_ + "/" + path] {
        try {
            files.remove_all(full);
            // The last checkpoint of a trial takes the trial's folder with it: thousands of trials, few files.
            files.remove_if_empty(full.substr(0, full.rfind('/')));
        } catch (const std::exception& error) {
            log.write(base::LogLevel::warning, "unlink", {{"path", path}, {"error", error.what()}});
        }
    });
}

void HeadServices::publish(const study::EndStudy& end) {
    publisher_ = std::thread([this, end] { publish_now(end); });
}

void HeadServices::publish_now(const study::EndStudy& end) {
    try {
        journal_.sync();
        publish_results_(end);
    } catch (const std::exception& error) {
        log_.write(base::LogLevel::error, "results", {{"error", error.what()}, {"kept", "the journal is complete"}});
    }
    published_.store(true);
    waker_.wake();
}

} // namespace ranktune::drivers
