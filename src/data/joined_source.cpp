// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {

namespace {

using Sources = std::vector<std::shared_ptr<const Source>>;

/// Checks the sources on the way.
Extent joined_extent(const Sources& sources) {
    if (sources.empty()) throw base::UsageError("data: no sources to join");
    Extent extent{0, sources[0]->extent().sample_bytes, 1};
    for (const auto& source : sources) {
        if (source->fields() != sources[0]->fields())
            throw base::UsageError("data file '" + source->path() + "' and '" + sources[0]->path() +
                                   "' differ in their fields: names, types and shapes have to be the same");
        extent.samples += source->samples();
        extent.chunk_samples = std::max(extent.chunk_samples, source->extent().chunk_samples);
    }
    return extent;
}

} // namespace

JoinedSource::JoinedSource(Sources sources)
    : Source(sources.empty() ? "" : sources[0]->path(), sources.empty() ? std::vector<Field>() : sources[0]->fields(),
             joined_extent(sources)),
      sources_(std::move(sources)) {
    std::uint64_t begin = 0;
    for (const auto& source : sources_) begins_.push_back(std::exchange(begin, begin + source->samples()));
}

std::size_t JoinedSource::source_of(std::uint64_t sample) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins_, sample) - begins_.begin()) - 1;
}

void JoinedSource::gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const {
    const std::size_t size = fields()[field].bytes();
    std::vector<std::uint64_t> own;
    for (std::size_t first = 0; first < samples.size();) { // runs of one source
        const std::size_t source = source_of(samples[first]);
        own.clear();
        for (std::size_t i = first; i < samples.size() && source_of(samples[i]) == source; ++i)
            own.push_back(samples[i] - begins_[source]);
        sources_[source]->gather(field, own, out.subspan(first * size, own.size() * size));
        first += own.size();
    }
}

std::span<const std::byte> JoinedSource::bytes(std::size_t field, std::uint64_t sample) const {
    const std::size_t source = source_of(sample);
    return sources_[source]->bytes(field, sample - begins_[source]);
}

} // namespace ranktune::data
