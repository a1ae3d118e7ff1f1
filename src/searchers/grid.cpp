// SPDX-License-Identifier: Apache-2.0
#include "searchers/grid.hpp"

#include <algorithm>
#include <memory>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_grid() {
    study::SearcherInfo info;
    info.name = "grid";
    info.description =
        "all domains crossed in file order, the last one fastest, then the study ends: every domain needs "
        "finitely many values (lists, grids, integers, quantised floats).";
    info.foreign_names = {"grid_search"};
    info.several_objectives = true;
    info.make = [](const study::StudySpec& spec) { return std::make_unique<GridSearcher>(spec.space); };
    info.whole_space = true;
    return info;
}

std::uint64_t GridSearcher::number_of(std::uint64_t index) const {
    std::uint64_t number = index - std::min(index, first_);
    for (const std::uint64_t each : left_out_) {
        if (each > number) break;
        ++number;
    }
    return number;
}

void GridSearcher::apply(const study::Record& record) {
    const auto* created = std::get_if<study::TrialCreated>(&record);
    if (created == nullptr || created->origin.kind == study::Origin::Kind::repeat) return;
    if (created->origin.kind == study::Origin::Kind::searcher) {
        suggested_ = created->origin.index + 1;
        return;
    }
    const auto number = points_.find(created->configuration);
    if (!number || *number < number_of(suggested_)) return; // its turn has been
    const auto at = std::ranges::lower_bound(left_out_, *number);
    if (at == left_out_.end() || *at != *number) left_out_.insert(at, *number);
}

void GridSearcher::snapshot(study::Encoder& out) const {
    out.varint(suggested_);
    out.varint(first_);
    out.varint(left_out_.size());
    for (const std::uint64_t each : left_out_) out.varint(each);
}

void GridSearcher::restore(study::Decoder& in) {
    suggested_ = in.varint();
    first_ = in.varint();
    left_out_.assign(in.count(), 0);
    for (std::uint64_t& each : left_out_) each = in.varint();
    if (!std::ranges::is_sorted(left_out_))
        throw base::FormatError("the points that a grid leaves out are in disorder");
}

} // namespace ranktune::searchers
