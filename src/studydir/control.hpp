// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder `control` of a study directory: requests of users to a running study, one file each, and the answers.
//
//   0001764000000123-1f3a5c7e9b2d4f60.ask      published whole by whoever asks, removed once what was asked is synced
//   0001764000000123-1f3a5c7e9b2d4f60.answer   "accepted: ..." or "refused: ...", read and removed by whoever asked
//
// A request carries a random number, which the journal keeps: read again after a crash, it takes effect once.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/file_system.hpp"
#include "study/steering_file.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// Publishes the request, and returns its name, which sorts by time. Throws base::IoError.
[[nodiscard]] std::string ask_of_study(storage::FileSystem& files, const StudyDirectory& directory,
                                       const study::SteeringFile& request);
/// A number for a new request.
[[nodiscard]] std::uint64_t random_request();

/// Names of all requests, oldest first. Throws base::IoError.
[[nodiscard]] std::vector<std::string> requests_in(const storage::FileSystem& files, const StudyDirectory& directory);
/// Reads one. Throws base::UsageError when it is no request, or another user's; base::IoError. Never blocks.
[[nodiscard]] study::SteeringFile read_request(storage::FileSystem& files, const StudyDirectory& directory,
                                               const std::string& name, const space::SearchSpace& space);

struct Answer {
    bool accepted = false;
    std::string words;
};
/// An answered request, as the file `status` keeps the newest ones for `ranktune status`.
struct AnsweredRequest {
    std::string time; ///< wall time, RFC 3339
    std::string who;  ///< "ada@login1"; empty: not known
    std::string what; ///< in words
    Answer answer;
};

/// Writes the answer, then removes the request. Throws base::IoError.
void answer_request(storage::FileSystem& files, const StudyDirectory& directory, const std::string& name,
                    const Answer& answer);
/// The answer, which is removed; nothing: there is none yet.
[[nodiscard]] std::optional<Answer> take_answer(storage::FileSystem& files, const StudyDirectory& directory,
                                                const std::string& name);
/// Names of answers that nobody has read. Throws base::IoError.
[[nodiscard]] std::vector<std::string> answers_in(const storage::FileSystem& files, const StudyDirectory& directory);
/// Throws base::IoError.
void remove_answer(storage::FileSystem& files, const StudyDirectory& directory, const std::string& name);

} // namespace ranktune::studydir
