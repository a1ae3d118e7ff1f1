// SPDX-License-Identifier: Apache-2.0
// The record of earlier results.
#include "study/codec/codec_pieces.hpp"

namespace ranktune::study {
namespace {

void put_earlier(const EarlierTrial& trial, RecordEncoder& out) {
    put(trial.configuration, out);
    out.varint(trial.results.size());
    for (const auto& [iteration, value] : trial.results) {
        out.varint(iteration);
        out.f64(value);
    }
    out.boolean(trial.failed);
}
void get_earlier(EarlierTrial& trial, Decoder& in) {
    trial.configuration = decode_configuration(in);
    trial.results.resize(in.count());
    for (auto& [iteration, value] : trial.results) {
        iteration = in.varint();
        value = in.f64();
    }
    trial.failed = in.boolean();
}

} // namespace

void put(const WarmStarted& r, RecordEncoder& out) {
    out.varint(r.sources.size());
    for (const auto& source : r.sources) {
        out.string(source.path);
        out.varint(source.trials);
        out.varint(source.left_out);
        out.string(source.why);
    }
    out.varint(r.trials.size());
    for (const EarlierTrial& trial : r.trials) put_earlier(trial, out);
}
void get(WarmStarted& r, Decoder& in) {
    r.sources.resize(in.count());
    for (auto& source : r.sources) {
        source.path = in.string();
        source.trials = in.varint();
        source.left_out = in.varint();
        source.why = in.string();
    }
    r.trials.resize(in.count());
    for (EarlierTrial& trial : r.trials) get_earlier(trial, in);
}

} // namespace ranktune::study
