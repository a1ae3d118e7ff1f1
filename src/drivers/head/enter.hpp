// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a head comes into a study directory: the lease, --fresh, and what the directory holds.

#include <memory>
#include <string>

#include "drivers/head/open_study.hpp"
#include "drivers/run_options.hpp"
#include "storage/file_system.hpp"
#include "storage/lease.hpp"

namespace ranktune::drivers {

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

/// Takes the lease and reads the study. Throws base::UsageError when another head has it, base::IoError, and what
/// open_study throws.
[[nodiscard]] Entered enter(storage::FileSystem& files, const RunOptions& options);

} // namespace ranktune::drivers
