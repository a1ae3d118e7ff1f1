// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/tickets.hpp"

#include <algorithm>
#include <string>

#include "schedulers/checks.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

const Ticket* Tickets::unanswered(std::uint64_t number) const {
    const auto found = std::ranges::find(open_, number, &Ticket::number);
    return found == open_.end() || found->answered ? nullptr : &*found;
}

const Ticket* Tickets::oldest_ready() const {
    const auto found = std::ranges::find_if(open_, [](const Ticket& each) { return each.configuration.has_value(); });
    return found == open_.end() ? nullptr : &*found;
}

void Tickets::check_invariants() const {
    using schedulers::require;
    const Ticket* before = nullptr;
    for (const Ticket& each : open_) {
        const std::string name = "ticket " + std::to_string(each.number);
        require(each.number < next_, name + " has not been opened");
        require(each.answered || !each.configuration, name + " has a configuration but no answer");
        require(before == nullptr || before->number < each.number, name + " is not in order");
        require(before == nullptr || before->seen <= each.seen, name + " sees less than the one before");
        before = &each;
    }
}

void Tickets::add(std::uint64_t number, std::uint64_t seen) {
    if (number != next_) impossible("tickets are not 0, 1, 2, ...");
    next_ = number + 1;
    open_.push_back({number, seen, false, {}});
}

void Tickets::answer(std::uint64_t number, const std::optional<space::Configuration>& configuration, bool keeps_failed,
                     const std::string& why) {
    const auto ticket = std::ranges::find(open_, number, &Ticket::number);
    if (ticket == open_.end() || ticket->answered) impossible("a ticket is prepared that nobody waits for");
    ticket->answered = true;
    ticket->configuration = configuration;
    failures_ = configuration ? 0 : failures_ + 1;
    if (!configuration) why_ = why;
    if (!configuration && !keeps_failed) open_.erase(ticket);
}

void Tickets::take(std::uint64_t number) {
    const auto ticket = std::ranges::find(open_, number, &Ticket::number);
    if (ticket == open_.end()) impossible("a trial takes a ticket that is not there");
    open_.erase(ticket);
}

void Tickets::drop_oldest() {
    if (!open_.empty()) open_.erase(open_.begin());
}

} // namespace ranktune::tuner
