// SPDX-License-Identifier: Apache-2.0
// The records of suggestions: tickets, and earlier results.
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

void put_number(std::optional<double> value, RecordEncoder& out) {
    out.boolean(value.has_value());
    if (value) out.f64(*value);
}
std::optional<double> get_number(Decoder& in) {
    if (!in.boolean()) return std::nullopt;
    return in.f64();
}

void put_basis(const SuggestionBasis& basis, RecordEncoder& out) {
    out.string(basis.model);
    out.varint(basis.results);
    put_number(basis.expected, out);
    put_number(basis.gain, out);
    out.string(basis.note);
}
SuggestionBasis get_basis(Decoder& in) {
    SuggestionBasis basis;
    basis.model = in.string();
    basis.results = in.varint();
    basis.expected = get_number(in);
    basis.gain = get_number(in);
    basis.note = in.string();
    return basis;
}

} // namespace

void put(const TicketOpened& r, RecordEncoder& out) {
    out.varint(r.ticket);
    put_time(r.at, out);
    out.varint(r.seen);
}
void get(TicketOpened& r, Decoder& in) {
    r.ticket = in.varint();
    r.at = decode_time(in);
    r.seen = in.varint();
}

void put(const TicketPrepared& r, RecordEncoder& out) {
    out.varint(r.ticket);
    put_time(r.at, out);
    out.boolean(r.configuration.has_value());
    if (r.configuration) put(*r.configuration, out);
    out.string(r.why);
    put_basis(r.basis, out);
}
void get(TicketPrepared& r, Decoder& in) {
    r.ticket = in.varint();
    r.at = decode_time(in);
    if (in.boolean()) r.configuration = decode_configuration(in);
    r.why = in.string();
    if (!in.empty()) r.basis = get_basis(in); // earlier versions did not say
}

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
