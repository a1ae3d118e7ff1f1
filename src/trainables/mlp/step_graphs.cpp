// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/step_graphs.hpp"

#include <utility>

namespace ranktune::trainables::mlp {

void StepGraphs::reset(std::vector<bool> closes) {
    shapes_.clear();
    closes_ = std::move(closes);
}

void StepGraphs::run(const Shape& shape, const Issue& issue, const StepMarks& marks) {
    const auto known = shapes_.find(shape);
    if (known == shapes_.end()) {
        if (refusal_.empty() && shapes_.size() < most_shapes) shapes_.emplace(shape, Pieces{});
        return issue(marks);
    }
    if (known->second.empty()) {
        try {
            known->second = record(issue);
        } catch (const device::DeviceError& error) {
            if (error.lost()) throw;
            refusal_ = error.what();
            shapes_.clear();
            return issue(marks); // nothing of it has run
        }
    }
    replay(known->second, marks);
}

StepGraphs::Pieces StepGraphs::record(const Issue& issue) {
    Pieces pieces;
    std::vector<std::size_t> tensors;
    const auto cut = [&] {
        pieces.push_back({stream_.end_recording(), std::exchange(tensors, {})});
        stream_.begin_recording();
    };
    stream_.begin_recording();
    try {
        issue({cut, [&](std::size_t tensor) {
                   tensors.push_back(tensor);
                   if (closes_[tensor]) cut();
               }});
    } catch (...) {
        stream_.drop_recording();
        throw;
    }
    stream_.drop_recording(); // nothing follows the last gradient
    return pieces;
}

void StepGraphs::replay(const Pieces& pieces, const StepMarks& marks) {
    for (const Piece& piece : pieces) {
        stream_.launch(*piece.graph);
        if (&piece == &pieces.front()) marks.loss();
        for (const std::size_t tensor : piece.tensors) marks.gradient(tensor);
    }
    ++replays_;
}

} // namespace ranktune::trainables::mlp
