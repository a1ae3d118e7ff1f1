// SPDX-License-Identifier: Apache-2.0
#include "comm/wire/protocol.hpp"

#include <array>
#include <type_traits>
#include <utility>

#include "ranktune/study/schema.hpp"

namespace ranktune::comm {
namespace {

using study::Decoder;
using study::Encoder;

/// First bytes of every Hello, in every version: "RTHE", little-endian.
constexpr std::uint32_t hello_magic = 0x45485452;

// Hello has a form that never changes, so that an older head can name the newer version.
void put_hello(Encoder& out, const Hello& m) {
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
void get_hello(Decoder& in, Hello& m) {
    if (in.u32() != hello_magic) throw base::FormatError("a message is not a ranktune worker's greeting");
    const std::uint8_t low = in.u8();
    m.protocol = static_cast<std::uint16_t>(low | (in.u8() << 8));
    study::get(in, m.version);
    study::get(in, m.host);
    m.gpus = static_cast<std::uint32_t>(in.varint());
    m.device.clear();
    m.nvlink_fabric.clear();
    m.nvlink = 0;
    if (m.protocol != protocol_version) return; // it will be refused
    study::get(in, m.device);
    m.nvlink = static_cast<std::uint32_t>(in.varint());
    study::get(in, m.nvlink_fabric);
}

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
    auto& message = *std::get_if<I>(&into);
    using T = std::remove_reference_t<decltype(message)>;
    if constexpr (std::is_same_v<T, Hello>)
        get_hello(in, message);
    else
        study::get(in, message);
    if constexpr (std::is_same_v<T, study::StartTrial>)
        if (message.ranks.empty()) throw base::FormatError("a start message names no ranks");
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
    if constexpr (std::is_same_v<T, Hello>)
        put_hello(encoder, message);
    else
        study::put(encoder, message);
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
template void encode_message(const Staging&, study::Bytes&);

void decode_message(std::span<const std::byte> bytes, Message& into) {
    Decoder in(bytes);
    const std::uint8_t kind = in.u8();
    if (kind >= decoders.size()) throw base::FormatError("a message of an unknown kind: " + std::to_string(kind));
    decoders[kind](in, into);
    // Later versions may append fields to Hello: an older head must still be able to name the newer version.
    if (!in.empty() && kind != kind_of<Hello>()) throw base::FormatError("a message is longer than its fields");
}

} // namespace ranktune::comm
