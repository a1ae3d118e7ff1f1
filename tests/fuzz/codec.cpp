// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "comm/wire/protocol.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "ranktune/study/codec.hpp"

namespace ranktune::fuzz {
namespace {

/// Decoded records survive another round of encoding and decoding. Compares bytes, because NaN differs from itself.
void records(study::Decoder in) {
    while (!in.empty()) {
        study::Bytes once;
        study::Bytes again;
        study::encode(study::decode_record(in), once);
        study::Decoder written(once);
        study::encode(study::decode_record(written), again);
        require(written.empty(), "a record takes up all of its bytes");
        require(once == again, "a record that was written reads back as itself");
    }
}

void encode_any(const comm::Message& message, study::Bytes& out) {
    std::visit([&](const auto& one) { comm::encode_message(one, out); }, message);
}

void messages(Input in) {
    comm::Message message; // reused, as in the service loops
    while (!in.empty()) {
        const auto bytes = in.take(in.number<std::uint16_t>() % 512 + 1);
        try {
            comm::decode_message(bytes, message);
        } catch (const base::FormatError&) {
            continue;
        }
        study::Bytes once;
        study::Bytes again;
        encode_any(message, once);
        comm::Message read;
        comm::decode_message(once, read);
        encode_any(read, again);
        require(once == again, "a message that was written reads back as itself");
    }
}

} // namespace

int codec(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    try {
        if (in.u8() % 2 == 0)
            records(study::Decoder(in.take(size)));
        else
            messages(in);
    } catch (const base::FormatError&) { // expected for invalid bytes
    }
    return 0;
}

} // namespace ranktune::fuzz
