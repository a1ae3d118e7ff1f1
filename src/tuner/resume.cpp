// SPDX-License-Identifier: Apache-2.0
#include "tuner/resume.hpp"

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::tuner {
namespace {

/// Null when it cannot be used.
std::unique_ptr<Tuner> restored(const study::Snapshot& snapshot, const std::string& directory,
                                const study::Algorithms& algorithms) {
    auto tuner =
        std::make_unique<Tuner>(study::parse_resolved_study(snapshot.spec, directory + "/resolved.toml", algorithms));
    try {
        study::Decoder in(std::as_bytes(std::span(snapshot.state)));
        tuner->restore(in);
    } catch (const base::FormatError&) {
        return nullptr;
    }
    return tuner->digest() == snapshot.digest ? std::move(tuner) : nullptr;
}

} // namespace

std::unique_ptr<Tuner> resumed(const std::string& directory, const study::Algorithms& algorithms,
                               const std::optional<study::Snapshot>& snapshot, std::span<const std::byte> records) {
    Regrown grown(directory, algorithms, snapshot ? restored(*snapshot, directory, algorithms) : nullptr);
    if (snapshot && !grown.begun()) return nullptr;
    study::Decoder in(records);
    while (!in.empty()) grown.apply(study::decode_record(in));
    return grown.take();
}

void Regrown::apply(const study::Record& record) {
    if (const auto* created = std::get_if<study::StudyCreated>(&record); created != nullptr && !tuner_)
        tuner_ = std::make_unique<Tuner>(
            study::parse_resolved_study(created->spec, directory_ + "/resolved.toml", algorithms_));
    if (!tuner_) throw base::FormatError("the journal in '" + directory_ + "' does not begin with its study");
    tuner_->apply(record);
}

} // namespace ranktune::tuner
