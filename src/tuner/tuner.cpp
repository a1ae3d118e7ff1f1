// SPDX-License-Identifier: Apache-2.0
#include "tuner/tuner.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {

// The searcher keeps a reference to the specification: it lives in Impl, whose address never changes.
Tuner::Impl::Impl(study::StudySpec given)
    : spec(std::move(given)), searcher(searchers::make_searcher(spec)), scheduler(schedulers::make_scheduler(spec)) {
    // Moving all trials again and again while their table grows would cost more than deciding about them.
    constexpr std::uint32_t reserved = 1'000'000;
    state.trials.reserve(std::min(spec.num_trials, reserved));
    if (spec.deterministic) state.logical = LogicalTime(spec.max_concurrent);
}

Tuner::Tuner(study::StudySpec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}
Tuner::~Tuner() = default;
Tuner::Tuner(Tuner&&) noexcept = default;
Tuner& Tuner::operator=(Tuner&&) noexcept = default;

void Tuner::create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out) {
    impl_->commit(study::StudyCreated{uuid, resolved_spec, base::digest_of(resolved_spec), version}, out);
}

void Tuner::change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out) {
    impl_->commit(study::StudyChanged{now, resolved_spec, base::digest_of(resolved_spec), version}, out);
}

void Tuner::reopen(TrialId id, bool from_scratch, StudyTime now, Output& out) {
    impl_->reopen(id, from_scratch, now, out);
}

void Tuner::step(const study::Event& event, Output& out) { impl_->step(event, out); }
void Tuner::apply(const study::Record& record) { impl_->apply(record); }
std::vector<study::Command> Tuner::pending_commands() const { return impl_->pending_commands(); }
const State& Tuner::state() const { return impl_->state; }
const study::StudySpec& Tuner::spec() const { return impl_->spec; }
const schedulers::Scheduler& Tuner::scheduler() const { return *impl_->scheduler; }
void Tuner::check_invariants() const { impl_->check_invariants(); }
void Tuner::snapshot(study::Encoder& out) const { impl_->snapshot(out); }
void Tuner::restore(study::Decoder& in) { impl_->restore(in); }

std::uint64_t Tuner::digest() const {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    impl_->snapshot(encoder);
    return base::Digest().add(bytes).value();
}

bool would_be_started_again(const State& state) {
    return state.draining && (state.drain_reason == Reason::deadline || state.drain_reason == Reason::draining);
}

std::uint64_t progress_of(const State& state) {
    std::uint64_t figure = state.deaths_alone;
    for (const TrialState& trial : state.trials) figure += trial.iteration + (is_final(trial.phase) ? 1U : 0U);
    return figure;
}

} // namespace ranktune::tuner
