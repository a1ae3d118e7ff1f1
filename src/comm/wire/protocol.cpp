// SPDX-License-Identifier: Apache-2.0
#include "comm/wire/protocol.hpp"

#include <array>
#include <utility>

namespace ranktune::comm {

using study::Decoder;
using study::Encoder;

namespace {

/// First bytes of every Hello, in every version: "RTHE", little-endian.
constexpr std::uint32_t hello_magic = 0x45485452;

} // namespace

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

namespace {

template <std::size_t I>
void decode_as(Decoder& in, Message& into) {
    if (into.index() != I) into.emplace<I>();
    auto& message = *std::get_if<I>(&into);
    get(in, message);
    if constexpr (I == kind_of<study::StartTrial>())
        if (message.ranks.empty()) throw base::FormatError("a start message names no ranks");
}

template <std::size_t... I>
constexpr auto table_of_decoders(std::index_sequence<I...>) {
    return std::array<void (*)(Decoder&, Message&), sizeof...(I)>{&decode_as<I>...};
}
constexpr auto decoders = table_of_decoders(std::make_index_sequence<std::variant_size_v<Message>>());

} // namespace

void decode_message(std::span<const std::byte> bytes, Message& into) {
    Decoder in(bytes);
    const std::uint8_t kind = in.u8();
    if (kind >= decoders.size()) throw base::FormatError("a message of an unknown kind: " + std::to_string(kind));
    decoders[kind](in, into);
    // Later versions may append fields to Hello: an older head must still be able to name the newer version.
    if (!in.empty() && kind != kind_of<Hello>()) throw base::FormatError("a message is longer than its fields");
}

} // namespace ranktune::comm
