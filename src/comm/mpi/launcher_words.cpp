// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/launcher_words.hpp"

#include <algorithm>
#include <array>

namespace ranktune::comm::mpi {
namespace {

bool is_frame(std::string_view line) {
    return line.size() > 60 && line.find_first_not_of('-') == std::string_view::npos;
}

/// "[n1:14064] 2 more processes have sent help message ...", and what follows it.
bool is_count(std::string_view line) {
    return line.starts_with("[") && (line.find("have sent help message") != std::string_view::npos ||
                                     line.find("has sent help message") != std::string_view::npos ||
                                     line.find("orte_base_help_aggregate") != std::string_view::npos);
}

/// A message that only says how a rank ended; the exit code says that too.
bool is_about_an_end(std::string_view block) {
    constexpr std::array ends{"terminated normally, but", "noticed that process rank",
                              "detected that one or more processes exited"};
    return std::any_of(ends.begin(), ends.end(),
                       [&](const char* words) { return block.find(words) != std::string_view::npos; });
}

} // namespace

bool is_noise(std::string_view line) {
    if (line.starts_with("[") && line.find("PMIX ERROR: BAD-PARAM in file") != std::string_view::npos &&
        line.find("pmix_event_notification.c") != std::string_view::npos)
        return true;
    const std::size_t at = line.find(": Forwarding signal ");
    return at != std::string_view::npos && line.substr(0, at).find(' ') == std::string_view::npos;
}

bool LauncherWords::take(std::string_view line) {
    if (block_.empty() && !is_frame(line)) return is_count(line) || is_noise(line);
    const bool closes = !block_.empty() && is_frame(line);
    block_.append(line).append("\n");
    if (closes) close();
    return true;
}

void LauncherWords::close() {
    if (!is_about_an_end(block_)) kept_ += block_;
    block_.clear();
}

std::string LauncherWords::text() const { return is_about_an_end(block_) ? kept_ : kept_ + block_; }

} // namespace ranktune::comm::mpi
