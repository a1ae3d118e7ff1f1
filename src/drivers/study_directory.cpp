// SPDX-License-Identifier: Apache-2.0
#include "drivers/study_directory.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <span>

#include "trainables/program/python_module.hpp"

namespace ranktune::drivers {

std::string start_name(const std::string& slurm_job, std::uint32_t incarnation) {
    return (slurm_job.empty() ? "" : "job-" + slurm_job + "-") + "start-" + std::to_string(incarnation);
}

std::string outcome_text(const OutcomeFile& outcome) {
    std::string reason = outcome.reason;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    const bool resumable = outcome.outcome == study::StudyOutcome::resumable;
    std::string text;
    text += "exit=" + std::to_string(static_cast<int>(outcome.outcome)) + "\n";
    text += "reason=" + reason + "\n";
    text += std::string("resumable=") + (resumable ? "true" : "false") + "\n";
    text += std::string("progress=") + (outcome.progress ? "true" : "false") + "\n";
    text += "reports=" + std::to_string(outcome.reports) + "\n";
    text += "start=" + std::to_string(outcome.start) + "\n";
    text += "time=" + outcome.time + "\n";
    return text;
}

void create_study_directory(storage::FileSystem& files, const StudyDirectory& directory, const std::string& study,
                            const std::string& resolved) {
    files.make_directories(directory.path);
    files.make_directories(directory.checkpoints());
    files.make_directories(directory.logs());
    if (!study.empty()) publish_text(files, directory.study_file(), study, true);
    publish_text(files, directory.resolved_file(), resolved, true);
}

void publish_python_module(storage::FileSystem& files, const StudyDirectory& directory) {
    files.make_directories(directory.python());
    files.publish(directory.python() + "/ranktune.py", trainables::python_module(), false);
}

void publish_text(storage::FileSystem& files, const std::string& path, const std::string& text, bool sync) {
    files.publish(path, std::as_bytes(std::span(text)), sync);
}

std::string make_uuid() {
    std::random_device device;
    std::uint32_t words[4];
    for (auto& word : words) word = device();
    words[1] = (words[1] & 0xFFFF0FFFU) | 0x00004000U; // version 4
    words[2] = (words[2] & 0x3FFFFFFFU) | 0x80000000U; // variant of RFC 4122
    char text[40];
    std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16, words[1] & 0xFFFFU,
                  words[2] >> 16, words[2] & 0xFFFFU, words[3]);
    return text;
}

} // namespace ranktune::drivers
