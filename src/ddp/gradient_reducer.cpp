// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"

#include <algorithm>
#include <cassert>

#include "comm/graveyard.hpp"
#include "ddp/core_wait.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/huge_pages.hpp"
#include "ranktune/ddp/parameters.hpp"

namespace ranktune::ddp {

namespace {

using SharedFloats = std::shared_ptr<float[]>; // shared: the graveyard takes any shared pointer

SharedFloats zeros(std::size_t count) {
    SharedFloats memory(static_cast<float*>(base::allocate_large(count * sizeof(float))), base::free_large);
    std::fill_n(memory.get(), count, 0.0F);
    return memory;
}

std::uint64_t plan_digest(const BucketPlan& plan) {
    base::Digest digest;
    for (const auto& bucket : plan.buckets) {
        digest.add(bucket.size);
        for (const auto& slot : bucket.slots) digest.add(slot.tensor).add(slot.offset).add(slot.size);
    }
    return digest.value();
}

} // namespace

struct GradientReducer::Impl {
    struct Flight {
        std::unique_ptr<Pending> pending; ///< empty when complete
        double begin = 0.0;
    };

    Impl(Collective& c, std::vector<std::size_t> sizes, std::size_t limit)
        : collective(c), tensor_sizes(std::move(sizes)), plan(plan_buckets(tensor_sizes, limit)) {
        assert(!plan.buckets.empty());
        place.resize(tensor_sizes.size());
        for (const auto& bucket : plan.buckets) {
            bucket_begin.push_back(total);
            for (const auto& slot : bucket.slots) {
                place[slot.tensor] = total + slot.offset;
                order.push_back(slot.tensor);
            }
            total += bucket.size;
        }
        memory = zeros(total + 1);
        flights.reserve(plan.buckets.size());
    }

    [[nodiscard]] float& status() { return memory[static_cast<std::ptrdiff_t>(total)]; }
    [[nodiscard]] std::size_t bucket_size(std::size_t b) const {
        return plan.buckets[b].size + (b + 1 == plan.buckets.size() ? 1 : 0);
    }

    /// Starts the next bucket of the plan.
    void start() {
        const std::size_t b = flights.size();
        Flight flight;
        if (timeline != nullptr) flight.begin = timeline->now();
        flight.pending = collective.start_sum({memory.get() + bucket_begin[b], bucket_size(b)});
        flights.push_back(std::move(flight));
    }

    /// Tests the oldest reduction in flight, which drives all of them; true when none is left.
    bool advance() {
        while (completed < flights.size()) {
            Flight& flight = flights[completed];
            if (!flight.pending->test()) return false;
            flight.pending.reset();
            if (timeline != nullptr)
                timeline->reduced("bucket " + std::to_string(completed), flight.begin, timeline->now());
            ++completed;
        }
        return true;
    }

    void wait() {
        const double begin = timeline != nullptr ? timeline->now() : 0.0;
        core.begin();
        while (!advance()) core.turn();
        if (timeline != nullptr) {
            const double end = timeline->now();
            timeline->waited("wait", begin, end);
            timing = {end - first_start(begin), end - begin};
        }
    }

    [[nodiscard]] double first_start(double otherwise) const {
        return flights.empty() ? otherwise : flights.front().begin;
    }

    void close() {
        flights.clear();
        open = false;
    }

    Collective& collective;
    std::vector<std::size_t> tensor_sizes;
    BucketPlan plan;
    std::vector<std::size_t> bucket_begin; ///< in floats within memory
    std::vector<std::size_t> place;        ///< per tensor, in floats within memory
    std::vector<std::size_t> order;        ///< tensors in the order in which they become ready
    std::size_t total = 0;
    SharedFloats memory; ///< total floats and the status word
    std::vector<Flight> flights;
    std::size_t completed = 0;   ///< of flights
    std::size_t ready_count = 0; ///< of order
    bool open = false;
    CoreWait core;
    Timeline* timeline = nullptr;
    Timing timing;
};

GradientReducer::GradientReducer(Collective& collective, std::vector<std::size_t> tensor_sizes,
                                 std::size_t limit_floats)
    : impl_(std::make_unique<Impl>(collective, std::move(tensor_sizes), limit_floats)) {
    check_agreement(collective, plan_digest(impl_->plan), "the bucket plans (sizes of the gradients, or their limit)");
}

GradientReducer::~GradientReducer() {
    // A reduction that is given up may go on writing into its bucket as long as the process lives.
    if (impl_->completed < impl_->flights.size()) comm::bury(impl_->memory);
}

const BucketPlan& GradientReducer::plan() const { return impl_->plan; }

std::span<float> GradientReducer::gradient(std::size_t i) {
    return {impl_->memory.get() + impl_->place[i], impl_->tensor_sizes[i]};
}

std::span<float> GradientReducer::gradients() { return {impl_->memory.get(), impl_->total}; }

void GradientReducer::begin() {
    assert(!impl_->open);
    impl_->collective.begin_step();
    impl_->open = true;
    impl_->completed = 0;
    impl_->ready_count = 0;
    impl_->status() = 0.0F;
}

void GradientReducer::ready(std::size_t i) {
    Impl& s = *impl_;
    assert(s.open && s.ready_count < s.order.size() && s.order[s.ready_count] == i);
    static_cast<void>(i);
    ++s.ready_count;
    const std::size_t b = s.flights.size();
    if (b + 1 == s.plan.buckets.size()) return; // the last bucket waits for the verdict on the step
    const auto& slots = s.plan.buckets[b].slots;
    if (s.order[s.ready_count - 1] == slots.back().tensor) s.start();
}

void GradientReducer::poll() {
    if (impl_->open) static_cast<void>(impl_->advance());
}

void GradientReducer::finish() {
    Impl& s = *impl_;
    assert(s.open && s.ready_count == s.order.size());
    s.start();
    s.wait();
    const float failed = s.status();
    s.close();
    s.collective.end_step();
    if (failed > 0.0F) {
        s.collective.part();
        throw PeerFailed("another rank of the trial failed in this step");
    }
}

void GradientReducer::fail() noexcept {
    Impl& s = *impl_;
    if (!s.open) return;
    try {
        // What is not yet in flight is sent as zeros; what is in flight belongs to the collective until it is complete.
        const std::size_t begin = s.flights.size() < s.bucket_begin.size() ? s.bucket_begin[s.flights.size()] : s.total;
        std::fill(s.memory.get() + begin, s.memory.get() + s.total, 0.0F);
        s.status() = 1.0F;
        while (s.flights.size() < s.plan.buckets.size()) s.start();
        s.wait();
        s.close();
        s.collective.end_step();
    } catch (...) {
        // PeerFailed: another one failed too. Anything else means that the group is lost, which every rank sees by
        // itself.
        s.open = false;
    }
    s.collective.part();
}

bool GradientReducer::in_step() const { return impl_->open; }

std::vector<std::size_t> GradientReducer::owed_buckets() const { return ddp::owed_buckets(impl_->plan); }

void GradientReducer::set_timeline(Timeline* timeline) { impl_->timeline = timeline; }

GradientReducer::Timing GradientReducer::last_timing() const { return impl_->timing; }

} // namespace ranktune::ddp
