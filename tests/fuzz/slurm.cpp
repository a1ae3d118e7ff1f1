// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "base/take_until.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "slurm/allocation.hpp"
#include "slurm/deadline.hpp"
#include "slurm/gpus.hpp"
#include "slurm/job_state.hpp"
#include "slurm/lists.hpp"
#include "slurm/nodes.hpp"

namespace ranktune::fuzz {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        lines.emplace_back(line);
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    return lines;
}

/// Excludes short lists that stand for up to a million hosts: expanding one takes 0.1 s. The unit tests of lists cover
/// them.
bool is_small(std::string_view text) {
    std::size_t digits = 0;
    for (const char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (digits > 3) return false;
    }
    return std::count(text.begin(), text.end(), '[') < 2;
}

/// "NAME=value" lines.
base::Variables variables_in(std::string_view text) {
    base::Variables variables;
    for (const std::string& line : lines_of(text)) {
        const auto equals = line.find('=');
        if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return variables;
}

void job(std::string_view text) {
    const auto facts = slurm::job_facts(text);
    require(facts.left.left >= std::chrono::seconds(0), "no time left is less than none");
    require(slurm::time_left(text).left >= std::chrono::seconds(0), "no time left is less than none");
    static_cast<void>(slurm::job_state(text));
    static_cast<void>(slurm::may_start_steps(text));
    static_cast<void>(slurm::should_requeue(true, 3, 0, {slurm::Stopped::By::signal, true, true, true}, facts));
}

void nodes(std::string_view text) {
    for (const slurm::NodeFacts& node : slurm::nodes_in(text)) {
        require(!node.name.empty() && !node.state.empty(), "a node has a name and a state");
        static_cast<void>(slurm::is_gone(node.state));
    }
    require(slurm::slurmd_port(text) != 0, "a port is never 0");
    if (!is_small(text)) return;
    for (const std::string& node : slurm::nodes_blamed(text, {"n1", "n2", "login"}))
        require(node == "n1" || node == "n2" || node == "login", "only nodes of the job are blamed");
}

void lists(std::string_view text) {
    static_cast<void>(slurm::expand_devices(text));
    if (!is_small(text)) return;
    static_cast<void>(slurm::expand_hostlist(text));
    static_cast<void>(slurm::expand_counts(text));
}

/// Node, devices, identities of as many devices, and whether they are its own.
slurm::RankOnNode rank_in(std::string_view line) {
    slurm::RankOnNode rank;
    rank.node = base::take_until(line, '\x1f');
    rank.gpus.devices = slurm::expand_devices(base::take_until(line, '\x1f'));
    rank.gpus.identities = slurm::expand_devices(base::take_until(line, '\x1f'));
    rank.gpus.whole = base::take_until(line, '\x1f') == "1";
    if (rank.gpus.identities.size() != rank.gpus.devices.size()) rank.gpus.identities = rank.gpus.devices;
    return rank;
}

void ranks(std::string_view text) {
    std::vector<slurm::RankOnNode> all;
    for (const std::string& line : lines_of(text)) {
        all.push_back(rank_in(line));
        if (all.size() == 8) break;
    }
    const auto shares = slurm::share_gpus(all);
    require(shares.by_rank.size() == all.size(), "every rank has a share");
}

void environment(std::string_view text) {
    if (!is_small(text)) return;
    const auto variables = variables_in(text);
    static_cast<void>(slurm::allocation(variables));
    const auto gpus = slurm::visible_gpus(variables, 2);
    require(gpus.devices.size() == gpus.identities.size(), "every device has an identity");
    static_cast<void>(slurm::switches_above(variables, "n1"));
    static_cast<void>(slurm::cpus_on_node(variables));
}

} // namespace

int slurm(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const auto text = text_of(data + 1, size - 1);
    switch (data[0] % 5) {
        case 0:
            job(text);
            break;
        case 1:
            nodes(text);
            break;
        case 2:
            lists(text);
            break;
        case 3:
            ranks(text);
            break;
        default:
            environment(text);
    }
    return 0;
}

} // namespace ranktune::fuzz
