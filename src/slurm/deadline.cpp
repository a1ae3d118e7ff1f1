// SPDX-License-Identifier: Apache-2.0
#include "slurm/deadline.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/number_in.hpp"
#include "ranktune/base/text.hpp"
#include "slurm/lists.hpp"

namespace ranktune::slurm {
namespace {

/// Removes and returns the number before position `end`, and the character there. Nothing: no digits, or too many.
std::optional<std::int64_t> take_number(std::string_view& text, std::size_t end) {
    const auto digits = text.substr(0, end);
    const auto value = base::number_in<std::int64_t>(digits);
    if (!value || *value < 0 || *value > 100'000'000) return std::nullopt;
    text.remove_prefix(std::min(digits.size() + 1, text.size()));
    return value;
}

/// "[days-][[hours:]minutes:]seconds" as Slurm prints it: the last number is always seconds.
std::optional<std::chrono::seconds> duration(std::string_view text) {
    std::int64_t days = 0;
    if (const auto dash = text.find('-'); dash != std::string_view::npos) {
        const auto number = take_number(text, dash);
        if (!number) return std::nullopt;
        days = *number;
    }
    if (text.empty() || text.back() == ':') return std::nullopt;
    std::int64_t seconds = 0;
    int parts = 0;
    while (!text.empty()) {
        const auto number = take_number(text, text.find(':'));
        if (!number || ++parts > 3) return std::nullopt;
        seconds = seconds * 60 + *number;
    }
    return std::chrono::seconds(days * 86'400 + seconds);
}

} // namespace

TimeLeft time_left(std::string_view squeue) {
    const auto text = base::trimmed(squeue);
    if (text == "UNLIMITED") return {TimeLeft::Kind::unlimited, {}};
    if (text == "INVALID") return {TimeLeft::Kind::known, std::chrono::seconds(0)};
    const auto left = duration(text);
    if (!left) return {};
    return {TimeLeft::Kind::known, *left};
}

TimeLeft time_left_in_job(std::string_view scontrol) {
    const auto limit_text = field(scontrol, "TimeLimit=");
    if (limit_text == "UNLIMITED") return {TimeLeft::Kind::unlimited, {}};
    const auto limit = duration(limit_text);
    const auto run = duration(field(scontrol, "RunTime="));
    if (!limit || !run) return {};
    return {TimeLeft::Kind::known, std::max(*limit - *run, std::chrono::seconds(0))};
}

JobState job_state(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, JobState>, 34> names{{
        {"PENDING", JobState::pending},       {"PD", JobState::pending},
        {"CONFIGURING", JobState::pending},   {"CF", JobState::pending},
        {"RUNNING", JobState::running},       {"R", JobState::running},
        {"SIGNALING", JobState::running},     {"SI", JobState::running},
        {"SUSPENDED", JobState::suspended},   {"S", JobState::suspended},
        {"STOPPED", JobState::suspended},     {"ST", JobState::suspended},
        {"COMPLETING", JobState::ending},     {"CG", JobState::ending},
        {"STAGE_OUT", JobState::ending},      {"SO", JobState::ending},
        {"REQUEUED", JobState::requeued},     {"RQ", JobState::requeued},
        {"REQUEUE_HOLD", JobState::requeued}, {"RH", JobState::requeued},
        {"COMPLETED", JobState::over},        {"CD", JobState::over},
        {"CANCELLED", JobState::over},        {"CA", JobState::over},
        {"FAILED", JobState::over},           {"F", JobState::over},
        {"TIMEOUT", JobState::over},          {"TO", JobState::over},
        {"NODE_FAIL", JobState::over},        {"NF", JobState::over},
        {"PREEMPTED", JobState::over},        {"PR", JobState::over},
        {"OUT_OF_MEMORY", JobState::over},    {"OOM", JobState::over},
    }};
    auto word = base::trimmed(text);
    word = word.substr(0, word.find_first_of(" +"));
    for (const auto& [name, state] : names)
        if (word == name) return state;
    return JobState::other;
}

} // namespace ranktune::slurm
