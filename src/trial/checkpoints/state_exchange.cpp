// SPDX-License-Identifier: Apache-2.0
#include "trial/checkpoints/state_exchange.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "ranktune/study/codec.hpp"

namespace ranktune::trial {
namespace {

/// Names, types, shapes and sizes of the tensors, then the blobs whole.
study::Bytes describe(const study::MemoryState& state) {
    study::Bytes out;
    study::Encoder encoder(out);
    encoder.varint(state.stored_tensors().size());
    for (const auto& tensor : state.stored_tensors()) {
        encoder.string(tensor.info.name);
        encoder.u8(static_cast<std::uint8_t>(tensor.info.type));
        encoder.u8(static_cast<std::uint8_t>(tensor.info.layout));
        encoder.varint(tensor.info.shape.size());
        for (const auto extent : tensor.info.shape) encoder.varint(extent);
        encoder.varint(tensor.bytes.size());
    }
    encoder.varint(state.stored_blobs().size());
    for (const auto& blob : state.stored_blobs()) {
        encoder.string(blob.name);
        encoder.bytes(blob.bytes);
    }
    return out;
}

study::TensorInfo decode_info(study::Decoder& in) {
    study::TensorInfo info;
    info.name = in.string();
    info.type = static_cast<study::DType>(in.u8());
    info.layout = static_cast<study::Layout>(in.u8());
    info.shape.resize(in.count());
    for (auto& extent : info.shape) extent = in.varint();
    return info;
}

void receive(ddp::Group& group, const study::Bytes& description, study::MemoryState& state) {
    study::Decoder in(description);
    for (std::size_t left = in.count(); left > 0; --left) {
        const auto info = decode_info(in);
        std::vector<std::byte> bytes(in.varint());
        group.broadcast(bytes);
        state.tensor(info, base::ConstBuffer::of_bytes(bytes, info.type));
    }
    for (std::size_t left = in.count(); left > 0; --left) {
        const auto name = in.string();
        state.blob(name, in.bytes());
    }
}

} // namespace

void broadcast_state(ddp::Group& group, study::MemoryState& state) {
    if (group.size() == 1) return;
    study::Bytes description;
    if (group.rank() == 0) description = describe(state);
    std::uint64_t size = description.size();
    group.broadcast(std::span(&size, 1));
    description.resize(size);
    group.broadcast(description);
    if (group.rank() != 0) {
        receive(group, description, state);
        return;
    }
    for (const auto& tensor : state.stored_tensors()) {
        // The root's bytes are only read; the interface takes them writable for the other ranks.
        auto* data = const_cast<std::byte*>(tensor.bytes.data());
        group.broadcast(std::span(data, tensor.bytes.size()));
    }
}

} // namespace ranktune::trial
