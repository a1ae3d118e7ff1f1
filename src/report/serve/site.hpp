// SPDX-License-Identifier: Apache-2.0
#pragma once
// The live pages of studies, without a network: requests in, replies out. Reads study directories; what steers a study
// is done by the functions that it is given.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/page/live_data.hpp"
#include "report/page/page_data.hpp"
#include "report/serve/http.hpp"
#include "report/view/followed_history.hpp"

namespace ranktune::report {

struct SiteOptions {
    /// Directories of studies, as the user typed them; one at least. Called again for each list: folders gain studies.
    std::function<std::vector<std::string>()> directories;
    std::string token; ///< the first part of every path; without it nothing is shown
    std::function<report::Standing(const tuner::State&, const std::string& directory)> standing;
    /// What is missing of a journal, in words: called before it is read, and what it returns with what was read.
    std::function<std::function<std::string(const storage::JournalSummary&)>(const std::string& directory)> missing;
    /// The last part of what a trial did and said.
    std::function<std::string(const std::string& directory, study::TrialId trial)> log;
    /// Does what a page asks for (`request`: JSON), and returns what there is to say. Throws base::FormatError when it
    /// is no request, and base::UsageError with the reason when it is refused. Null: pages have no controls.
    std::function<std::string(const std::string& directory, const std::string& request)> steer;
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
    /// The page with its data. It follows the study through ../data/INDEX and ../events/INDEX. `secret`: with which it
    /// may steer; empty: it may not.
    [[nodiscard]] std::string page(std::size_t index, const std::string& secret);
    /// report::live_data, of now or of a moment ago.
    [[nodiscard]] std::string live();
    /// SiteOptions::log, asked for again only after a while if that takes long, whatever the trial. Does not wait for
    /// another reader: nullopt: busy, or read too recently.
    [[nodiscard]] std::optional<std::string> log(study::TrialId trial);
    /// A row of the list: directory, state, trials done, metric, best value, age.
    [[nodiscard]] std::vector<std::string> row();
    [[nodiscard]] const std::string& directory() const { return directory_; }

  private:
    using Clock = std::chrono::steady_clock;
    void look();
    void note_cost(Clock::time_point begin);
    [[nodiscard]] report::PageStudy page_study();
    [[nodiscard]] report::Standing standing() const;

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
    std::string live_;
    std::uint64_t live_version_ = 0;
    Clock::time_point next_live_{};

    std::mutex log_mutex_; ///< of what follows: pages do not wait for logs
    std::optional<study::TrialId> logged_;
    std::string log_; ///< of that trial
    Clock::time_point next_log_{};
};

/// Thread-safe.
class Site final : public Handler {
  public:
    Site(storage::FileSystem& files, SiteOptions options);

    [[nodiscard]] Reply reply(const Request& request) override;
    [[nodiscard]] std::uint64_t version(std::size_t study) override;

  private:
    /// `path` without the token.
    [[nodiscard]] Reply page(std::string_view path);
    [[nodiscard]] Reply steer(std::string_view path, const Request& request);
    /// Why a request is not one of a page of this server; empty: it is.
    [[nodiscard]] std::string suspicion(const Request& request) const;
    [[nodiscard]] Reply list();
    /// Null: no study has this index.
    [[nodiscard]] ServedStudy* at(std::size_t index);
    /// Adds new studies, and returns how many there are. A study keeps its index, also when its directory is gone.
    std::size_t scan();

    storage::FileSystem& files_;
    SiteOptions options_;
    std::string secret_;                ///< in pages, for requests that steer: who has seen an address has not seen it
    std::atomic<unsigned> steering_{0}; ///< requests that wait for a head
    std::mutex mutex_;                  ///< of `studies_`; the studies have locks of their own
    std::vector<std::unique_ptr<ServedStudy>> studies_; ///< only grows
};

/// 32 hexadecimal digits from the system's source of randomness.
[[nodiscard]] std::string random_token();

} // namespace ranktune::report
