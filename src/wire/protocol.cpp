// SPDX-License-Identifier: Apache-2.0
#include "wire/protocol.hpp"

#include <array>
#include <limits>
#include <type_traits>
#include <utility>

namespace ranktune::wire {
namespace {

using study::Decoder;
using study::Encoder;

/// First bytes of every Hello, in every version: "RTHE", little-endian.
constexpr std::uint32_t hello_magic = 0x45485452;

template <class Id>
Id get_id(Decoder& in) {
    const std::uint64_t value = in.varint();
    if (value > std::numeric_limits<typename Id::rep>::max())
        throw base::FormatError("a number in a message is out of range");
    return Id(static_cast<typename Id::rep>(value));
}

template <class Enum>
Enum get_enum(Decoder& in, std::uint8_t last) {
    const std::uint8_t value = in.u8();
    if (value > last) throw base::FormatError("a message holds an unknown code");
    return static_cast<Enum>(value);
}

study::StudyOutcome get_outcome(Decoder& in) {
    const std::uint8_t value = in.u8();
    if (value > 4 && value != static_cast<std::uint8_t>(study::StudyOutcome::resumable))
        throw base::FormatError("a message holds an unknown outcome of the study");
    return static_cast<study::StudyOutcome>(value);
}

void get_string(Decoder& in, std::string& into) {
    const auto view = in.bytes();
    into.assign(reinterpret_cast<const char*>(view.data()), view.size());
}

/// The three fields that open every message about an attempt.
template <class T>
void put_key(Encoder& out, const T& about) {
    out.varint(about.trial.value());
    out.varint(about.attempt.value());
    out.varint(about.incarnation.value());
}
template <class T>
void get_key(Decoder& in, T& about) {
    about.trial = get_id<base::TrialId>(in);
    about.attempt = get_id<base::Attempt>(in);
    about.incarnation = get_id<base::Incarnation>(in);
}

void put_ranks(Encoder& out, const std::vector<base::Rank>& ranks) {
    out.varint(ranks.size());
    for (const base::Rank rank : ranks) out.varint(rank.value());
}
void get_ranks(Decoder& in, std::vector<base::Rank>& ranks) {
    ranks.resize(in.count());
    for (base::Rank& rank : ranks) rank = get_id<base::Rank>(in);
}

void put(Encoder& out, const Hello& m) {
    out.u32(hello_magic);
    out.u8(static_cast<std::uint8_t>(m.protocol));
    out.u8(static_cast<std::uint8_t>(m.protocol >> 8));
    out.string(m.version);
    out.string(m.host);
    out.varint(m.gpus);
    out.string(m.device);
    out.varint(m.nvlink);
    out.string(m.nvlink_fabric);
}
void get(Decoder& in, Hello& m) {
    if (in.u32() != hello_magic) throw base::FormatError("a message is not a ranktune worker's greeting");
    const std::uint8_t low = in.u8();
    m.protocol = static_cast<std::uint16_t>(low | (in.u8() << 8));
    get_string(in, m.version);
    get_string(in, m.host);
    m.gpus = static_cast<std::uint32_t>(in.varint());
    m.device.clear();
    m.nvlink_fabric.clear();
    m.nvlink = 0;
    if (m.protocol != protocol_version) return; // it will be refused
    get_string(in, m.device);
    m.nvlink = static_cast<std::uint32_t>(in.varint());
    get_string(in, m.nvlink_fabric);
}

void put(Encoder& out, const Heartbeat& m) {
    put_key(out, m.key);
    out.varint(m.progress);
}
void get(Decoder& in, Heartbeat& m) {
    get_key(in, m.key);
    m.progress = in.varint();
}

void put(Encoder& out, const StopAsked& m) { out.u8(static_cast<std::uint8_t>(m.by)); }
void get(Decoder& in, StopAsked& m) { m.by = study::decode_asker(in); }

void put(Encoder& out, const study::ReportArrived& m) {
    put_key(out, m);
    out.varint(m.iteration);
    out.f64(m.seconds);
    out.varint(m.metrics.size());
    for (const study::NamedMetric& metric : m.metrics) {
        out.string(metric.name);
        out.f64(metric.value);
    }
}
void get(Decoder& in, study::ReportArrived& m) {
    get_key(in, m);
    m.iteration = in.varint();
    m.seconds = in.f64();
    m.metrics.resize(in.count());
    for (study::NamedMetric& metric : m.metrics) {
        get_string(in, metric.name);
        metric.value = in.f64();
    }
}

void put(Encoder& out, const study::CheckpointSaved& m) {
    put_key(out, m);
    study::encode(m.checkpoint, out);
}
void get(Decoder& in, study::CheckpointSaved& m) {
    get_key(in, m);
    m.checkpoint = study::decode_checkpoint(in);
}

void put(Encoder& out, const GroupOver& m) {
    put_key(out, m.over);
    out.u8(static_cast<std::uint8_t>(m.over.outcome));
    study::encode(m.over.failure, out);
    out.f64(m.starting_s);
    out.f64(m.training_s);
    out.varint(m.unread.size());
    for (const std::string& name : m.unread) out.string(name);
}
void get(Decoder& in, GroupOver& m) {
    get_key(in, m.over);
    m.over.outcome = get_enum<study::AttemptOutcome>(in, static_cast<std::uint8_t>(study::last_attempt_outcome));
    m.over.failure = study::decode_failure(in);
    m.starting_s = in.f64();
    m.training_s = in.f64();
    m.unread.resize(in.count());
    for (std::string& name : m.unread) get_string(in, name);
}

void put(Encoder& out, const Bye& m) {
    out.string(m.why);
    put_key(out, m.hung);
    out.boolean(m.head_silent);
}
void get(Decoder& in, Bye& m) {
    get_string(in, m.why);
    get_key(in, m.hung);
    m.head_silent = in.boolean();
}

void put(Encoder& out, const Welcome& m) {
    out.varint(m.incarnation.value());
    out.string(m.study);
    out.string(m.directory);
    out.svarint(m.heartbeat_interval.count());
    out.svarint(m.head_timeout.count());
    out.svarint(m.abort_grace.count());
    out.svarint(m.progress_timeout.count());
}
void get(Decoder& in, Welcome& m) {
    m.incarnation = get_id<base::Incarnation>(in);
    get_string(in, m.study);
    get_string(in, m.directory);
    m.heartbeat_interval = base::Duration(in.svarint());
    m.head_timeout = base::Duration(in.svarint());
    m.abort_grace = base::Duration(in.svarint());
    m.progress_timeout = base::Duration(in.svarint());
}

void put(Encoder& out, const study::StartTrial& m) {
    put_key(out, m);
    put_ranks(out, m.ranks);
    study::encode(m.configuration, out);
    study::encode(m.from, out);
    put_ranks(out, m.holders);
    out.varint(m.generation);
    out.varint(m.iteration);
    out.f64(m.seconds);
    out.varint(m.decision_point);
    out.svarint(m.between_failures.count());
    out.boolean(m.to_beat.has_value());
    out.f64(m.to_beat.value_or(0.0));
}
void get(Decoder& in, study::StartTrial& m) {
    get_key(in, m);
    get_ranks(in, m.ranks);
    if (m.ranks.empty()) throw base::FormatError("a start message names no ranks");
    m.configuration = study::decode_configuration(in);
    m.from = study::decode_start_from(in);
    get_ranks(in, m.holders);
    m.generation = get_id<base::Attempt>(in).value();
    m.iteration = in.varint();
    m.seconds = in.f64();
    m.decision_point = in.varint();
    m.between_failures = base::Duration(in.svarint());
    const bool has_best = in.boolean();
    const double best = in.f64();
    if (has_best) m.to_beat = best;
}

void put(Encoder& out, const study::Decide& m) {
    put_key(out, m);
    out.varint(m.iteration);
    study::encode(m.verdict, out);
    out.varint(m.decision_point);
}
void get(Decoder& in, study::Decide& m) {
    get_key(in, m);
    m.iteration = in.varint();
    m.verdict = study::decode_verdict(in);
    m.decision_point = in.varint();
}

void put(Encoder& out, const study::Interrupt& m) {
    put_key(out, m);
    study::encode(m.verdict, out);
}
void get(Decoder& in, study::Interrupt& m) {
    get_key(in, m);
    m.verdict = study::decode_verdict(in);
}

void put(Encoder& out, const study::Abandon& m) {
    put_key(out, m);
    put_ranks(out, m.ranks);
}
void get(Decoder& in, study::Abandon& m) {
    get_key(in, m);
    get_ranks(in, m.ranks);
}

void put(Encoder&, const Alive&) {}
void get(Decoder&, Alive&) {}

void put(Encoder& out, const Leave& m) {
    out.u8(static_cast<std::uint8_t>(m.outcome));
    out.boolean(m.clean);
    out.string(m.message);
}
void get(Decoder& in, Leave& m) {
    m.outcome = get_outcome(in);
    m.clean = in.boolean();
    get_string(in, m.message);
}

void put(Encoder& out, const Ready& m) { put_key(out, m.key); }
void get(Decoder& in, Ready& m) { get_key(in, m.key); }
void put(Encoder& out, const Go& m) { put_key(out, m.key); }
void get(Decoder& in, Go& m) { get_key(in, m.key); }

void put(Encoder& out, const MemberOver& m) {
    put_key(out, m.key);
    out.u8(static_cast<std::uint8_t>(m.outcome));
    study::encode(m.failure, out);
}
void get(Decoder& in, MemberOver& m) {
    get_key(in, m.key);
    m.outcome = get_enum<study::AttemptOutcome>(in, static_cast<std::uint8_t>(study::last_attempt_outcome));
    m.failure = study::decode_failure(in);
}

void put(Encoder& out, const CheckpointMissed& m) {
    put_key(out, m.key);
    out.string(m.why);
}
void get(Decoder& in, CheckpointMissed& m) {
    get_key(in, m.key);
    get_string(in, m.why);
}

void put(Encoder& out, const ReportsTaken& m) {
    put_key(out, m.key);
    out.varint(m.reports);
}
void get(Decoder& in, ReportsTaken& m) {
    get_key(in, m.key);
    m.reports = in.varint();
}

void put(Encoder& out, const PlaceNamed& m) {
    put_key(out, m.key);
    out.string(m.host);
    out.string(m.path);
}
void get(Decoder& in, PlaceNamed& m) {
    get_key(in, m.key);
    get_string(in, m.host);
    get_string(in, m.path);
}

void put(Encoder& out, const PlaceContested& m) { put_key(out, m.key); }
void get(Decoder& in, PlaceContested& m) { get_key(in, m.key); }

void put(Encoder& out, const RankEnded& m) { out.varint(m.rank.value()); }
void get(Decoder& in, RankEnded& m) { m.rank = get_id<base::Rank>(in); }
void put(Encoder& out, const EndRank& m) {
    out.varint(m.rank.value());
    out.boolean(m.at_once);
}
void get(Decoder& in, EndRank& m) {
    m.rank = get_id<base::Rank>(in);
    m.at_once = in.boolean();
}
void put(Encoder& out, const RankWaits& m) { out.varint(m.rank.value()); }
void get(Decoder& in, RankWaits& m) { m.rank = get_id<base::Rank>(in); }

/// Position of T in the variant.
template <class T, std::size_t I = 0>
constexpr std::uint8_t kind_of() {
    if constexpr (std::is_same_v<T, std::variant_alternative_t<I, Message>>)
        return static_cast<std::uint8_t>(I);
    else
        return kind_of<T, I + 1>();
}

template <std::size_t I>
void decode_as(Decoder& in, Message& into) {
    if (into.index() != I) into.emplace<I>();
    get(in, *std::get_if<I>(&into));
}

template <std::size_t... I>
constexpr auto table_of_decoders(std::index_sequence<I...>) {
    return std::array<void (*)(Decoder&, Message&), sizeof...(I)>{&decode_as<I>...};
}
constexpr auto decoders = table_of_decoders(std::make_index_sequence<std::variant_size_v<Message>>());

} // namespace

template <class T>
void encode_message(const T& message, study::Bytes& out) {
    out.clear();
    Encoder encoder(out);
    encoder.u8(kind_of<T>());
    put(encoder, message);
}

template void encode_message(const Hello&, study::Bytes&);
template void encode_message(const Heartbeat&, study::Bytes&);
template void encode_message(const StopAsked&, study::Bytes&);
template void encode_message(const study::ReportArrived&, study::Bytes&);
template void encode_message(const study::CheckpointSaved&, study::Bytes&);
template void encode_message(const GroupOver&, study::Bytes&);
template void encode_message(const Bye&, study::Bytes&);
template void encode_message(const Welcome&, study::Bytes&);
template void encode_message(const study::StartTrial&, study::Bytes&);
template void encode_message(const study::Decide&, study::Bytes&);
template void encode_message(const study::Interrupt&, study::Bytes&);
template void encode_message(const study::Abandon&, study::Bytes&);
template void encode_message(const Alive&, study::Bytes&);
template void encode_message(const Leave&, study::Bytes&);
template void encode_message(const Ready&, study::Bytes&);
template void encode_message(const Go&, study::Bytes&);
template void encode_message(const MemberOver&, study::Bytes&);
template void encode_message(const CheckpointMissed&, study::Bytes&);
template void encode_message(const ReportsTaken&, study::Bytes&);
template void encode_message(const PlaceNamed&, study::Bytes&);
template void encode_message(const PlaceContested&, study::Bytes&);
template void encode_message(const RankEnded&, study::Bytes&);
template void encode_message(const EndRank&, study::Bytes&);
template void encode_message(const RankWaits&, study::Bytes&);

void decode_message(std::span<const std::byte> bytes, Message& into) {
    Decoder in(bytes);
    const std::uint8_t kind = in.u8();
    if (kind >= decoders.size()) throw base::FormatError("a message of an unknown kind: " + std::to_string(kind));
    decoders[kind](in, into);
    // Later versions may append fields to Hello: an older head must still be able to name the newer version.
    if (!in.empty() && kind != kind_of<Hello>()) throw base::FormatError("a message is longer than its fields");
}

} // namespace ranktune::wire
