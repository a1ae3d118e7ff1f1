// SPDX-License-Identifier: Apache-2.0
#pragma once
// HeadServices: the head's slow duties (unlinking, syncing, publishing results), done outside its loop.

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "head/background/preparer.hpp"
#include "head/head_machine.hpp"
#include "process/background.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::head {

/// Checkpoints are unlinked once their release is synced, on a separate thread, because removing a large file may take
/// longer than a commit may wait. Another thread publishes the results at the end. Failed tables are reported: the next
/// start makes them from the journal. If the journal is not synced, or not at its place, the study gets another end
/// (`instead`).
class HeadServices final : public HeadDuties {
  public:
    using EndRank = std::function<process::Killing(base::Rank, bool at_once)>;
    using AtTheEnd = std::function<void(const study::EndStudy&)>;
    /// Receives how the study ended and what is wrong with the tables (OutcomeFile::tables).
    using Word = std::function<void(const study::EndStudy&, const std::string& tables)>;
    /// `end_rank`: HeadDuties::end_rank. `incarnation`: whose crash notes are read. `publish_results` runs on the
    /// publishing thread after the journal is synced; it may throw. `leave_word` runs after it, whatever went wrong,
    /// and must not throw.
    HeadServices(storage::FileSystem& files, storage::Journal& journal, std::string study_directory,
                 base::Incarnation incarnation, process::Waker& waker, base::LogSink& log, EndRank end_rank,
                 AtTheEnd publish_results, Word leave_word);
    ~HeadServices() override; ///< waits for the results
    HeadServices(const HeadServices&) = delete;
    HeadServices& operator=(const HeadServices&) = delete;

    void delete_checkpoint(const study::DeleteCheckpoint& checkpoint) override;
    void set_aside(const std::string& checkpoint, const std::string& why) noexcept override;
    [[nodiscard]] std::optional<LastWords> last_words(base::Rank rank) override;
    [[nodiscard]] process::Killing end_rank(base::Rank rank, bool at_once) override {
        return end_rank_ ? end_rank_(rank, at_once) : process::Killing::nobody;
    }
    void prepare(std::uint64_t ticket, searchers::Searcher::Preparation work) override {
        preparer_.prepare(ticket, std::move(work));
    }
    [[nodiscard]] std::optional<study::Prepared> prepared() override { return preparer_.prepared(); }
    void publish(const study::EndStudy& end) override;
    [[nodiscard]] bool published() override { return published_.load(); }
    [[nodiscard]] std::optional<Instead> instead() override; ///< once published
    /// What is wrong with the tables, in words; empty: nothing. Once published.
    [[nodiscard]] std::string tables();

  private:
    void publish_now(const study::EndStudy& end);
    [[nodiscard]] std::string keep(const study::EndStudy& end);

    storage::FileSystem& files_;
    storage::Journal& journal_;
    std::string directory_;
    base::Incarnation incarnation_;
    process::Waker& waker_;
    base::LogSink& log_;
    EndRank end_rank_;
    AtTheEnd publish_results_;
    Word leave_word_;
    std::shared_ptr<process::Tasks> unlinking_; ///< shared with the journal's callbacks, which may outlive this object
    Preparer preparer_;
    std::string tables_;             ///< like instead_
    std::optional<Instead> instead_; ///< written before `published_`
    std::atomic<bool> published_{false};
    std::thread publisher_;
};

} // namespace ranktune::head
