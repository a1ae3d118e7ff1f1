// SPDX-License-Identifier: Apache-2.0
#include "report/view/origins.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::report {

/// Moves what was told of a ticket to the trial that has it, or another suggestion in its place.
void Origins::take(std::map<std::uint64_t, Told>& tickets, std::uint64_t ticket, study::TrialId trial) {
    const auto found = tickets.find(ticket);
    if (found == tickets.end()) return;
    told_.push_back(std::move(found->second));
    told_.back().trial = trial;
    tickets.erase(found);
}

void Origins::add(const study::TrialCreated& created) {
    using Kind = study::Origin::Kind;
    const study::Origin& origin = created.origin;
    if (origin.kind == Kind::ticket) {
        take(prepared_, origin.index, created.trial);
        // The searcher succeeds again: no trial had to take another suggestion because of earlier failures.
        failed_.erase(failed_.begin(), failed_.lower_bound(origin.index));
    } else if (origin.kind == Kind::stopgap && origin.count > 0) {
        if (!failed_.empty()) return take(failed_, failed_.begin()->first, created.trial);
        told_.push_back(last_failed_);
        told_.back().trial = created.trial;
    } else if (origin.kind == Kind::user) {
        while (next_request_ < requests_.size() && requests_[next_request_].left == 0) ++next_request_;
        if (next_request_ == requests_.size()) return;
        Request& request = requests_[next_request_];
        --request.left;
        told_.push_back({.trial = created.trial, .record = request.record, .request = next_request_});
    }
}

void Origins::add(const study::Record& record, std::uint64_t number) {
    if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        add(*created);
    } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
        if (prepared->configuration) {
            prepared_[prepared->ticket] = {.trial = {}, .record = number, .basis = prepared->basis};
        } else {
            last_failed_ = {
                .trial = {}, .record = number, .failure = std::make_shared<const std::string>(prepared->why)};
            failed_[prepared->ticket] = last_failed_;
        }
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        failed_.clear();
    } else if (const auto* steered = std::get_if<study::Steered>(&record)) {
        if (steered->ask.verb != study::SteerVerb::add) return;
        requests_.push_back(
            {steered->who, steered->what, base::to_seconds(steered->at), number, steered->ask.points.size()});
    }
}

void Origins::tell(study::TrialId trial, study::SuggestionBasis basis) {
    const auto place = std::ranges::lower_bound(told_, trial, {}, &Told::trial);
    if (place != told_.end() && place->trial == trial) return;
    told_.insert(place, {.trial = trial, .basis = std::move(basis)});
}

OriginView Origins::of(study::TrialId trial, const study::Origin& origin, study::Mode mode) const {
    OriginView view;
    view.origin = origin;
    const auto told = std::ranges::lower_bound(told_, trial, {}, &Told::trial);
    if (told == told_.end() || told->trial != trial) return view;
    if (origin.kind == study::Origin::Kind::user) {
        const Request& request = requests_[told->request];
        view.who = request.who;
        view.asked = request.asked;
        view.asked_s = request.asked_s;
    }
    view.record = told->record;
    view.model = told->basis.model;
    view.results = told->basis.results;
    // Scores are larger for better results.
    if (const auto& score = told->basis.expected) view.expected = mode == study::Mode::max ? *score : -*score;
    view.gain = told->basis.gain;
    view.note = told->basis.note;
    if (told->failure) view.failure = *told->failure;
    return view;
}

} // namespace ranktune::report
