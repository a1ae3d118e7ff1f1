// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/state_exchange.hpp"

#include <cstdint>
#include <utility>

namespace ranktune::worker {
namespace {

study::TensorInfo decode_info(study::Decoder& in) {
    study::TensorInfo info;
    info.name = in.string();
    info.type = static_cast<study::DType>(in.u8());
    info.layout = static_cast<study::Layout>(in.u8());
    info.shape.resize(in.count());
    for (auto& extent : info.shape) extent = in.varint();
    info.first_row = in.varint();
    info.rows = in.varint();
    return info;
}

void receive(ddp::Group& group, const StateForm& form, study::MemoryState& state) {
    for (const auto& info : form.tensors) group.broadcast(state.add(info));
    for (const auto& blob : form.blobs) state.blob(blob.name, blob.bytes);
}

} // namespace

void encode_form(const study::MemoryState& state, study::Bytes& out) {
    study::Encoder encoder(out);
    encoder.varint(state.stored_tensors().size());
    for (const auto& tensor : state.stored_tensors()) {
        encoder.string(tensor.info.name);
        encoder.u8(static_cast<std::uint8_t>(tensor.info.type));
        encoder.u8(static_cast<std::uint8_t>(tensor.info.layout));
        encoder.varint(tensor.info.shape.size());
        for (const auto extent : tensor.info.shape) encoder.varint(extent);
        encoder.varint(tensor.info.first_row);
        encoder.varint(tensor.info.rows);
    }
    encoder.varint(state.stored_blobs().size());
    for (const auto& blob : state.stored_blobs()) {
        encoder.string(blob.name);
        encoder.bytes(blob.bytes);
    }
}

StateForm decode_form(std::span<const std::byte> bytes) {
    study::Decoder in(bytes);
    StateForm form;
    for (std::size_t left = in.count(); left > 0; --left) form.tensors.push_back(decode_info(in));
    for (std::size_t left = in.count(); left > 0; --left) {
        std::string name = in.string();
        const auto blob = in.bytes();
        form.blobs.push_back({std::move(name), {blob.begin(), blob.end()}});
    }
    return form;
}

void broadcast_state(ddp::Group& group, study::MemoryState& state) {
    if (group.size() == 1) return;
    study::Bytes description;
    if (group.rank() == 0) encode_form(state, description);
    std::uint64_t size = description.size();
    group.broadcast(std::span(&size, 1));
    description.resize(size);
    group.broadcast(description);
    if (group.rank() != 0) {
        receive(group, decode_form(description), state);
        return;
    }
    for (const auto& tensor : state.stored_tensors()) {
        // The root's bytes are only read; the interface takes them writable for the other ranks.
        auto* data = const_cast<std::byte*>(tensor.bytes.data());
        group.broadcast(std::span(data, tensor.bytes.size()));
    }
}

} // namespace ranktune::worker
