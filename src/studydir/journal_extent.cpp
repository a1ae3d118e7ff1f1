// SPDX-License-Identifier: Apache-2.0
#include "studydir/journal_extent.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::studydir {
namespace {

/// The number after `"key":` in a JSON object from status_json. (Quotes inside its texts are escaped, so `"key":`
/// cannot be part of a text.)
std::optional<std::uint64_t> number_of(const std::string& json, const std::string& key) {
    const std::string quoted = "\"" + key + "\":";
    const auto at = json.find(quoted);
    if (at == std::string::npos) return std::nullopt;
    const char* begin = json.c_str() + at + quoted.size();
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(begin, &end, 10);
    return end == begin ? std::nullopt : std::optional(number);
}

/// Whether the journal reaches `known`. A segment of a later start decides what counts of the earlier ones.
bool reaches(const storage::JournalSummary& found, const JournalExtent& known) {
    if (found.incarnation != known.start) return found.incarnation > known.start;
    return found.records >= known.records;
}

} // namespace

std::vector<JournalExtent> known_extents(storage::FileSystem& files, const StudyDirectory& directory,
                                         const std::optional<OutcomeFile>& outcome) {
    std::vector<JournalExtent> known;
    if (outcome) known.push_back({outcome->start, outcome->records, "outcome"});
    try {
        if (!files.exists(directory.status_file())) return known;
        const std::string status = storage::read_text(files, directory.status_file(), most_status_bytes);
        const auto start = number_of(status, "start");
        const auto records = number_of(status, "records_synced");
        if (start && records) known.push_back({static_cast<std::uint32_t>(*start), *records, "status"});
    } catch (const base::IoError&) { // `status` is optional here
    }
    return known;
}

std::string what_is_missing(const std::vector<JournalExtent>& known, const storage::JournalSummary& found,
                            const std::string& study_directory) {
    JournalExtent furthest;
    std::vector<std::string> told_by;
    for (const JournalExtent& one : known) {
        if (reaches(found, one)) continue;
        told_by.push_back("'" + one.file + "'");
        furthest.start = std::max(furthest.start, one.start);
        furthest.records = std::max(furthest.records, one.records);
    }
    if (told_by.empty()) return {};
    const std::string files = base::join(told_by, " and ");
    std::string reached = "start " + std::to_string(furthest.start);
    if (furthest.records > 0) reached += " and " + std::to_string(furthest.records) + " records";
    return "the journal of '" + study_directory + "' ends with start " + std::to_string(found.incarnation) + " and " +
           std::to_string(found.records) + " records, but " + files + " in that directory " +
           (told_by.size() == 1 ? "says" : "say") + " that it had reached " + reached +
           ": its newest files are missing or damaged. Nothing was changed. If this directory was copied while the "
           "study "
           "ran, or its journal has just been restored, or what is missing is lost for good: remove " +
           files + ", and the same command goes on with what is there. Otherwise restore '" + study_directory +
           "/journal' from a backup or a snapshot of the file system, or begin again with the study file and --fresh";
}

} // namespace ranktune::studydir
