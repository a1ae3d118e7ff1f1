// SPDX-License-Identifier: Apache-2.0
#pragma once
// The live pages of studies, without a network: requests in, replies out. Only reads study directories.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/page/page_data.hpp"
#include "report/view/followed_history.hpp"
#include "serve/http.hpp"

namespace ranktune::serve {

struct SiteOptions {
    /// Directories of studies, as the user typed them; one at least. Called again for each list: folders gain studies.
    std::function<std::vector<std::string>()> directories;
    std::string token; ///< the first part of every path; without it nothing is shown
    /// How a study stands, in words: "run by pid 4711 on n0".
    std::function<std::string(const tuner::State&, const std::string& directory)> standing;
    /// What is missing of a journal, in words: called before it is read, and what it returns with what was read.
    std::function<std::function<std::string(const storage::JournalSummary&)>(const std::string& directory)> missing;
};

/// One study. Readers share what was read and made: ten cost as much as one.
class ServedStudy {
  public:
    ServedStudy(storage::FileSystem& files, const SiteOptions& options, std::string directory);

    /// Counts changes, also of troubles with the journal; looks at the journal at most once a second, and less often if
    /// that takes long.
    [[nodiscard]] std::uint64_t version();
    /// The data of the page (report/page/page_data.hpp), and their version.
    [[nodiscard]] std::pair<std::shared_ptr<const std::string>, std::uint64_t> data();
    /// The page with its data. It follows the study through ../data/INDEX and ../events/INDEX.
    [[nodiscard]] std::string page(std::size_t index);
    /// A row of the list: directory, state, trials done, metric, best value, age.
    [[nodiscard]] std::vector<std::string> row();
    [[nodiscard]] const std::string& directory() const { return directory_; }

  private:
    using Clock = std::chrono::steady_clock;
    void look();
    void note_cost(Clock::time_point begin);
    [[nodiscard]] report::PageStudy page_study();
    [[nodiscard]] std::string standing() const;

    storage::FileSystem& files_;
    const SiteOptions& options_;
    std::string directory_;
    std::mutex mutex_;
    std::unique_ptr<report::FollowedHistory> study_; ///< null: not read yet
    std::string trouble_;                            ///< with its journal, in words; empty: none
    std::uint64_t version_ = 1;
    std::shared_ptr<const std::string> data_; ///< null: none
    std::uint64_t data_version_ = 0;
    Clock::time_point next_look_{};
};

/// Thread-safe.
class Site final : public Handler {
  public:
    Site(storage::FileSystem& files, SiteOptions options);

    [[nodiscard]] Reply get(const Request& request) override;
    [[nodiscard]] std::uint64_t version(std::size_t study) override;

  private:
    /// `path` without the token.
    [[nodiscard]] Reply page(std::string_view path);
    [[nodiscard]] Reply list();
    /// Null: no study has this index.
    [[nodiscard]] ServedStudy* at(std::size_t index);
    /// Adds new studies, and returns how many there are. A study keeps its index, also when its directory is gone.
    std::size_t scan();

    storage::FileSystem& files_;
    SiteOptions options_;
    std::mutex mutex_;                                  ///< of `studies_`; the studies have locks of their own
    std::vector<std::unique_ptr<ServedStudy>> studies_; ///< only grows
};

/// 32 hexadecimal digits from the system's source of randomness.
[[nodiscard]] std::string random_token();

} // namespace ranktune::serve
