// SPDX-License-Identifier: Apache-2.0
#include "cli/missing_records.hpp"

#include <iostream>
#include <utility>

#include "report/text.hpp"
#include "storage/lease.hpp"

namespace ranktune::cli {

MissingRecords::MissingRecords(std::string directory)
    : directory_(std::move(directory)), known_(drivers::known_extents(storage::posix_file_system(), {directory_})) {}

bool MissingRecords::tell(const storage::JournalSummary& found) const {
    const std::string missing = drivers::what_is_missing(known_, found, directory_);
    if (missing.empty() || storage::read_lease(storage::posix_file_system(), directory_)) return false;
    std::cerr << "ranktune: " << report::escaped(missing) << "\n" << std::flush;
    return true;
}

} // namespace ranktune::cli
