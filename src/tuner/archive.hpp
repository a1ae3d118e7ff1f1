// SPDX-License-Identifier: Apache-2.0
#pragma once
// Serialises the values of the core. One list of fields serves both directions, so they cannot disagree.

#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "tuner/admission/logical.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

struct Writer {
    study::Encoder& out;

    void operator()(const bool& v) { out.boolean(v); }
    void operator()(const double& v) { out.f64(v); }
    void operator()(const std::string& v) { out.string(v); }
    void operator()(const StudyTime& v) { out.svarint(base::to_ns(v)); }
    void operator()(const CheckpointRef& v) { study::encode(v, out); }
    void operator()(const Donor& v) { study::encode(v, out); }
    void operator()(const Failure& v) { study::encode(v, out); }
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
    void operator()(const DeviceState& v) { fields(*this, v); }
    void operator()(const PlaceRecord& v) { fields(*this, v); }
    void operator()(const PlaceRecord::Failure& v) { fields(*this, v); }
    void operator()(const FailureWords& v) { fields(*this, v); }
    void operator()(const Origin& v) { fields(*this, v); }
    void operator()(const study::Score& v) {
        out.boolean(v.feasible);
        out.f64(v.violation);
        out.varint(v.values().size());
        for (const double value : v.values()) out.f64(value);
    }
    void operator()(const LastResults::Entry& v) { fields(*this, v); }
    void operator()(const Takeover& v) { fields(*this, v); }
    void operator()(const UndoneTakeover& v) { fields(*this, v); }
    void operator()(const ChangeOfState& v) { fields(*this, v); }
    void operator()(const Nearest& v) { fields(*this, v); }
    void operator()(const Ticket& v) { fields(*this, v); }
    void operator()(const TrialState& v) { fields(*this, v); }

    template <class Self, class T>
    static void fields(Self& self, T& v);
};

struct Reader {
    study::Decoder& in;
    space::Configuration before{}; ///< of the previous trial, which mostly has the same parameters

    void operator()(bool& v) { v = in.boolean(); }
    void operator()(double& v) { v = in.f64(); }
    void operator()(std::string& v) { v = in.string(); }
    void operator()(StudyTime& v) { v = base::from_ns(in.svarint()); }
    void operator()(CheckpointRef& v) { v = study::decode_checkpoint(in); }
    void operator()(Donor& v) { v = study::decode_donor(in); }
    void operator()(Failure& v) { v = study::decode_failure(in); }
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
    void operator()(DeviceState& v) { Writer::fields(*this, v); }
    void operator()(PlaceRecord& v) { Writer::fields(*this, v); }
    void operator()(PlaceRecord::Failure& v) { Writer::fields(*this, v); }
    void operator()(FailureWords& v) { Writer::fields(*this, v); }
    void operator()(Origin& v) { Writer::fields(*this, v); }
    void operator()(study::Score& v) {
        const bool feasible = in.boolean();
        const double violation = in.f64();
        std::vector<double> values;
        for (std::size_t n = in.count(); n > 0; --n) values.push_back(in.f64());
        v = study::Score(values, feasible);
        v.violation = violation;
    }
    void operator()(LastResults::Entry& v) { Writer::fields(*this, v); }
    void operator()(Takeover& v) { Writer::fields(*this, v); }
    void operator()(UndoneTakeover& v) { Writer::fields(*this, v); }
    void operator()(ChangeOfState& v) { Writer::fields(*this, v); }
    void operator()(Nearest& v) { Writer::fields(*this, v); }
    void operator()(Ticket& v) { Writer::fields(*this, v); }
    void operator()(TrialState& v) { Writer::fields(*this, v); }
};

template <class Self, class T>
void Writer::fields(Self& self, T& v) {
    const auto each = [&self](auto&... field) { (self(field), ...); };
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, RankInfo>) {
        each(v.rank, v.host, v.gpus, v.domain, v.switches, v.device);
    } else if constexpr (std::is_same_v<Plain, WorkerState>) {
        each(v.info, v.alive, v.spare, v.trial, v.host, v.device, v.lost_at, v.lost_why, v.lost_from);
    } else if constexpr (std::is_same_v<Plain, study::MetricValue>) {
        each(v.id, v.value);
    } else if constexpr (std::is_same_v<Plain, study::ReportHeld>) {
        each(v.trial, v.attempt, v.at, v.iteration, v.seconds, v.metrics);
    } else if constexpr (std::is_same_v<Plain, HeldEnd>) {
        each(v.outcome, v.failure);
    } else if constexpr (std::is_same_v<Plain, LogicalSlot>) {
        each(v.trial, v.clock, v.received, v.held, v.end);
    } else if constexpr (std::is_same_v<Plain, HostState>) {
        each(v.name, v.retired);
    } else if constexpr (std::is_same_v<Plain, DeviceState>) {
        each(v.name, v.host, v.retired);
    } else if constexpr (std::is_same_v<Plain, PlaceRecord>) {
        each(v.well, v.failed);
    } else if constexpr (std::is_same_v<Plain, PlaceRecord::Failure>) {
        each(v.trial, v.words, v.unstarted, v.device);
    } else if constexpr (std::is_same_v<Plain, Origin>) {
        each(v.kind, v.index, v.count);
    } else if constexpr (std::is_same_v<Plain, LastResults::Entry>) {
        each(v.trial, v.result.score, v.result.distances);
    } else if constexpr (std::is_same_v<Plain, Takeover>) {
        each(v.iteration, v.donor, v.before, v.number, v.donor_takeover);
    } else if constexpr (std::is_same_v<Plain, UndoneTakeover>) {
        each(v.takeover, v.after, v.why);
    } else if constexpr (std::is_same_v<Plain, ChangeOfState>) {
        each(v.attempt, v.takeover);
    } else if constexpr (std::is_same_v<Plain, Nearest>) {
        each(v.trial, v.iteration, v.score, v.values, v.distances);
    } else if constexpr (std::is_same_v<Plain, Ticket>) {
        each(v.number, v.seen, v.answered, v.configuration);
    } else if constexpr (std::is_same_v<Plain, FailureWords>) {
        each(v.digest, v.host, v.elsewhere, v.device, v.on_others);
    } else {
        each(v.phase, v.reported, v.abandoned, v.at_fault, v.silent, v.unheard, v.attempt, v.iteration,
             v.attempt_iteration, v.decision_point, v.unsaved, v.seconds, v.pace, v.since, v.last, v.best,
             v.best_iteration, v.verdict, v.wanted_ranks, v.bracket, v.losses, v.failures, v.failed_at,
             v.failure_digest, v.deaths, v.deaths_alone, v.died_at, v.overtaken, v.target, v.closed_by, v.closed_a,
             v.closed_b, v.created, v.started, v.ended, v.ranks, v.checkpoints, v.window, v.failure, v.configuration,
             v.winding, v.slot, v.origin, v.takeovers, v.unsettled, v.on_hold, v.others, v.undone, v.changes,
             v.best_takeover, v.newest_iteration, v.newest_takeover, v.has_saved, v.of_earlier_life, v.dies_saving);
    }
}

} // namespace ranktune::tuner
