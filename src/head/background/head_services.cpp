// SPDX-License-Identifier: Apache-2.0
#include "head/background/head_services.hpp"

#include <exception>
#include <utility>

#include "head/background/keeper.hpp"
#include "ranktune/base/error.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/checkpoints/set_aside.hpp"
#include "studydir/crash_note.hpp"
#include "studydir/finished_study.hpp"

namespace ranktune::head {
namespace {

/// A file that cannot be removed stays; the next start finds it as an orphan.
void unlink_checkpoint(storage::FileSystem& files, const std::string& directory, const std::string& path,
                       base::LogSink& log) {
    try {
        const std::string full = directory + "/" + path;
        files.remove_all(full);
        // The last checkpoint of a trial takes the trial's folder with it: thousands of trials leave few files.
        files.remove_if_empty(full.substr(0, full.rfind('/')));
    } catch (const std::exception& error) {
        log.write(base::LogLevel::warning, "unlink", {{"path", path}, {"error", error.what()}});
    }
}

} // namespace

HeadServices::HeadServices(storage::FileSystem& files, storage::Journal& journal, std::string study_directory,
                           base::Incarnation incarnation, process::Waker& waker, base::LogSink& log, EndRank end_rank,
                           AtTheEnd publish_results, Word leave_word)
    : files_(files),
      journal_(journal),
      directory_(std::move(study_directory)),
      incarnation_(incarnation),
      waker_(waker),
      log_(log),
      end_rank_(std::move(end_rank)),
      publish_results_(std::move(publish_results)),
      leave_word_(std::move(leave_word)),
      unlinking_(std::make_shared<process::Tasks>()),
      preparer_([&waker] { waker.wake(); }, directory_,
                [&log](std::string_view line) {
                    log.write(base::LogLevel::info, "searcher", {{"said", std::string(line)}});
                }) {}

HeadServices::~HeadServices() {
    if (publisher_.joinable()) publisher_.join();
}

void HeadServices::delete_checkpoint(const study::DeleteCheckpoint& checkpoint) {
    journal_.when_synced([unlinking = unlinking_, &files = files_, directory = directory_, &log = log_, checkpoint] {
        for (const std::string& path : storage::paths_of(checkpoint.path, checkpoint.shards))
            unlinking->post([&files, directory, path, &log] { unlink_checkpoint(files, directory, path, log); });
    });
}

void HeadServices::publish(const study::EndStudy& end) {
    publisher_ = std::thread([this, end] { publish_now(end); });
}

void HeadServices::publish_now(const study::EndStudy& end) {
    const std::string trouble = keep(end);
    // An end caused by the journal names the problem already.
    if (!trouble.empty() && end.reason != study::Reason::unsaved)
        instead_ = Instead{{study::StudyOutcome::resumable, study::Reason::unsaved, trouble}, false};
    else if (!tables_.empty() && studydir::code_without_tables(end.outcome) != end.outcome)
        instead_ = Instead{{studydir::code_without_tables(end.outcome), study::Reason::unsaved, tables_}, true};
    leave_word_(instead_ ? instead_->end : end, tables_);
    published_.store(true);
    waker_.wake();
}

/// Syncs the journal and publishes the results. Returns what is wrong with the journal; empty: nothing.
std::string HeadServices::keep(const study::EndStudy& end) {
    const auto say = [this](const char* error, const char* kept) {
        log_.write(base::LogLevel::error, "results", {{"error", error}, {"kept", kept}});
    };
    try {
        journal_.sync();
    } catch (const std::exception& error) {
        say(error.what(), "what the journal could take: everything that was acknowledged");
        return std::string("the journal cannot be written: ") + error.what();
    }
    try {
        if (std::string trouble = trouble_with_place(files_, journal_, directory_); !trouble.empty()) {
            say(trouble.c_str(), "what is in the journal, wherever that is now");
            return trouble;
        }
    } catch (const base::IoError&) { // nobody can say; everything is synced
    }
    try {
        publish_results_(end);
    } catch (const base::FormatError& error) {
        say(error.what(), "the journal, as far as it can be read");
        return error.what();
    } catch (const std::exception& error) {
        say(error.what(), "the journal is complete");
        tables_ = studydir::trouble_with_tables(error);
    }
    return {};
}

void HeadServices::set_aside(const std::string& checkpoint, const std::string& why) noexcept {
    try {
        storage::set_aside(files_, directory_, checkpoint, why);
        log_.write(base::LogLevel::warning, "set-aside", {{"checkpoint", checkpoint}, {"reason", why}});
    } catch (const std::exception& error) {
        log_.write(base::LogLevel::error, "set-aside", {{"checkpoint", checkpoint}, {"error", error.what()}});
    }
}

std::optional<HeadDuties::LastWords> HeadServices::last_words(base::Rank rank) {
    const studydir::CrashNotes left = studydir::read_crash_note(files_, directory_, incarnation_.value(), rank);
    if (!left.trial.empty()) return LastWords{left.trial.front(), true};
    if (!left.device.empty()) return LastWords{left.device.front(), false};
    return std::nullopt;
}

std::string HeadServices::tables() { return published() ? tables_ : std::string(); }

std::optional<HeadDuties::Instead> HeadServices::instead() { return published() ? instead_ : std::nullopt; }

} // namespace ranktune::head
