// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/early_trouble.hpp"

#include <cerrno>

#include "storage/file_system.hpp"

namespace ranktune::drivers {

std::string what_to_mend(const base::IoError& error) {
    switch (error.code().value()) {
        case ENOSPC:
        case EDQUOT:
            return "Make room";
        case EACCES:
        case EPERM:
            return "This user may not do that there: have the permissions mended, or take another directory with -o";
        case EROFS:
            return "Have the file system made writable, or take another directory with -o";
        default:
            return "Have the file system mended";
    }
}

EarlyTrouble early_trouble(const base::IoError& error) {
    if (!storage::may_pass(error)) return {study::StudyOutcome::runtime_error, error.what()};
    return {study::StudyOutcome::resumable, std::string(error.what()) + "; nothing that the study had was lost. " +
                                                what_to_mend(error) + ", and give the same command again"};
}

} // namespace ranktune::drivers
