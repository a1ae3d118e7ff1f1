// SPDX-License-Identifier: Apache-2.0
// The whole state as bytes and back. One list of fields serves both directions, so they cannot disagree.

#include <bit>
#include <type_traits>

#include "ranktune/base/digest.hpp"
#include "tuner/core.hpp"
#include "tuner/resume.hpp"

namespace ranktune::tuner {
namespace {

constexpr std::uint8_t snapshot_version = 8;

struct Writer {
    study::Encoder& out;

    void operator()(const bool& v) { out.boolean(v); }
    void operator()(const double& v) { out.f64(v); }
    void operator()(const std::string& v) { out.string(v); }
    void operator()(const StudyTime& v) { out.svarint(base::to_ns(v)); }
    void operator()(const CheckpointRef& v) { study::encode(v, out); }
    void operator()(const space::Configuration& v) { study::encode(v, out); }
    void operator()(const Verdict& v) { study::encode(v, out); }
    template <class T>
    requires std::is_unsigned_v<T>
    void operator()(const T& v) { out.varint(v); }
    template <class T>
    requires std::is_enum_v<T>
    void operator()(const T& v) { out.u8(static_cast<std::uint8_t>(v)); }
    template <class Tag, class Rep>
    void operator()(const base::Id<Tag, Rep>& v) {
        out.varint(v.value());
    }
    template <class T>
    void operator()(const std::optional<T>& v) {
        out.boolean(v.has_value());
        if (v) (*this)(*v);
    }
    template <class T, class Allocator>
    void operator()(const std::vector<T, Allocator>& v) {
        out.varint(v.size());
        for (const auto& item : v) (*this)(item);
    }
    template <class T>
    void operator()(const std::deque<T>& v) {
        out.varint(v.size());
        for (const auto& item : v) (*this)(item);
    }
    void operator()(const RankInfo& v) { fields(*this, v); }
    void operator()(const study::MetricValue& v) { fields(*this, v); }
    void operator()(const study::ReportHeld& v) { fields(*this, v); }
    void operator()(const HeldEnd& v) { fields(*this, v); }
    void operator()(const LogicalSlot& v) { fields(*this, v); }
    void operator()(const WorkerState& v) { fields(*this, v); }
    void operator()(const HostState& v) { fields(*this, v); }
    void operator()(const HostState::Failure& v) { fields(*this, v); }
    void operator()(const FailureWords& v) { fields(*this, v); }
    void operator()(const TrialState& v) { fields(*this, v); }

    template <class Self, class T>
    static void fields(Self& self, T& v);
};

struct Reader {
    study::Decoder& in;
    space::Configuration before{}; ///< of the trial before, whose parameters are mostly the same

    void operator()(bool& v) { v = in.boolean(); }
    void operator()(double& v) { v = in.f64(); }
    void operator()(std::string& v) { v = in.string(); }
    void operator()(StudyTime& v) { v = base::from_ns(in.svarint()); }
    void operator()(CheckpointRef& v) { v = study::decode_checkpoint(in); }
    void operator()(space::Configuration& v) {
        v = study::decode_configuration(in);
        v.share_names(before);
        before = v;
    }
    void operator()(Verdict& v) { v = study::decode_verdict(in); }
    template <class T>
    requires std::is_unsigned_v<T>
    void operator()(T& v) { v = static_cast<T>(in.varint()); }
    template <class T>
    requires std::is_enum_v<T>
    void operator()(T& v) { v = static_cast<T>(in.u8()); }
    template <class Tag, class Rep>
    void operator()(base::Id<Tag, Rep>& v) {
        v = base::Id<Tag, Rep>{static_cast<Rep>(in.varint())};
    }
    template <class T>
    void operator()(std::optional<T>& v) {
        v.reset();
        if (in.boolean()) (*this)(v.emplace());
    }
    template <class T, class Allocator>
    void operator()(std::vector<T, Allocator>& v) {
        v.clear();
        v.resize(in.count());
        for (auto& item : v) (*this)(item);
    }
    template <class T>
    void operator()(std::deque<T>& v) {
        v.clear();
        v.resize(in.count());
        for (auto& item : v) (*this)(item);
    }
    void operator()(RankInfo& v) { Writer::fields(*this, v); }
    void operator()(study::MetricValue& v) { Writer::fields(*this, v); }
    void operator()(study::ReportHeld& v) { Writer::fields(*this, v); }
    void operator()(HeldEnd& v) { Writer::fields(*this, v); }
    void operator()(LogicalSlot& v) { Writer::fields(*this, v); }
    void operator()(WorkerState& v) { Writer::fields(*this, v); }
    void operator()(HostState& v) { Writer::fields(*this, v); }
    void operator()(HostState::Failure& v) { Writer::fields(*this, v); }
    void operator()(FailureWords& v) { Writer::fields(*this, v); }
    void operator()(TrialState& v) { Writer::fields(*this, v); }
};

template <class Self, class T>
void Writer::fields(Self& self, T& v) {
    const auto each = [&self](auto&... field) { (self(field), ...); };
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, RankInfo>) {
        each(v.rank, v.host, v.gpus, v.domain, v.switches);
    } else if constexpr (std::is_same_v<Plain, WorkerState>) {
        each(v.info, v.alive, v.trial, v.host);
    } else if constexpr (std::is_same_v<Plain, study::MetricValue>) {
        each(v.id, v.value);
    } else if constexpr (std::is_same_v<Plain, study::ReportHeld>) {
        each(v.trial, v.attempt, v.at, v.iteration, v.seconds, v.metrics);
    } else if constexpr (std::is_same_v<Plain, HeldEnd>) {
        each(v.outcome, v.message);
    } else if constexpr (std::is_same_v<Plain, LogicalSlot>) {
        each(v.trial, v.clock, v.received, v.held, v.end);
    } else if constexpr (std::is_same_v<Plain, HostState>) {
        each(v.name, v.retired, v.well, v.failed);
    } else if constexpr (std::is_same_v<Plain, HostState::Failure>) {
        each(v.trial, v.words, v.unstarted);
    } else if constexpr (std::is_same_v<Plain, FailureWords>) {
        each(v.digest, v.host, v.elsewhere);
    } else {
        each(v.phase, v.reported, v.abandoned, v.at_fault, v.silent, v.unheard, v.attempt, v.iteration,
             v.attempt_iteration, v.decision_point, v.unsaved, v.seconds, v.pace, v.since, v.last, v.best,
             v.best_iteration, v.verdict, v.wanted_ranks, v.bracket, v.losses, v.failures, v.failed_at, v.failure,
             v.deaths, v.deaths_alone, v.died_at, v.overtaken, v.target, v.closed_by, v.closed_a, v.closed_b, v.created,
             v.started, v.ended, v.ranks, v.checkpoints, v.window, v.message, v.configuration, v.winding, v.slot);
    }
}

/// Everything but stale_events: what was dropped is no decision.
template <class Archive, class S>
void state_fields(Archive& archive, S& s) {
    const auto each = [&archive](auto&... field) { (archive(field), ...); };
    each(s.uuid, s.version, s.wall_time, s.incarnation, s.now, s.began, s.metrics, s.trials, s.workers, s.hosts,
         s.words, s.reports, s.records, s.iterations, s.early_failures, s.in_a_row, s.deaths_alone, s.interruptions,
         s.best, s.keeper, s.ever_saved, s.checkpoint_bytes, s.deadline, s.pace, s.starting, s.saving, s.stretch,
         s.draining, s.drain_began, s.drain_reason, s.drain_message, s.ended, s.outcome, s.end_reason, s.end_message,
         s.deterministic_until);
    for (auto& count : s.count) archive(count);
}

} // namespace

bool is_of_this_version(const study::Snapshot& snapshot) {
    return !snapshot.state.empty() && static_cast<std::uint8_t>(snapshot.state.front()) == snapshot_version;
}

void Tuner::Impl::snapshot(study::Encoder& out) const {
    out.u8(snapshot_version);
    Writer writer{out};
    state_fields(writer, state);
    writer(state.logical.now());
    writer(state.logical.slots());
    scheduler->snapshot(out);
    searcher->snapshot(out);
}

void Tuner::Impl::restore(study::Decoder& in) {
    if (in.u8() != snapshot_version)
        throw base::FormatError("this snapshot was written by another version of ranktune");
    State fresh;
    Reader reader{in};
    state_fields(reader, fresh);
    double logical_now = 0.0;
    std::vector<LogicalSlot> slots;
    reader(logical_now);
    reader(slots);
    fresh.logical.restored(logical_now, std::move(slots));
    state = std::move(fresh);
    scheduler->restore(in);
    searcher->restore(in);
    rebuild_derived();
}

} // namespace ranktune::tuner
