// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "comm/graveyard.hpp"
#include "ddp/collective.hpp"
#include "ddp/core_wait.hpp"
#include "ddp/device_sums.hpp"
#include "device/device.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/ddp/parameters.hpp"

namespace ranktune::ddp {

namespace {

std::uint64_t plan_digest(const BucketPlan& plan, base::DType type) {
    base::Digest digest;
    digest.add(type);
    for (const auto& bucket : plan.buckets) {
        digest.add(bucket.size);
        for (const auto& slot : bucket.slots) digest.add(slot.tensor).add(slot.offset).add(slot.size);
    }
    return digest.value();
}

/// The buckets that a step reduces. On hosts the last one includes the status word; with buckets on a device, the
/// status word is the only number that goes over the host.
StepPlan step_plan(const BucketPlan& plan, base::DType type, DeviceSums* sums) {
    std::vector<std::size_t> counts;
    for (const BucketPlan::Bucket& bucket : plan.buckets) counts.push_back(bucket.size);
    if (sums != nullptr) return {base::DType::float32, {1}, {sums, type, std::move(counts)}};
    ++counts.back();
    return {type, std::move(counts)};
}

void fill_with_zeros(base::Buffer values) {
    if (values.place().is_host()) {
        std::ranges::fill(values.host_bytes(), std::byte{0});
        return;
    }
    auto* const begin = static_cast<std::byte*>(values.address());
    if (auto* const accelerator = device::accelerator_of(values.place()))
        return accelerator->compute_stream().fill_zero(begin, values.bytes());
    const std::vector<std::byte> zeros(std::min(values.bytes(), std::size_t{1} << 20U));
    for (std::size_t done = 0; done < values.bytes(); done += zeros.size())
        values.place().device().copy_from_host(begin + done, zeros.data(),
                                               std::min(zeros.size(), values.bytes() - done));
}

/// Writes one number of any gradient type.
void write_number(base::Buffer to, float value) {
    const double wide = value;
    const base::Float16 half(value);
    const base::BFloat16 brain(value);
    switch (to.type()) {
        case base::DType::float64:
            return base::copy(std::span(&wide, 1), to);
        case base::DType::float16:
            return base::copy(std::span(&half, 1), to);
        case base::DType::bfloat16:
            return base::copy(std::span(&brain, 1), to);
        default:
            return base::copy(std::span(&value, 1), to);
    }
}

/// Whether the number is above zero: its bits are not zero and not those of -0.
bool is_positive(base::ConstBuffer number) {
    std::uint64_t bits = 0;
    base::copy(number, {&bits, 1, number.type()});
    return bits != 0 && (bits >> (8 * base::size_of(number.type()) - 1)) == 0;
}

void require_reducible(const Collective& collective, const BucketPlan& plan, base::DType type, base::Place place) {
    using base::DType;
    if (type != DType::float32 && type != DType::float64 && type != DType::float16 && type != DType::bfloat16)
        throw base::UsageError("gradients of " + std::string(base::name(type)) + " cannot be reduced");
    if (device::accelerator_of(place) == nullptr && !collective.reaches(place))
        throw base::UsageError("gradients on " + place.name() + ": the group of this trial only takes host memory");
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        if (bucket.size >= largest_bucket)
            throw base::UsageError("a gradient of " + std::to_string(bucket.size) + " elements is more than one " +
                                   "reduction can take (" + std::to_string(largest_bucket - 1) + "): split the tensor");
}

} // namespace

BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit) {
    assert(limit > 0);
    BucketPlan plan;
    for (std::size_t tensor = tensor_sizes.size(); tensor-- > 0;) {
        const std::size_t size = tensor_sizes[tensor];
        const bool full = !plan.buckets.empty() && plan.buckets.back().size + size > limit;
        if (plan.buckets.empty() || full) plan.buckets.emplace_back();
        BucketPlan::Bucket& bucket = plan.buckets.back();
        bucket.slots.push_back({tensor, bucket.size, size});
        bucket.size += size;
    }
    return plan;
}

struct GradientReducer::Impl final : OpenStep {
    struct Flight {
        std::unique_ptr<Pending> pending; ///< empty when complete
        double begin = 0.0;
    };

    Impl(Collective& c, std::vector<std::size_t> sizes, std::size_t limit, base::DType t, base::Place where)
        : collective(c),
          type(t),
          place(where),
          tensor_sizes(std::move(sizes)),
          plan(plan_buckets(tensor_sizes, limit)) {
        assert(!plan.buckets.empty());
        require_reducible(collective, plan, type, place);
        if (auto* const accelerator = device::accelerator_of(place)) sums = &collective.sums_on(*accelerator);
        offset.resize(tensor_sizes.size());
        for (const auto& bucket : plan.buckets) {
            bucket_begin.push_back(total);
            for (const auto& slot : bucket.slots) {
                offset[slot.tensor] = total + slot.offset;
                order.push_back(slot.tensor);
            }
            total += bucket.size;
        }
        memory = base::allocate(place, (total + 1) * base::size_of(type));
        fill_with_zeros(all());
        flights.reserve(plan.buckets.size());
    }

    /// Gradients and status word.
    [[nodiscard]] base::Buffer all() const { return {memory.get(), total + 1, type, place}; }
    [[nodiscard]] base::Buffer status() const {
        if (sums != nullptr) return {host_status.get(), 1, base::DType::float32};
        return all().part(total, 1);
    }
    [[nodiscard]] std::size_t bucket_size(std::size_t b) const {
        return plan.buckets[b].size + (sums == nullptr && b + 1 == plan.buckets.size() ? 1 : 0);
    }

    /// Starts the next bucket of the plan.
    void start() {
        const base::Buffer bucket = all().part(bucket_begin[started], bucket_size(started));
        ++started;
        if (sums != nullptr)
            sums->start(bucket);
        else
            start_on_host(bucket);
    }
    /// All buckets are started: the status word follows, if it is in none of them.
    void start_status() {
        if (sums == nullptr) return;
        sums->join();
        start_on_host(status());
    }
    void start_on_host(base::Buffer numbers) {
        Flight flight;
        if (timeline != nullptr) flight.begin = timeline->now();
        flight.pending = collective.start_sum(numbers);
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
        started = 0;
        open = false;
    }

    void fail() noexcept override;

    Collective& collective;
    DeviceSums* sums = nullptr; ///< for gradients on a device; null: they lie on the host
    base::DType type;
    base::Place place;
    std::vector<std::size_t> tensor_sizes;
    BucketPlan plan;
    std::vector<std::size_t> bucket_begin; ///< in elements within memory
    std::vector<std::size_t> offset;       ///< per tensor, in elements within memory
    std::vector<std::size_t> order;        ///< tensors in the order in which they become ready
    std::size_t total = 0;
    std::shared_ptr<void> memory; ///< total elements and the status word; shared, for comm::bury
    std::shared_ptr<float> host_status = std::make_shared<float>(0.0F); ///< with `sums`
    std::size_t announced = 0;                                          ///< number of the plan
    std::size_t started = 0;                                            ///< buckets
    std::vector<Flight> flights;
    std::size_t completed = 0;   ///< of flights
    std::size_t ready_count = 0; ///< of order
    bool open = false;
    CoreWait core;
    Timeline* timeline = nullptr;
    Timing timing;
};

GradientReducer::GradientReducer(Group& group, std::vector<std::size_t> tensor_sizes, std::size_t limit,
                                 base::DType type, base::Place place)
    : impl_(std::make_unique<Impl>(Collective::of(group), std::move(tensor_sizes), limit, type, place)) {
    impl_->announced = impl_->collective.announce(step_plan(impl_->plan, type, impl_->sums));
    check_agreement(group, plan_digest(impl_->plan, type),
                    "the bucket plans (sizes or type of the gradients, or their limit)");
}

GradientReducer::~GradientReducer() {
    if (impl_->open) impl_->fail();
    // A reduction that was given up may write into its bucket until the process ends.
    // (On a device nothing does: sums that are given up are aborted.)
    if (impl_->completed < impl_->flights.size())
        comm::bury(impl_->sums != nullptr ? std::shared_ptr<const void>(impl_->host_status) : impl_->memory);
}

const BucketPlan& GradientReducer::plan() const { return impl_->plan; }

base::Buffer GradientReducer::gradient_buffer(std::size_t i) {
    return impl_->all().part(impl_->offset[i], impl_->tensor_sizes[i]);
}

base::Buffer GradientReducer::gradients_buffer() { return impl_->all().part(0, impl_->total); }

void GradientReducer::begin() {
    assert(!impl_->open);
    impl_->collective.begin_step(impl_->announced, *impl_);
    impl_->open = true;
    impl_->completed = 0;
    impl_->ready_count = 0;
    write_number(impl_->status(), 0.0F);
}

void GradientReducer::ready(std::size_t i) {
    Impl& s = *impl_;
    assert(s.open && s.ready_count < s.order.size() && s.order[s.ready_count] == i);
    static_cast<void>(i);
    ++s.ready_count;
    const std::size_t b = s.started;
    // finish() or fail() starts the last bucket if it has the status word
    if (s.sums == nullptr && b + 1 == s.plan.buckets.size()) return;
    const auto& slots = s.plan.buckets[b].slots;
    if (s.order[s.ready_count - 1] == slots.back().tensor) s.start();
}

void GradientReducer::poll() {
    if (impl_->open) static_cast<void>(impl_->advance());
}

void GradientReducer::finish() {
    Impl& s = *impl_;
    assert(s.open && s.ready_count == s.order.size());
    if (s.sums == nullptr) s.start();
    s.start_status();
    s.wait();
    const bool failed = is_positive(s.status());
    s.close();
    s.collective.end_step();
    if (failed) {
        s.collective.part();
        throw PeerFailed("another rank of the trial failed in this step");
    }
}

void GradientReducer::fail() noexcept {
    if (impl_->open) impl_->fail();
}

void GradientReducer::Impl::fail() noexcept {
    try {
        // Zero the buckets that are not in flight yet; those in flight must not be touched.
        const std::size_t begin = started < bucket_begin.size() ? bucket_begin[started] : total;
        fill_with_zeros(all().part(begin, total - begin));
        write_number(status(), 1.0F);
        while (started < plan.buckets.size()) start();
        start_status();
        wait();
        close();
        collective.end_step();
    } catch (...) {
        // PeerFailed: another rank failed too. Anything else means that the group is lost, which every rank detects by
        // itself.
        open = false;
    }
    collective.part();
}

bool GradientReducer::in_step() const { return impl_->open; }

void GradientReducer::set_timeline(Timeline* timeline) { impl_->timeline = timeline; }

GradientReducer::Timing GradientReducer::last_timing() const { return impl_->timing; }

} // namespace ranktune::ddp
