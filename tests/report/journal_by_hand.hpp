// SPDX-License-Identifier: Apache-2.0
#pragma once
// A journal written by hand, for tests that read it back.

#include <string>
#include <vector>

#include "ranktune/base/log.hpp"
#include "storage/journal/journal.hpp"
#include "support/files.hpp"

namespace ranktune::report::testing {

using ranktune::testing::TemporaryDirectory;

/// Writes `records` with the writer that a head uses, and closes it.
inline void write_journal(const std::string& directory, const std::vector<study::Record>& records) {
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "11112222-3333-4444-8555-666677778888";
    storage::Journal journal(storage::posix_file_system(), options, log);
    if (!records.empty()) journal.append(records);
    journal.close();
}

} // namespace ranktune::report::testing
