// SPDX-License-Identifier: Apache-2.0
#pragma once
// States that travel from rank to rank.

#include <span>
#include <string>
#include <vector>

#include "ranktune/ddp/group.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::worker {

/// A state without the bytes of its tensors.
struct StateForm {
    struct Blob {
        std::string name;
        std::vector<std::byte> bytes;
    };
    std::vector<study::TensorInfo> tensors; ///< in the order of MemoryState::stored_tensors
    std::vector<Blob> blobs;
};
void encode_form(const study::MemoryState& state, study::Bytes& out);
/// Throws base::FormatError.
[[nodiscard]] StateForm decode_form(std::span<const std::byte> bytes);

/// Collective. Copies rank 0's `state` to all ranks; on the others `state` must be empty. Memory: one copy per rank.
void broadcast_state(ddp::Group& group, study::MemoryState& state);

} // namespace ranktune::worker
