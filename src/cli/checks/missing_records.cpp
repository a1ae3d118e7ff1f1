// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/missing_records.hpp"

#include <iostream>
#include <utility>

#include "report/screens/text.hpp"
#include "storage/journal/lease.hpp"

namespace ranktune::cli {

MissingRecords::MissingRecords(std::string directory)
    : directory_(std::move(directory)),
      known_(studydir::known_extents(storage::posix_file_system(), {directory_},
                                     studydir::read_outcome(storage::posix_file_system(), {directory_}))) {}

bool MissingRecords::tell(const storage::JournalSummary& found) const {
    const std::string missing = studydir::what_is_missing(known_, found, directory_);
    if (missing.empty()) return false;
    const auto say = [](const std::string& sentence) {
        std::cerr << "ranktune: " << report::escaped(sentence) << "\n" << std::flush;
    };
    if (storage::writer_lives(storage::posix_file_system(), directory_, storage::real_wait(say))) return false;
    say(missing);
    return true;
}

std::string MissingRecords::words(const storage::JournalSummary& found) const {
    if (studydir::what_is_missing(known_, found, directory_).empty() ||
        storage::possible_writer(storage::posix_file_system(), directory_))
        return {};
    return "its newest records are missing: `ranktune status` says which";
}

} // namespace ranktune::cli
