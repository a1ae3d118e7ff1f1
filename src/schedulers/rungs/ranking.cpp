// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/ranking.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ranktune/base/error.hpp"

namespace ranktune::schedulers {

namespace {
constexpr std::size_t largest_block = 512;
} // namespace

std::size_t Ranking::block_of(const study::Ranked& entry) const {
    const auto found = std::partition_point(blocks_.begin(), blocks_.end(),
                                            [&](const Block& block) { return study::better(block.back(), entry); });
    return found == blocks_.end() ? blocks_.size() - 1 : static_cast<std::size_t>(found - blocks_.begin());
}

void Ranking::insert(const study::Ranked& entry) {
    ++size_;
    if (blocks_.empty()) {
        blocks_.push_back({entry});
        return;
    }
    const std::size_t at = block_of(entry);
    Block& block = blocks_[at];
    block.insert(std::ranges::lower_bound(block, entry, study::better), entry);
    if (block.size() <= largest_block) return;
    const auto half = block.begin() + static_cast<std::ptrdiff_t>(block.size() / 2);
    Block upper(half, block.end());
    block.erase(half, block.end());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
}

void Ranking::erase(const study::Ranked& entry) {
    assert(size_ > 0);
    const std::size_t at = block_of(entry);
    Block& block = blocks_[at];
    const auto found = std::ranges::lower_bound(block, entry, study::better);
    assert(found != block.end() && *found == entry);
    block.erase(found);
    --size_;
    if (block.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
}

std::size_t Ranking::position(const study::Ranked& entry) const {
    if (size_ == 0) return 0;
    const std::size_t at = block_of(entry);
    std::size_t before = 0;
    for (std::size_t i = 0; i < at; ++i) before += blocks_[i].size();
    const Block& block = blocks_[at];
    return before + static_cast<std::size_t>(std::ranges::lower_bound(block, entry, study::better) - block.begin());
}

const study::Ranked& Ranking::operator[](std::size_t position) const {
    assert(position < size_);
    std::size_t at = 0;
    while (position >= blocks_[at].size()) position -= blocks_[at++].size();
    return blocks_[at][position];
}

void Ranking::snapshot(study::Encoder& out) const {
    out.varint(size_);
    for (const Block& block : blocks_) {
        for (const study::Ranked& entry : block) {
            out.f64(entry.score);
            out.varint(entry.trial.value());
        }
    }
}

void Ranking::restore(study::Decoder& in) {
    *this = {};
    size_ = in.count();
    for (std::size_t i = 0; i < size_; ++i) {
        if (i % (largest_block / 2) == 0) blocks_.emplace_back();
        const double score = in.f64();
        blocks_.back().push_back({score, study::TrialId(static_cast<study::TrialId::rep>(in.varint()))});
    }
    if (!valid()) throw base::FormatError("a ranking in the snapshot is out of order");
}

bool Ranking::valid() const {
    const study::Ranked* before = nullptr;
    std::size_t count = 0;
    for (const Block& block : blocks_) {
        if (block.empty()) return false;
        for (const study::Ranked& entry : block) {
            if (std::isnan(entry.score) || (before != nullptr && !study::better(*before, entry))) return false;
            before = &entry;
            ++count;
        }
    }
    return count == size_;
}

} // namespace ranktune::schedulers
