// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.hpp"

#include <string_view>

#include "comm/wire/protocol.hpp"

namespace ranktune::launch {
namespace {

constexpr int usage = static_cast<int>(study::StudyOutcome::usage);
constexpr int resumable = static_cast<int>(study::StudyOutcome::resumable);

constexpr std::string_view moved_words =
    "It is not started again, which would begin a new study in its place. Move the directory back, or restore it, and "
    "the same command goes on";

constexpr std::string_view replaced_words =
    "another directory is where the study's was: it was moved away or removed while the study ran, and this one does "
    "not hold its journal. ";

bool cannot_be_started(int code) { return code == 126 || code == 127; } // as in shells

/// Ends that a restart would not change; nothing: it may help.
std::optional<RestartDecision> settled(const StepFacts& facts) {
    const auto end = [](int code, std::string words = {}) { return RestartDecision{false, code, std::move(words)}; };
    if (facts.directory_replaced)
        return end(facts.code == 0 ? resumable : facts.code, std::string(replaced_words) + std::string(moved_words));
    // A complete study whose head could not write everything.
    if (facts.finished && facts.outcome && facts.outcome->outcome == study::StudyOutcome::resumable &&
        facts.outcome->cause == studydir::EndCause::storage)
        return end(resumable);
    if (facts.finished) return end(*facts.finished);
    if (facts.outcome && facts.outcome->outcome == study::StudyOutcome::usage) return end(usage);
    if (facts.asked) return end(facts.has_journal ? resumable : facts.code);
    if (!facts.outcome && facts.code == usage) {
        if (!facts.nodes_left_out) return end(usage);
        return end(resumable,
                   "the remaining nodes are too few for this study; the same command goes on with it on more nodes");
    }
    if (!facts.outcome && cannot_be_started(facts.code)) return end(facts.code);
    if (!facts.outcome && facts.directory_lost)
        return end(facts.code == 0 ? resumable : facts.code,
                   "the study's directory is not there: it could not be made, or was removed or moved away while the "
                   "study ran. " +
                       std::string(moved_words));
    // The study's own exit code but no outcome: it could not write there, and printed that.
    if (!facts.outcome && facts.code == resumable && !facts.can_write)
        return end(resumable,
                   "the study ended for the reason above and could not write to its directory: it is not started again "
                   "before it can; then the same command goes on");
    if (!facts.outcome) return std::nullopt;
    switch (facts.outcome->cause) {
        case studydir::EndCause::asked:
            // When a rank has died, mpirun stops the others and exits with another code, unless it outlives them.
            if (facts.code == resumable || (facts.outlives && !facts.head_died)) return end(resumable);
            return std::nullopt;
        case studydir::EndCause::storage:
        case studydir::EndCause::trials:
            return end(
                resumable,
                "it is not started again before the cause is mended, which is named above; then the same command "
                "goes on");
        case studydir::EndCause::over: // [before] or [after] has failed: the next start is for users to decide
            return end(facts.code);
        default:
            return std::nullopt;
    }
}

/// The head was held up by a disk, a signal or the machine, or has died, which is the fault of no trial.
bool by_the_head(const StepFacts& facts) {
    return facts.code == comm::head_lost_code || (facts.outlives && facts.head_died) ||
           (facts.outcome && facts.outcome->cause == studydir::EndCause::stalled);
}

std::string how_it_ended(const StepFacts& facts) {
    if (facts.outcome && facts.outcome->cause != studydir::EndCause::asked && !facts.outcome->reason.empty())
        return facts.outcome->reason;
    if (facts.head_died && facts.outlives) return "its head has died, and the workers left";
    if (facts.code == comm::head_lost_code)
        return "the workers heard nothing of the head for run.heartbeat_timeout, and left (exit code " +
               std::to_string(facts.code) + ")";
    if (facts.code == 0) return "its launcher ended with exit code 0 before the study had ended";
    return "a process of it was killed or lost (exit code " + std::to_string(facts.code) + ")";
}

} // namespace

RestartDecision Restarts::after(const StepFacts& facts) {
    if (auto decision = settled(facts)) return *decision;
    fruitless_ = facts.progress > progress_ ? 0 : fruitless_ + 1;
    progress_ = facts.progress;
    const std::string how = how_it_ended(facts);
    if (fruitless_ >= hopeless)
        return {
            false, static_cast<int>(study::StudyOutcome::runtime_error),
            "the study ended " + std::to_string(hopeless) +
                " times in a row with nothing new (no trial got further than it had been, or came to its end): " + how +
                "; a third time would be the same. Look into the logs, mend what is wrong, and give the same "
                "command again: it goes on"};
    if (count_ >= limit_)
        return {false, resumable,
                how + "; it was started again " + std::to_string(count_) +
                    " times already (--max-restarts). The same command goes on"};
    ++count_;
    return {true, 0, how, by_the_head(facts)};
}

void SameStudy::begin(const DirectoryReading& now, bool anew) {
    existed_ = now.exists;
    anew_ = anew;
    had_journal_ = had_journal_ || now.has_journal;
    if (!now.uuid.empty()) uuid_ = now.uuid;
}

bool SameStudy::is_replaced(const DirectoryReading& now) {
    if (!now.exists) return false; // lost, or not begun
    // A head makes files in its directory before anything else, and its journal before the file `status`.
    if (!now.has_journal) return had_journal_ || now.has_status || (!existed_ && !now.has_entries);
    if (!now.uuid.empty() && !uuid_.empty() && now.uuid != uuid_ && !anew_) return true;
    had_journal_ = true;
    if (!now.uuid.empty()) uuid_ = now.uuid;
    return false;
}

} // namespace ranktune::launch
