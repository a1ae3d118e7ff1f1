// SPDX-License-Identifier: Apache-2.0
#pragma once
// Data to copy, and nodes of a test that copy it.

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/staging/stager.hpp"
#include "support/files.hpp"

namespace ranktune::testing {

inline void write_file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

/// Bytes that differ from place to place.
inline std::string data_text(std::size_t bytes) {
    std::string text(bytes, '\0');
    std::uint32_t state = 1;
    for (char& byte : text) byte = static_cast<char>((state = state * 1664525U + 1013904223U) >> 24U);
    return text;
}

inline study::StudySpec study_of(std::vector<study::DataFile> files) {
    study::StudySpec spec;
    spec.staging.stage = true;
    spec.staging.directory = "/given"; // a copy, though the original lies on the same disk
    spec.data = std::move(files);
    return spec;
}

/// A rank of a node whose copies go to `folder`, with pieces of a thousand bytes.
class StagingRank {
  public:
    explicit StagingRank(const std::string& folder, const study::StudySpec& spec, std::uint64_t room = 1U << 30U,
                         storage::FileSystem& files = storage::posix_file_system(), data::Nodes nodes = {{{}}, 0},
                         comm::BlockExchange* exchange = nullptr, std::chrono::milliseconds patience = {},
                         const std::string& start = data::start_of_node(), bool speaks = true) {
        std::filesystem::create_directories(folder);
        const auto places = [folder, room](const std::string& directory) {
            const std::string chosen = directory.empty() ? folder + ".memory" : folder;
            return data::CopyPlaces{{{chosen, room, "free in " + chosen}}, {}};
        };
        const auto log = [this](std::string_view line) {
            const std::scoped_lock lock(mutex_);
            log_ += std::string(line) + "\n";
        };
        const auto wake = [this] {
            const std::scoped_lock lock(mutex_);
            over_ = true;
            changed_.notify_all();
        };
        stager_ = std::make_unique<data::Stager>(spec, std::move(nodes), exchange, log, wake,
                                                 data::StagerOptions{{1000, patience, files}, start, places, speaks});
    }
    /// Waits for the end.
    data::Stager& stager() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return over_; });
        return *stager_;
    }
    [[nodiscard]] bool is_over() const { return stager_->figures().over; }
    [[nodiscard]] const std::string& path(std::size_t file = 0) { return stager().files().at(file).path; }
    [[nodiscard]] std::string log() {
        const std::scoped_lock lock(mutex_);
        return log_;
    }
    void leave() { stager_.reset(); }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::string log_;
    std::unique_ptr<data::Stager> stager_;
};

/// Names in a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    if (std::filesystem::exists(folder))
        for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

} // namespace ranktune::testing
