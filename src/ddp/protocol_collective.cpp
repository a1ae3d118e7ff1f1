// SPDX-License-Identifier: Apache-2.0
#include "ddp/protocol_collective.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "comm/backoff.hpp"
#include "comm/graveyard.hpp"

namespace ranktune::ddp {
namespace {

/// Broadcasts go through a buffer of our own, in pieces of this size, because a buffer in flight may have to be buried.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

constexpr std::int64_t neutral = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

std::int64_t ordered(std::uint64_t number) { return static_cast<std::int64_t>(number ^ sign_bit); }
std::uint64_t unordered(std::int64_t word) { return static_cast<std::uint64_t>(word) ^ sign_bit; }

} // namespace

/// A bucket of a step: while it waits, it looks out for reasons why it will never be complete.
class ProtocolCollective::StepPending final : public Pending {
  public:
    StepPending(ProtocolCollective& owner, std::unique_ptr<Pending> inner) : owner_(owner), inner_(std::move(inner)) {}

    bool test() override {
        owner_.require_usable();
        if (owner_.guarded([&] { return inner_->test(); })) return true;
        owner_.watch_step();
        return false;
    }

  private:
    ProtocolCollective& owner_;
    std::unique_ptr<Pending> inner_;
};

ProtocolCollective::ProtocolCollective(std::unique_ptr<Fabric> fabric, const std::atomic<bool>& abort)
    : fabric_(std::move(fabric)), abort_(abort) {}

void ProtocolCollective::barrier() { agree(make_header(Operation::barrier, 0, 0)); }

void ProtocolCollective::broadcast(std::span<std::byte> bytes, int root) {
    assert(root >= 0 && root < size());
    agree(make_header(Operation::broadcast, bytes.size(), root));
    const auto piece = std::make_shared<std::vector<std::byte>>(std::min(bytes.size(), piece_bytes));
    while (!bytes.empty()) {
        const auto part = bytes.first(std::min(bytes.size(), piece_bytes));
        if (rank() == root) std::copy(part.begin(), part.end(), piece->begin());
        const auto pending =
            guarded([&] { return fabric_->start_broadcast(std::span(*piece).first(part.size()), root); });
        wait(*pending, piece);
        if (rank() != root) std::copy_n(piece->begin(), part.size(), part.begin());
        bytes = bytes.subspan(part.size());
    }
}

void ProtocolCollective::all_reduce_sum(std::span<double> values) {
    agree(make_header(Operation::sum, values.size(), 0));
    if (values.empty()) return;
    const auto copy = std::make_shared<std::vector<double>>(values.begin(), values.end());
    const auto pending = guarded([&] { return fabric_->start_sum(std::span<double>(*copy)); });
    wait(*pending, copy);
    std::copy(copy->begin(), copy->end(), values.begin());
}

std::pair<std::uint64_t, std::uint64_t> ProtocolCollective::min_max(std::uint64_t number) {
    auto header = make_header(Operation::min_max, 0, 0);
    header[value] = ordered(number);
    header[not_value] = ~ordered(number);
    agree(header);
    return {unordered(~(*header_)[not_value]), unordered((*header_)[value])};
}

void ProtocolCollective::begin_step() {
    start_header(make_header(Operation::step, 0, 0));
    if (abort_.load()) give_up(); // the header has told the others
}

std::unique_ptr<Pending> ProtocolCollective::start_sum(std::span<float> values) {
    require_usable();
    return std::make_unique<StepPending>(*this, guarded([&] { return fabric_->start_sum(values); }));
}

void ProtocolCollective::end_step() {
    require_usable();
    wait_header();
    judge();
}

void ProtocolCollective::fail(std::span<const std::size_t> owed) {
    if (poisoned_) return;
    Header header{};
    std::fill(header.begin(), header.end(), neutral);
    header[failed] = rank() + 1;
    header[aborted] = abort_.load() ? 1 : 0;
    header[unplanned] = owed.empty() ? 1 : 0;
    header[step] = 0;
    start_header(header);
    wait_header();
    if ((*header_)[step] == 0) return;
    if (!joinable()) {
        poison(); // the ranks in the step read the same header and do the same
        return;
    }
    const auto zeros = std::make_shared<std::vector<std::vector<float>>>();
    std::vector<std::unique_ptr<Pending>> pending;
    for (const auto elements : owed) {
        auto& bucket = zeros->emplace_back(elements, 0.0F);
        pending.push_back(guarded([&] { return fabric_->start_sum(std::span<float>(bucket)); }));
    }
    for (const auto& bucket : pending) wait(*bucket, zeros);
}

ProtocolCollective::Header ProtocolCollective::make_header(Operation operation, std::uint64_t elements,
                                                           int root) const {
    Header header{};
    header[what] = static_cast<std::int64_t>(operation) | (static_cast<std::int64_t>(root) << 8);
    header[not_what] = ~header[what];
    header[count] = static_cast<std::int64_t>(elements);
    header[not_count] = ~header[count];
    header[aborted] = abort_.load() ? 1 : 0;
    header[step] = operation == Operation::step ? 1 : 0;
    header[value] = neutral;
    header[not_value] = neutral;
    return header;
}

void ProtocolCollective::start_header(const Header& header) {
    require_usable();
    assert(!header_pending_); // one operation at a time
    header_ = std::make_shared<Header>(header);
    header_pending_ = guarded([&] { return fabric_->start_max(*header_); });
}

void ProtocolCollective::wait_header() {
    if (!header_pending_) return;
    wait(*header_pending_, header_);
    header_pending_.reset();
}

bool ProtocolCollective::joinable() const {
    const Header& header = *header_;
    return header[what] == ~header[not_what] && header[unplanned] <= 0 && header[aborted] <= 0;
}

void ProtocolCollective::judge() const {
    const Header& header = *header_;
    if (header[aborted] > 0) throw Aborted("the trial was told to give up");
    if (header[failed] > 0) throw PeerFailed("rank " + std::to_string(header[failed] - 1) + " of the trial failed");
    if (header[what] != ~header[not_what]) {
        throw base::Error("the ranks of the trial called different operations of its collective");
    }
    if (header[count] != ~header[not_count]) {
        throw base::Error("the ranks of the trial passed different sizes to an operation of its collective: " +
                          std::to_string(~header[not_count]) + " to " + std::to_string(header[count]));
    }
}

void ProtocolCollective::agree(const Header& header) {
    start_header(header);
    wait_header();
    if ((*header_)[step] > 0 && !joinable()) poison(); // the ranks in the step give up
    judge();
}

void ProtocolCollective::watch_step() {
    if (header_pending_ && guarded([&] { return header_pending_->test(); })) header_pending_.reset();
    if (!header_pending_ && !joinable()) {
        poison();
        judge();
    }
    if (abort_.load()) give_up();
}

void ProtocolCollective::wait(Pending& pending, const std::shared_ptr<const void>& keep) {
    comm::Backoff backoff;
    try {
        while (!pending.test()) {
            if (abort_.load()) give_up();
            backoff.pause();
        }
    } catch (...) {
        poison();
        comm::bury(keep);
        throw;
    }
}

void ProtocolCollective::give_up() {
    poison();
    throw Aborted("the trial was told to give up while it waited for its other ranks");
}

void ProtocolCollective::poison() noexcept {
    if (poisoned_) return;
    poisoned_ = true;
    if (header_pending_) {
        comm::bury(header_);
        header_pending_.reset();
    }
    fabric_->poison();
}

void ProtocolCollective::require_usable() const {
    if (poisoned_) throw Aborted("the trial's group has been given up");
}

} // namespace ranktune::ddp
