// SPDX-License-Identifier: Apache-2.0
#include "tuner/resume.hpp"

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::tuner {
namespace {

bool restore(Tuner& tuner, const study::Snapshot& snapshot) {
    try {
        study::Decoder in(std::as_bytes(std::span(snapshot.state)));
        tuner.restore(in);
    } catch (const base::FormatError&) {
        return false;
    }
    return tuner.digest() == snapshot.digest;
}

} // namespace

std::unique_ptr<Tuner> resumed(const std::string& spec, const std::string& file,
                               const std::optional<study::Snapshot>& snapshot, std::span<const std::byte> records) {
    auto tuner = std::make_unique<Tuner>(study::parse_resolved_study(spec, file));
    if (snapshot && !restore(*tuner, *snapshot)) return nullptr;
    study::Decoder in(records);
    while (!in.empty()) tuner->apply(study::decode_record(in));
    return tuner;
}

void Regrown::apply(const study::Record& record) {
    if (const auto* created = std::get_if<study::StudyCreated>(&record); created != nullptr && !tuner_)
        tuner_ = std::make_unique<Tuner>(study::parse_resolved_study(created->spec, directory_ + "/resolved.toml"));
    if (!tuner_) throw base::FormatError("the journal in '" + directory_ + "' does not begin with its study");
    tuner_->apply(record);
}

} // namespace ranktune::tuner
