// SPDX-License-Identifier: Apache-2.0
// Records: `varint length, u8 kind, fields`. A reader skips fields that a newer minor version appended.
#include <algorithm>
#include <utility>

#include "ranktune/study/codec.hpp"
#include "study/codec/codec_pieces.hpp"

namespace ranktune::study {

Asker decode_asker(Decoder& in) {
    const std::uint8_t code = in.u8();
    if (code > static_cast<std::uint8_t>(last_asker))
        throw base::FormatError("asker " + std::to_string(code) + " is unknown");
    return static_cast<Asker>(code);
}

namespace {

// ---- pieces ----

/// A reason of a newer version is kept as a number: it only explains.
Reason decode_reason(Decoder& in) { return static_cast<Reason>(in.u8()); }

std::uint32_t decode_u32(Decoder& in, const char* what) {
    const std::uint64_t value = in.varint();
    if (value > std::numeric_limits<std::uint32_t>::max())
        throw base::FormatError(std::string(what) + " " + std::to_string(value) + " is out of range");
    return static_cast<std::uint32_t>(value);
}

StudyOutcome decode_outcome(Decoder& in) {
    const std::uint8_t value = in.u8();
    if (value == static_cast<std::uint8_t>(StudyOutcome::resumable)) return StudyOutcome::resumable;
    return checked_enum(value, StudyOutcome::no_success, "outcome of a study");
}

// ---- one pair per record, in the order of the variant ----

void put(const StudyCreated& r, RecordEncoder& out) {
    out.string(r.uuid);
    out.string(r.spec);
    out.u64(r.digest);
    out.string(r.version);
    out.string(r.simulation);
}
void get(StudyCreated& r, Decoder& in) {
    r.uuid = in.string();
    r.spec = in.string();
    r.digest = in.u64();
    r.version = in.string();
    r.simulation = in.string();
}

void put(const IncarnationBegan& r, RecordEncoder& out) {
    out.varint(r.incarnation.value());
    put_time(r.at, out);
    out.string(r.wall_time);
    out.varint(r.workers.size());
    for (const RankInfo& worker : r.workers) {
        out.varint(worker.rank.value());
        out.string(worker.host);
        out.varint(worker.gpus);
    }
    for (const RankInfo& worker : r.workers) {
        out.varint(worker.domain);
        out.string(worker.switches);
    }
    for (const RankInfo& worker : r.workers) out.string(worker.device);
}
void get(IncarnationBegan& r, Decoder& in) {
    r.incarnation = decode_id<Incarnation>(in);
    r.at = decode_time(in);
    r.wall_time = in.string();
    const std::size_t size = in.count();
    for (std::size_t i = 0; i < size; ++i) {
        RankInfo worker;
        worker.rank = decode_id<Rank>(in);
        worker.host = in.string();
        worker.gpus = decode_u32(in, "number of GPUs");
        r.workers.push_back(std::move(worker));
    }
    for (RankInfo& worker : r.workers) {
        worker.domain = decode_u32(in, "NUMA domain");
        worker.switches = in.string();
    }
    if (in.empty()) return; // earlier versions did not know the GPUs of ranks
    for (RankInfo& worker : r.workers) worker.device = in.string();
}

void put(const MetricDefined& r, RecordEncoder& out) {
    out.varint(r.id.value());
    out.string(r.name);
}
void get(MetricDefined& r, Decoder& in) {
    r.id = decode_id<MetricId>(in);
    r.name = in.string();
}

void put(const TrialCreated& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.varint(r.ranks);
    out.varint(r.bracket);
    out.varint(r.target);
    out.u8(static_cast<std::uint8_t>(r.origin.kind));
    out.varint(r.origin.index);
    out.varint(r.origin.count);
    put(r.configuration, out);
}
void get(TrialCreated& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.ranks = decode_u32(in, "number of ranks");
    r.bracket = decode_u32(in, "bracket");
    r.target = in.varint();
    r.origin.kind = checked_enum(in.u8(), last_origin, "origin of a trial");
    r.origin.index = in.varint();
    r.origin.count = decode_u32(in, "count of an origin");
    r.configuration = decode_configuration(in);
}

void put(const TrialStarted& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    out.varint(r.attempt.value());
    put_time(r.at, out);
    out.varint(r.ranks.size());
    std::uint32_t before = 0; // ascending ranks lie close together: one byte each as differences
    for (const Rank rank : r.ranks) {
        out.svarint(static_cast<std::int64_t>(rank.value()) - before);
        before = rank.value();
    }
    put(r.from, out);
    out.varint(r.gpu_share);
}
void get(TrialStarted& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.attempt = decode_id<Attempt>(in);
    r.at = decode_time(in);
    const std::size_t size = in.count();
    std::uint64_t rank = 0;
    for (std::size_t i = 0; i < size; ++i) {
        rank += static_cast<std::uint64_t>(in.svarint());
        if (rank > std::numeric_limits<std::uint32_t>::max()) throw base::FormatError("a rank is out of range");
        r.ranks.push_back(Rank(static_cast<std::uint32_t>(rank)));
    }
    r.from = decode_start_from(in);
    r.gpu_share = decode_u32(in, "share of a GPU");
}

void put(const CheckpointCommitted& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    out.varint(r.attempt.value());
    put_time(r.at, out);
    put(r.checkpoint, out);
}
void get(CheckpointCommitted& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.attempt = decode_id<Attempt>(in);
    r.at = decode_time(in);
    r.checkpoint = decode_checkpoint(in);
}

void put(const CheckpointReleased& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    out.string(r.path);
    out.boolean(r.stays);
}
void get(CheckpointReleased& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.path = in.string();
    r.stays = in.boolean();
}

void put(const AttemptEnded& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    out.varint(r.attempt.value());
    put_time(r.at, out);
    out.u8(static_cast<std::uint8_t>(r.outcome));
    out.boolean(r.retry);
    put(r.failure, out);
}
void get(AttemptEnded& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.attempt = decode_id<Attempt>(in);
    r.at = decode_time(in);
    r.outcome = checked_enum(in.u8(), last_attempt_outcome, "outcome of an attempt");
    r.retry = in.boolean();
    r.failure = decode_failure(in);
}

void put(const TrialPromoted& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.varint(r.from);
    out.varint(r.target);
    out.u8(static_cast<std::uint8_t>(r.reason));
}
void get(TrialPromoted& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.from = in.varint();
    r.target = in.varint();
    r.reason = decode_reason(in);
}

void put(const TrialClosed& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.u8(static_cast<std::uint8_t>(r.phase));
    out.u8(static_cast<std::uint8_t>(r.reason));
    out.f64(r.a);
    out.f64(r.b);
    put(r.failure, out);
}
void get(TrialClosed& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.phase = checked_enum(in.u8(), TrialPhase::failed, "phase of a trial");
    r.reason = decode_reason(in);
    r.a = in.f64();
    r.b = in.f64();
    r.failure = decode_failure(in);
}

void put(const RankLost& r, RecordEncoder& out) {
    out.varint(r.rank.value());
    put_time(r.at, out);
    out.string(r.why);
    out.boolean(r.guilty);
}
void get(RankLost& r, Decoder& in) {
    r.rank = decode_id<Rank>(in);
    r.at = decode_time(in);
    r.why = in.string();
    r.guilty = in.boolean();
}

void put(const DrainBegan& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.u8(static_cast<std::uint8_t>(r.reason));
    out.string(r.why);
    out.u8(static_cast<std::uint8_t>(r.by));
}
void get(DrainBegan& r, Decoder& in) {
    r.at = decode_time(in);
    r.reason = decode_reason(in);
    r.why = in.string();
    r.by = decode_asker(in);
}

void put(const StudyEnded& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.u8(static_cast<std::uint8_t>(r.outcome));
    out.u8(static_cast<std::uint8_t>(r.reason));
    out.string(r.message);
}
void get(StudyEnded& r, Decoder& in) {
    r.at = decode_time(in);
    r.outcome = decode_outcome(in);
    r.reason = decode_reason(in);
    r.message = in.string();
}

void put(const Snapshot& r, RecordEncoder& out) {
    out.u64(r.digest);
    out.string(r.state);
    out.string(r.spec);
}
void get(Snapshot& r, Decoder& in) {
    r.digest = in.u64();
    r.state = in.string();
    r.spec = in.string();
}

// ---- Reported and ReportHeld: by far the most frequent records, written without a check per byte ----

/// Kind, trial, attempt, time, iteration, seconds, count and verdict at their longest; then the same per metric.
constexpr std::size_t max_reported_bytes = 1 + 5 + 5 + 8 + max_varint_bytes + 8 + max_varint_bytes + max_verdict_bytes;
constexpr std::size_t max_metric_bytes = 3 + 8;

void put(const std::vector<MetricValue>& metrics, ByteWriter& out) {
    out.varint(metrics.size());
    std::int32_t expected = 0; // ids mostly ascend by one, so differences take one byte
    for (const MetricValue& metric : metrics) {
        out.svarint(metric.id.value() - expected);
        out.f64(metric.value);
        expected = metric.id.value() + 1;
    }
}
void get(std::vector<MetricValue>& metrics, Decoder& in) {
    const std::size_t size = in.count();
    if (size > in.left() / 9) throw base::FormatError("a list of metrics is longer than its bytes");
    metrics.reserve(size);
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t id = in.svarint();
        if (id < -expected || id > std::numeric_limits<MetricId::rep>::max() - expected)
            throw base::FormatError("the number of a metric is out of range");
        metrics.push_back({MetricId(static_cast<MetricId::rep>(expected + id)), in.f64()});
        expected += id + 1;
    }
}

/// The fields that Reported and ReportHeld begin with.
template <class Report>
void put_beginning(const Report& r, ByteWriter& out) {
    out.varint(r.trial.value());
    out.varint(r.attempt.value());
    out.u64(static_cast<std::uint64_t>(base::to_ns(r.at)));
    out.varint(r.iteration);
    out.f64(r.seconds);
}
template <class Report>
void get_beginning(Report& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.attempt = decode_id<Attempt>(in);
    r.at = decode_time(in);
    r.iteration = in.varint();
    r.seconds = in.f64();
}

void put(const Reported& r, ByteWriter& out) {
    put_beginning(r, out);
    put(r.verdict, out);
    put(r.metrics, out);
}
void get(Reported& r, Decoder& in) {
    get_beginning(r, in);
    r.verdict = decode_verdict(in);
    if (r.verdict.verb == Verb::discard)
        throw base::FormatError("a record has the verdict discard, which only messages may have");
    get(r.metrics, in);
}

void put(const ReportHeld& r, ByteWriter& out) {
    put_beginning(r, out);
    put(r.metrics, out);
}
void get(ReportHeld& r, Decoder& in) {
    get_beginning(r, in);
    get(r.metrics, in);
}

void put(const StudyChanged& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.string(r.spec);
    out.u64(r.digest);
    out.string(r.version);
}
void get(StudyChanged& r, Decoder& in) {
    r.at = decode_time(in);
    r.spec = in.string();
    r.digest = in.u64();
    r.version = in.string();
}

void put(const TrialReopened& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.boolean(r.from_scratch);
}
void get(TrialReopened& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.from_scratch = in.boolean();
}

void put(const DeadlineSet& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.boolean(r.deadline.has_value());
    if (r.deadline) put_time(*r.deadline, out);
}
void get(DeadlineSet& r, Decoder& in) {
    r.at = decode_time(in);
    if (in.boolean()) r.deadline = decode_time(in);
}

void put(const JobDied& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.varint(r.notes.size());
    for (const JobDied::Note& entry : r.notes) {
        out.varint(entry.note.trial.value());
        out.varint(entry.note.attempt.value());
        out.boolean(entry.retry);
        put(entry.note.failure, out);
    }
}
void get(JobDied& r, Decoder& in) {
    r.at = decode_time(in);
    const std::size_t size = in.count();
    for (std::size_t i = 0; i < size; ++i) {
        JobDied::Note entry;
        entry.note.trial = decode_id<TrialId>(in);
        entry.note.attempt = decode_id<Attempt>(in);
        entry.retry = in.boolean();
        entry.note.failure = decode_failure(in);
        r.notes.push_back(std::move(entry));
    }
}

void put(const YieldAsked& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
}
void get(YieldAsked& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
}

void put(const Exploited& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.varint(r.iteration);
    put(r.donor, out);
    out.varint(r.generation);
    put(r.configuration, out);
}
void get(Exploited& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.iteration = in.varint();
    r.donor = decode_donor(in);
    r.generation = decode_u32(in, "generation");
    r.configuration = decode_configuration(in);
}

void put(const ExploitUndone& r, RecordEncoder& out) {
    out.varint(r.trial.value());
    put_time(r.at, out);
    out.varint(r.generation);
    out.u8(static_cast<std::uint8_t>(r.why));
}
void get(ExploitUndone& r, Decoder& in) {
    r.trial = decode_id<TrialId>(in);
    r.at = decode_time(in);
    r.generation = decode_u32(in, "generation");
    if (!in.empty()) r.why = checked_enum(in.u8(), last_state_loss, "loss of a state"); // earlier versions knew one
}

void put(const Steered& r, RecordEncoder& out) {
    put_time(r.at, out);
    out.string(r.who);
    out.string(r.what);
    out.u64(r.ask.request);
    out.u8(static_cast<std::uint8_t>(r.ask.verb));
    out.varint(r.ask.trial.value());
    out.varint(r.ask.points.size());
    for (const auto& point : r.ask.points) put(point, out);
    out.varint(r.ask.settings.size());
    for (const std::string& setting : r.ask.settings) out.string(setting);
    out.string(r.spec);
}
void get(Steered& r, Decoder& in) {
    r.at = decode_time(in);
    r.who = in.string();
    r.what = in.string();
    r.ask.request = in.u64();
    r.ask.verb = checked_enum(in.u8(), last_steer_verb, "verb of a steering user");
    r.ask.trial = decode_id<TrialId>(in);
    const std::size_t points = in.count();
    for (std::size_t i = 0; i < points; ++i) r.ask.points.push_back(decode_configuration(in));
    const std::size_t settings = in.count();
    for (std::size_t i = 0; i < settings; ++i) r.ask.settings.push_back(in.string());
    r.spec = in.string();
}

void put(const HostRetired& r, RecordEncoder& out) {
    out.string(r.host);
    put_time(r.at, out);
    out.varint(r.trials.size());
    for (const TrialId trial : r.trials) out.varint(trial.value());
    out.string(r.device);
}
void get(HostRetired& r, Decoder& in) {
    r.host = in.string();
    r.at = decode_time(in);
    const std::size_t size = in.count();
    for (std::size_t i = 0; i < size; ++i) r.trials.push_back(decode_id<TrialId>(in));
    if (!in.empty()) r.device = in.string(); // earlier versions took only hosts out of service
}

// ---- frame ----

/// Writes the length of the bytes after `start` to `start`, where one byte is reserved: enough for up to 127 bytes.
void close_frame(GrowingSink& out, std::size_t start) {
    const std::size_t size = out.size() - start - 1;
    if (size < 0x80) {
        *out.at(start) = static_cast<std::byte>(size);
        return;
    }
    std::byte length[max_varint_bytes];
    ByteWriter writer(length);
    writer.varint(size);
    const std::size_t more = writer.size() - 1;
    out.room(more) += more;
    std::memmove(out.at(start + 1 + more), out.at(start + 1), size);
    std::memcpy(out.at(start), length, 1 + more);
}

/// Writes a report where there is room for the longest one, and returns its size. All in one function, so that the
/// write position stays in a register: the bytes written could alias it.
template <class Report>
[[gnu::flatten]] std::size_t write_report(const Report& report, std::uint8_t kind, std::byte* to) {
    ByteWriter writer(to);
    writer.u8(kind);
    put(report, writer);
    return writer.size();
}

template <class Report>
void encode_report(const Report& report, std::uint8_t kind, GrowingSink& out) {
    std::byte*& to = out.room(1 + max_reported_bytes + report.metrics.size() * max_metric_bytes);
    const std::size_t start = out.size();
    const std::size_t size = write_report(report, kind, to + 1);
    *to = static_cast<std::byte>(size);
    to += 1 + size;
    if (size >= 0x80) close_frame(out, start);
}

void encode_record(const Record& record, GrowingSink& out) {
    const auto kind = static_cast<std::uint8_t>(record.index());
    if (const auto* reported = std::get_if<Reported>(&record)) return encode_report(*reported, kind, out);
    if (const auto* held = std::get_if<ReportHeld>(&record)) return encode_report(*held, kind, out);
    const std::size_t start = out.size();
    RecordEncoder encoder(out);
    encoder.u8(0); // for the length
    encoder.u8(kind);
    std::visit(
        [&]<class T>(const T& r) {
            if constexpr (!std::is_same_v<T, Reported> && !std::is_same_v<T, ReportHeld>) put(r, encoder);
        },
        record);
    close_frame(out, start);
}

template <std::size_t Kind>
Record decode_as(Decoder& in) {
    Record record{std::in_place_index<Kind>};
    get(*std::get_if<Kind>(&record), in);
    return record;
}

template <std::size_t... Kinds>
Record decode_kind(std::size_t kind, Decoder& in, std::index_sequence<Kinds...>) {
    using Decode = Record (*)(Decoder&);
    static constexpr Decode table[] = {&decode_as<Kinds>...};
    return table[kind](in);
}

} // namespace

void encode(const Record& record, Bytes& out) { encode(std::span(&record, 1), out); }

void encode(std::span<const Record> records, Bytes& out) {
    constexpr std::size_t usual_record = 128;
    GrowingSink sink(out, usual_record * std::clamp<std::size_t>(records.size(), 2, 32));
    for (const Record& record : records) encode_record(record, sink);
}

Record decode_record(Decoder& in) {
    Decoder fields(in.bytes());
    const std::uint8_t kind = fields.u8();
    constexpr std::size_t kinds = std::variant_size_v<Record>;
    if (kind >= kinds)
        throw base::FormatError("unknown kind of record " + std::to_string(kind) + ", of a newer version");
    return decode_kind(kind, fields, std::make_index_sequence<kinds>());
}

} // namespace ranktune::study
