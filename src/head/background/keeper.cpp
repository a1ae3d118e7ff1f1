// SPDX-License-Identifier: Apache-2.0
#include "head/background/keeper.hpp"

#include <chrono>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::head {

namespace {

constexpr std::chrono::seconds look_period{1};

} // namespace

Keeper::Keeper(storage::FileSystem& files, storage::Lease& lease, const storage::Journal& journal,
               studydir::StudyDirectory directory, process::Waker& waker, base::LogSink& log)
    : files_(files),
      lease_(lease),
      journal_(journal),
      directory_(std::move(directory)),
      waker_(waker),
      log_(log),
      errors_(log, "keep"),
      next_renewal_(process::Background::Clock::now() + storage::lease_period),
      thread_(
          [this] {
              look();
              return process::Background::Clock::now() + look_period;
          },
          process::Background::Clock::now() + look_period) {}

std::optional<EndAsked> Keeper::asked() {
    const std::lock_guard lock(mutex_);
    return std::exchange(asked_, std::nullopt);
}

void Keeper::look() {
    if (!over_) look_for_journal();
    if (!over_) look_for_stop();
    if (over_ || process::Background::Clock::now() < next_renewal_) return;
    next_renewal_ = process::Background::Clock::now() + storage::lease_period;
    renew();
}

void Keeper::look_for_stop() {
    errors_.attempt("stop", [this] {
        if (const auto who = studydir::take_stop_request(files_, directory_.stop_file())) ask({.by = *who});
    });
}

/// A journal whose file was removed could be written to the end and never be found again.
void Keeper::look_for_journal() {
    try {
        const std::string trouble = trouble_with_place(files_, journal_, directory_.path);
        misses_ = trouble.empty() ? 0 : misses_ + 1;
        // Only the second miss in a row counts: a file server may be wrong for a moment.
        if (misses_ >= 2) end_at_once("journal", trouble, study::Reason::unsaved);
    } catch (const base::IoError&) { // unknown now: try again
    }
}

void Keeper::renew() {
    storage::Renewal renewal{};
    // A full disk, a server that restarts: the next period may succeed.
    if (!errors_.attempt("lease", [&] { renewal = lease_.renew(); })) return;
    if (renewal == storage::Renewal::taken)
        end_at_once("lease", "another head has taken the study over", study::Reason::draining);
    if (renewal == storage::Renewal::gone)
        end_at_once(
            "lease",
            "the file 'lease' of the study directory is gone: somebody has removed it, or another head took the "
            "study over and has ended. This run ends, because it no longer keeps others away; the same command "
            "goes on",
            study::Reason::draining);
}

void Keeper::end_at_once(const std::string& event, std::string why, study::Reason reason) {
    over_ = true;
    log_.write(base::LogLevel::error, event, {{"error", why}});
    ask({.why = std::move(why), .at_once = true, .reason = reason});
}

void Keeper::ask(EndAsked what) {
    {
        const std::lock_guard lock(mutex_);
        asked_ = std::move(what);
    }
    waker_.wake();
}

std::string trouble_with_place(const storage::FileSystem& files, const storage::Journal& journal,
                               const std::string& study_directory) {
    const std::string path = journal.displaced();
    if (path.empty()) return {};
    if (!files.identity(study_directory))
        return "the study directory '" + study_directory +
               "' was removed or moved away while the study ran; nothing is written there any more. If it was moved, "
               "move it back: it has every record, and the same command goes on. If it is gone, restore it from a "
               "backup, or the same command begins a new study";
    return "'" + path +
           "', which this run writes, was removed, moved or replaced while the study ran. If it was moved, move it "
           "back: it has every record, and the same command goes on. If it is gone, restore the folder 'journal' from "
           "a backup, or begin again with --fresh";
}

} // namespace ranktune::head
