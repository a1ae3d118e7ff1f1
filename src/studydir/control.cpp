// SPDX-License-Identifier: Apache-2.0
#include "studydir/control.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::studydir {
namespace {

constexpr std::string_view ask_suffix = ".ask";
constexpr std::string_view answer_suffix = ".answer";
/// Ten thousand configurations take 1 or 2 MiB.
constexpr std::uint64_t most_request_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t most_answer_bytes = std::uint64_t{1} << 20;

std::vector<std::string> names_in(const storage::FileSystem& files, const StudyDirectory& directory,
                                  std::string_view suffix) {
    std::vector<std::string> names;
    for (std::string& name : files.list(directory.control())) {
        if (!name.ends_with(suffix)) continue;
        name.resize(name.size() - suffix.size());
        names.push_back(std::move(name));
    }
    return names;
}

/// Also what is no file; what a folder contains is never removed.
void remove_entry(storage::FileSystem& files, const std::string& path) {
    if (files.kind(path) == storage::FileSystem::Kind::directory) return files.remove_if_empty(path);
    files.remove(path);
}

std::string path_of(const StudyDirectory& directory, const std::string& name, std::string_view suffix) {
    return directory.control() + "/" + name + std::string(suffix);
}

} // namespace

std::uint64_t random_request() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

std::string ask_of_study(storage::FileSystem& files, const StudyDirectory& directory,
                         const study::SteeringFile& request) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    char name[48];
    std::snprintf(name, sizeof name, "%016lld-%016llx",
                  static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(now).count()),
                  static_cast<unsigned long long>(request.ask.request));
    files.make_below(directory.path, "control");
    publish_text(files, path_of(directory, name, ask_suffix), study::steering_text(request), true);
    return name;
}

std::vector<std::string> requests_in(const storage::FileSystem& files, const StudyDirectory& directory) {
    return names_in(files, directory, ask_suffix);
}

std::vector<std::string> answers_in(const storage::FileSystem& files, const StudyDirectory& directory) {
    return names_in(files, directory, answer_suffix);
}

study::SteeringFile read_request(storage::FileSystem& files, const StudyDirectory& directory, const std::string& name,
                                 const space::SearchSpace& space) {
    const std::string path = path_of(directory, name, ask_suffix);
    const auto kind = files.kind(path);
    if (kind != storage::FileSystem::Kind::file && kind != storage::FileSystem::Kind::missing)
        throw base::UsageError("a request is a file, which neither a link nor a folder nor a FIFO is");
    if (!files.is_own(path)) throw base::UsageError("only the owner of a study may steer it");
    return study::parse_steering(storage::read_text(files, path, most_request_bytes), space);
}

void answer_request(storage::FileSystem& files, const StudyDirectory& directory, const std::string& name,
                    const Answer& answer) {
    publish_text(files, path_of(directory, name, answer_suffix),
                 (answer.accepted ? "accepted: " : "refused: ") + answer.words + "\n", false);
    remove_entry(files, path_of(directory, name, ask_suffix));
}

std::optional<Answer> take_answer(storage::FileSystem& files, const StudyDirectory& directory,
                                  const std::string& name) {
    const std::string path = path_of(directory, name, answer_suffix);
    if (!files.exists(path)) return std::nullopt;
    const std::string text = storage::read_text(files, path, most_answer_bytes);
    files.remove(path); // the folder stays: another request may be on its way into it
    const auto colon = std::min(text.find(": "), text.size());
    const std::string words(base::trimmed(std::string_view(text).substr(std::min(colon + 2, text.size()))));
    return Answer{text.starts_with("accepted"), words};
}

void remove_answer(storage::FileSystem& files, const StudyDirectory& directory, const std::string& name) {
    remove_entry(files, path_of(directory, name, answer_suffix));
}

} // namespace ranktune::studydir
