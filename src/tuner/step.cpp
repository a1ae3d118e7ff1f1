// SPDX-License-Identifier: Apache-2.0
// A round: takes the next record until there is none.

#include <algorithm>

#include "ranktune/base/digest.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

void Tuner::create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out,
                   const std::string& simulation) {
    Round round{state_.now};
    commit(study::StudyCreated{uuid, resolved_spec, base::digest_of(resolved_spec), version, simulation}, round, out);
    run(round, out);
}

void Tuner::change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out) {
    Round round{now};
    commit(study::StudyChanged{now, resolved_spec, base::digest_of(resolved_spec), version}, round, out);
    run(round, out);
}

void Tuner::reopen(TrialId id, bool from_scratch, StudyTime now, Output& out) {
    Round round{now};
    commit(study::TrialReopened{id, now, from_scratch}, round, out);
    run(round, out);
}

void Tuner::step(const study::Event& event, Output& out) {
    Round round(std::max(event.now, state_.now), &event);
    round.todo.swap(spare_);
    std::visit(
        [&](const auto& body) {
            using Body = std::decay_t<decltype(body)>;
            constexpr bool frees_ranks = std::is_same_v<Body, study::Began> ||
                                         std::is_same_v<Body, study::AttemptOver> ||
                                         std::is_same_v<Body, study::RankGone>;
            constexpr bool ends = std::is_same_v<Body, study::TimerFired> || std::is_same_v<Body, study::StopRequested>;
            if constexpr (frees_ranks || ends) round.push(End{});
            if constexpr (frees_ranks) round.push(Fill{});
        },
        event.body);
    round.push(Take{});
    run(round, out);
    if (round.stale) ++out.stale;
    round.todo.swap(spare_); // empty
}

void Tuner::run(Round& round, Output& out) {
    while (auto record = next(round)) commit(std::move(*record), round, out);
}

Tuner::Next Tuner::next(Round& round) const {
    while (!round.todo.empty()) {
        auto record = std::visit([&](auto& task) { return decide(task, round); }, round.todo.back());
        if (record) return record;
        round.todo.pop_back();
    }
    return {};
}

void Tuner::commit(study::Record record, Round& round, Output& out) {
    const Before before = look(record);
    apply(record);
    follow(record, before, round, out);
    out.records.push_back(std::move(record));
}

} // namespace ranktune::tuner
