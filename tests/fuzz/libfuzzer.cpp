// SPDX-License-Identifier: Apache-2.0
// One target as a program of libFuzzer: compiled with -DRANKTUNE_FUZZ_TARGET=program.
#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return ranktune::fuzz::RANKTUNE_FUZZ_TARGET(data, size);
}
