// SPDX-License-Identifier: Apache-2.0
#include "launch/node_survey.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <memory>

#include "process/command_output.hpp"
#include "ranktune/base/text.hpp"
#include "slurm/nodes.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::launch {
namespace {

using storage::FileDescriptor;
using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds probe_time{3};

/// Output of `scontrol show ...`; empty when it fails or takes too long.
std::string shown(std::vector<std::string> what) {
    what.insert(what.begin(), {"scontrol", "show"});
    return process::run_command(what, std::chrono::seconds(10)).text;
}

/// A pending connection to a node's slurmd.
struct Probe {
    std::string node;
    FileDescriptor socket; ///< empty: answered
};

enum class Answer { living, gone, pending };

/// A refused or unreachable node has no slurmd. An address that cannot be resolved tells nothing.
Answer begin(const slurm::NodeFacts& node, std::uint32_t port, Probe& probe) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(node.address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return Answer::living;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> holder(found, &freeaddrinfo);
    probe.socket.reset(socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol));
    if (!probe.socket) return Answer::living;
    if (connect(probe.socket.get(), found->ai_addr, found->ai_addrlen) == 0) return Answer::living;
    return errno == EINPROGRESS ? Answer::pending : Answer::gone;
}

Answer finished(const FileDescriptor& socket) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? Answer::living : Answer::gone;
}

std::vector<std::string> without_slurmd(const std::vector<slurm::NodeFacts>& nodes, std::uint32_t common_port) {
    std::vector<std::string> gone;
    std::vector<Probe> probes;
    for (const auto& node : nodes) {
        if (node.address.empty()) continue;
        Probe probe{node.name, {}};
        const Answer answer = begin(node, node.port == 0 ? common_port : node.port, probe);
        if (answer == Answer::gone) gone.push_back(node.name);
        if (answer == Answer::pending) probes.push_back(std::move(probe));
    }
    const auto until = Steady::now() + probe_time;
    while (!probes.empty()) {
        std::vector<pollfd> wanted;
        for (const auto& probe : probes) wanted.push_back({probe.socket.get(), POLLOUT, 0});
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
        if (left <= 0 || poll(wanted.data(), wanted.size(), static_cast<int>(left)) <= 0) break;
        std::vector<Probe> open;
        for (std::size_t i = 0; i < probes.size(); ++i) {
            if (wanted[i].revents == 0)
                open.push_back(std::move(probes[i]));
            else if (finished(probes[i].socket) == Answer::gone)
                gone.push_back(probes[i].node);
        }
        probes = std::move(open);
    }
    for (const auto& probe : probes) gone.push_back(probe.node); // no answer
    return gone;
}

} // namespace

std::map<std::string, std::string> nodes_gone(const std::vector<std::string>& nodes) {
    std::map<std::string, std::string> gone;
    const auto facts = slurm::nodes_in(shown({"node", "--oneliner", base::join(nodes, ",")}));
    for (const auto& node : facts)
        if (slurm::is_gone(node.state)) gone.emplace(node.name, node.state);
    std::vector<slurm::NodeFacts> others;
    for (const auto& node : facts)
        if (gone.count(node.name) == 0) others.push_back(node);
    if (others.empty()) return gone;
    const auto silent = without_slurmd(others, slurm::slurmd_port(shown({"config"})));
    // If no node answers, the network or a firewall is the cause: do not judge.
    if (silent.size() < others.size())
        for (const auto& node : silent) gone.emplace(node, "its slurmd does not answer");
    return gone;
}

bool job_goes_on(const std::string& job) {
    return job.empty() || slurm::may_start_steps(shown({"job", "--oneliner", job}));
}

} // namespace ranktune::launch
