// SPDX-License-Identifier: Apache-2.0
#include "slurm/nodes.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/take_until.hpp"
#include "slurm/deadline.hpp"
#include "slurm/lists.hpp"

namespace ranktune::slurm {
namespace {

std::uint32_t number_or_zero(std::string_view digits) {
    std::uint32_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
}

/// The list of nodes after `before` in the line: letters, digits, `-`, `_`, `.`, `[`, `]` and commas.
std::string_view list_after(std::string_view line, std::string_view before) {
    const auto at = line.find(before);
    if (at == std::string_view::npos) return {};
    const auto begin = at + before.size();
    auto end = begin;
    while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 ||
                                 std::string_view("-_.[],").find(line[end]) != std::string_view::npos))
        ++end;
    auto list = line.substr(begin, end - begin);
    while (!list.empty() && (list.back() == ',' || list.back() == '.')) list.remove_suffix(1);
    return list;
}

} // namespace

std::vector<NodeFacts> nodes_in(std::string_view scontrol) {
    std::vector<NodeFacts> nodes;
    while (!scontrol.empty()) {
        const auto line = base::take_until(scontrol, '\n');
        const auto name = field(line, "NodeName=");
        const auto state = field(line, "State=");
        if (name.empty() || state.empty()) continue;
        nodes.push_back({std::string(name), std::string(state), std::string(field(line, "NodeAddr=")),
                         number_or_zero(field(line, "Port="))});
    }
    return nodes;
}

bool is_gone(std::string_view state) {
    constexpr std::array<std::string_view, 9> gone{
        "DOWN", "FAIL", "FAILING", "ERROR", "FUTURE", "POWERED_DOWN", "POWERING_DOWN", "NOT_RESPONDING", "NO_RESPOND"};
    while (!state.empty()) {
        auto word = base::take_until(state, '+');
        if (!word.empty() && word.back() == '*') return true;
        while (!word.empty() && std::string_view("~#!%$@^-").find(word.back()) != std::string_view::npos)
            word.remove_suffix(1);
        if (std::find(gone.begin(), gone.end(), word) != gone.end()) return true;
    }
    return false;
}

std::uint32_t slurmd_port(std::string_view config) {
    while (!config.empty()) {
        auto line = base::take_until(config, '\n');
        if (line.find("SlurmdPort") == std::string_view::npos) continue;
        const auto digits = line.find_first_of("0123456789");
        if (const auto port = digits == std::string_view::npos ? 0 : number_or_zero(line.substr(digits)); port != 0)
            return port;
    }
    return 6818;
}

std::vector<std::string> nodes_blamed(std::string_view line, const std::vector<std::string>& nodes) {
    std::string_view list;
    for (const std::string_view before : {"Node failure on ", "failed on node ", "failed on nodes "})
        if (list.empty()) list = list_after(line, before);
    std::vector<std::string> found;
    const auto names = expand_hostlist(list);
    if (list.empty() || !names) return found;
    for (const auto& node : nodes) {
        const auto is_this = [&](const std::string& name) {
            return name == node || name.rfind(node + ".", 0) == 0; // with its domain
        };
        if (std::any_of(names->begin(), names->end(), is_this)) found.push_back(node);
    }
    return found;
}

bool may_start_steps(std::string_view scontrol) {
    const auto state = field(scontrol, "JobState=");
    if (!state.empty()) {
        const JobState known = job_state(state);
        if (known != JobState::running && known != JobState::other) return false;
    }
    const auto preempted = field(scontrol, "PreemptTime=");
    if (!preempted.empty() && preempted != "None") return false;
    const TimeLeft left = time_left_in_job(scontrol);
    return left.kind != TimeLeft::Kind::known || left.left >= std::chrono::seconds(30);
}

bool is_about_a_dead_task(std::string_view line) {
    if (!line.starts_with("srun: error: ")) return false;
    for (const std::string_view word : {": task ", ": tasks "}) {
        const auto at = line.find(word);
        const auto end = at == std::string_view::npos ? at : line.find_first_not_of("0123456789,-", at + word.size());
        if (end != std::string_view::npos && line.substr(end).starts_with(": ")) return true;
    }
    return false;
}

} // namespace ranktune::slurm
