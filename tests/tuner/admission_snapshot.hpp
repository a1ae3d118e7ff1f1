// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trials and the strategy that admits their facts, written and read together, as in a snapshot of the core.

#include "ranktune/study/codec.hpp"
#include "support/catch.hpp"
#include "tuner/admission/admission.hpp"
#include "tuner/values.hpp"

namespace ranktune::tuner::testing {

[[nodiscard]] inline study::Bytes snapshot_of(const Trials& trials, const Admission& admission) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    trials.snapshot(out);
    admission.snapshot(out);
    return bytes;
}

/// Both are new. Whatever was written is read.
inline void restore_from(const study::Bytes& bytes, Trials& trials, Admission& admission) {
    study::Decoder in(bytes);
    trials.restore(in);
    admission.restore(in);
    REQUIRE(in.empty());
}

} // namespace ranktune::tuner::testing
