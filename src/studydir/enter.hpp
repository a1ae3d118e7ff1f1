// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a head comes into a study directory: the lease, --fresh, and what the directory holds.

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
/// Released at the end of its scope, whatever ended it.
using HeldLease = std::unique_ptr<storage::Lease, ReleaseLease>;

/// The directory is this head's, and its study is read.
struct Entered {
    HeldLease lease;
    OpenedStudy opened;
    std::string moved_to; ///< where --fresh put the old directory
};

struct EnterRequest {
    std::string directory; ///< absolute
    const study::StudySpec& spec;
    OpenRequest open;
    bool supervised = false;                         ///< what the file `stop` asks for was meant for this start, too
    std::function<void(const std::string&)> on_note; ///< one sentence for people who wait; may be empty
};

/// Takes the lease and reads the study. Throws base::UsageError when another head has it, base::IoError, and what
/// open_study throws.
[[nodiscard]] Entered enter(storage::FileSystem& files, const EnterRequest& request);

/// How a run ends whose directory makes trouble before anything began: resumably when it may pass (storage::may_pass),
/// with what to do about it.
struct EarlyTrouble {
    study::StudyOutcome outcome;
    std::string words;
};
[[nodiscard]] EarlyTrouble early_trouble(const base::IoError& error);

/// What a person can do about such an error: "Make room".
[[nodiscard]] std::string what_to_mend(const base::IoError& error);

} // namespace ranktune::studydir
