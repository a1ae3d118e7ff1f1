// SPDX-License-Identifier: Apache-2.0
#pragma once
// Serialises the values of the core (schema.hpp). One list of fields serves both directions, so they cannot disagree.

#include "ranktune/study/schema.hpp"

namespace ranktune::tuner {

struct Writer {
    study::Encoder& out;
    void operator()(const auto&... values) { (study::put(out, values), ...); }
};

struct Reader {
    study::Decoder& in;
    void operator()(auto&... values) { (study::get(in, values), ...); }
};

} // namespace ranktune::tuner
