// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a head enters a study directory: takes the lease, obeys --fresh, reads what is there.

#include <functional>
#include <memory>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::studydir {

struct ReleaseLease {
    void operator()(storage::Lease* lease) const noexcept {
        lease->release();
        delete lease;
    }
};
/// Released at the end of its scope, also when an exception leaves it.
using HeldLease = std::unique_ptr<storage::Lease, ReleaseLease>;

/// This head owns the directory and has read its study.
struct Entered {
    HeldLease lease;
    OpenedStudy opened;
    std::string moved_to; ///< where --fresh put the old directory
};

struct EnterRequest {
    std::string directory; ///< absolute
    const study::StudySpec& spec;
    OpenRequest open;
    bool supervised = false; ///< a stop request that is already there is meant for this start
    std::function<void(const std::string&)>
        on_note; ///< called with one sentence for the user while waiting; may be empty
};

/// Takes the lease and reads the study. Throws base::UsageError when another head holds the lease, base::IoError, and
/// what open_study throws.
[[nodiscard]] Entered enter(storage::FileSystem& files, const EnterRequest& request);

/// How a run ends when its directory fails before anything began: resumable when the error may pass
/// (storage::may_pass), with advice.
struct EarlyTrouble {
    study::StudyOutcome outcome;
    std::string words;
};
[[nodiscard]] EarlyTrouble early_trouble(const base::IoError& error);

/// What the user can do about the error: "Make room".
[[nodiscard]] std::string what_to_mend(const base::IoError& error);

} // namespace ranktune::studydir
