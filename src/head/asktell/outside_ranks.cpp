// SPDX-License-Identifier: Apache-2.0
#include "head/asktell/outside_ranks.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::head {

template <class T>
void OutsideRanks::queue(base::Rank from, const T& message) {
    comm::Packet queued{from, {}};
    comm::encode_message(message, queued.bytes);
    to_head_.push_back(std::move(queued));
}

OutsideRanks::OutsideRanks(std::uint32_t ranks, const std::string& version, const std::string& host) : seats_(ranks) {
    for (std::uint32_t i = 0; i < ranks; ++i) {
        seats_[i].rank = base::Rank{i + 1};
        comm::Hello hello;
        hello.version = version;
        hello.host = host;
        queue(seats_[i].rank, hello);
    }
}

void OutsideRanks::send(base::Rank to, std::span<const std::byte> bytes) {
    comm::Message message;
    comm::decode_message(bytes, message);
    if (std::holds_alternative<comm::Alive>(message)) return; // from any thread: touches nothing
    Seat& seat = seats_.at(to.value() - 1);
    const auto is_here = [&seat](const auto& about) {
        return seat.held && comm::key_of(about) == comm::key_of(seat.start);
    };
    if (auto* start = std::get_if<study::StartTrial>(&message)) {
        const study::Iteration iteration = start->iteration;
        seat = {.rank = to, .start = std::move(*start), .held = true, .iteration = iteration};
    } else if (const auto* decide = std::get_if<study::Decide>(&message); decide != nullptr && is_here(*decide)) {
        if (decide->verdict.verb != study::Verb::go_on) seat.verdict = decide->verdict;
    } else if (const auto* interrupt = std::get_if<study::Interrupt>(&message);
               interrupt != nullptr && is_here(*interrupt)) {
        seat.interrupt = interrupt->verdict;
    } else if (std::holds_alternative<comm::Leave>(message)) {
        queue(to, comm::Bye{});
    }
}

std::optional<comm::Packet> OutsideRanks::poll() {
    if (to_head_.empty()) return std::nullopt;
    comm::Packet message = std::move(to_head_.front());
    to_head_.pop_front();
    return message;
}

Seat* OutsideRanks::offered() {
    Seat* first = nullptr;
    for (Seat& seat : seats_)
        if (seat.held && !seat.asked && (first == nullptr || seat.start.trial < first->start.trial)) first = &seat;
    return first;
}

Seat* OutsideRanks::taken(study::TrialId trial) {
    const auto found = std::ranges::find_if(
        seats_, [trial](const Seat& seat) { return seat.held && seat.asked && seat.start.trial == trial; });
    return found == seats_.end() ? nullptr : &*found;
}

} // namespace ranktune::head
