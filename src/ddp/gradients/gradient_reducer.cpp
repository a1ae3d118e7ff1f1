// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/gradient_reducer.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "comm/kept.hpp"
#include "ddp/collective.hpp"
#include "ddp/collective/core_wait.hpp"
#include "ddp/compression/device_hook.hpp"
#include "ddp/compression/hook.hpp"
#include "ddp/gradients/arrivals.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "ddp/gradients/device_timer.hpp"
#include "ddp/gradients/gradient_memory.hpp"
#include "ddp/gradients/reducer_plan.hpp"
#include "device/device.hpp"
#include "ranktune/ddp/parameters.hpp"

namespace ranktune::ddp {

struct GradientReducer::Impl final : OpenStep {
    Impl(Group& of_trial, std::vector<std::size_t> sizes, ReducerSettings chosen);

    /// Makes memory, hook and plan of the steps; all ranks then check that they agree. The state of a hook starts
    /// afresh.
    void lay_out(BucketPlan plan);
    void make_hooks();

    /// On hosts, the last bucket of gradients that are not compressed includes the status word.
    [[nodiscard]] bool status_is_apart() const { return sums != nullptr || hook; }
    [[nodiscard]] base::Buffer status() const {
        if (status_is_apart()) return {host_status.get(), 1, base::DType::float32};
        return gradients->all().part(gradients->total, 1);
    }
    [[nodiscard]] std::size_t buckets() const { return gradients->plan.buckets.size(); }

    /// Starts the next bucket of the plan.
    void start() {
        const std::size_t b = started++;
        if (accumulated.holds()) accumulated.add_to(*gradients, b);
        if (hook) return fly([&] { return hook->start(collective, b); });
        if (timer) timer->sums();
        base::Buffer bucket = gradients->bucket(b);
        if (device_hook) return device_hook->start(*sums, b);
        if (sums != nullptr) return sums->start(bucket);
        if (b + 1 == buckets()) bucket = gradients->all().part(gradients->bucket_begin[b], bucket.count() + 1);
        fly([&] { return collective.start_sum(bucket); });
    }
    /// Starts all buckets that are full, but not the one with the status word, which finish() or fail() starts.
    void start_full() {
        const std::size_t end = buckets() - (status_is_apart() ? 0 : 1);
        while (started < std::min(end, arrivals.full())) start();
    }
    /// Starts the buckets that have not been started, and whatever follows them.
    void start_rest() {
        while (started < buckets()) start();
        if (timer) timer->joins();
        if (sums != nullptr) sums->join();
        if (hook) start_second();
        if (status_is_apart()) fly([&] { return collective.start_sum(status()); });
    }
    /// The second operation of a bucket follows from the result of its first one. All ranks start them in the same
    /// order, after all first ones.
    void start_second() {
        for (std::size_t b = 0; b < buckets(); ++b) {
            wait(b + 1);
            auto pending = hook->go_on(collective, b);
            if (pending) fly([&] { return std::move(pending); });
        }
    }
    template <class Start>
    void fly(Start&& starts) {
        if (clock && flights.empty()) first_began = clock();
        flights.push_back(starts());
    }

    /// Tests the oldest reduction in flight, which drives all of them; true when the first `count` are complete.
    bool advance(std::size_t count) {
        while (completed < count) {
            if (!flights[completed]->test()) return false;
            flights[completed++].reset();
        }
        return true;
    }

    void wait(std::size_t count) {
        const double begin = clock ? clock() : 0.0;
        const auto since = std::chrono::steady_clock::now();
        core.until([&] { return advance(count); }, [&] { collective.check_wait(since); });
        if (!clock || timer) return;
        const double end = clock();
        timing.waited_s += end - begin;
        timing.in_flight_s = end - (flights.empty() ? begin : first_began);
    }

    void reset_step() {
        completed = 0;
        started = 0;
        arrivals.begin();
        timing = {};
        if (timer) timer->begin();
    }
    [[nodiscard]] bool feedback_free() const { return (!hook && !device_hook) || !settings.compression.feeds_back(); }
    /// What error feedback keeps.
    [[nodiscard]] std::vector<HookState> feedback() const {
        if (device_hook) return device_hook->state();
        return hook ? hook->state() : std::vector<HookState>();
    }

    /// Gradients that nobody has computed count as zero.
    void fill_missing() {
        if (arrivals.complete()) return;
        for (std::size_t i = 0; i < tensor_sizes.size(); ++i)
            if (!arrivals.has(i)) fill_with_zeros(gradients->gradient(i));
    }

    void close() {
        flights.clear();
        open = Open::no;
    }

    void fail() noexcept override;
    /// A look at sums that cannot go on tells the other ranks.
    void tell_if_sick() const noexcept {
        try {
            if (sums != nullptr) sums->look();
        } catch (...) { // they have been told
        }
    }

    enum class Open : std::uint8_t { no, step, micro_step };

    Group& group;
    Collective& collective;
    ReducerSettings settings;
    std::vector<std::size_t> tensor_sizes;
    DeviceSums* sums = nullptr; ///< for gradients on a device; null: they lie on the host
    std::optional<GradientMemory> gradients;
    std::shared_ptr<Hook> hook; ///< shared, for comm::keep_to_exit; null: no gradients are compressed on the host
    std::unique_ptr<DeviceHook> device_hook; ///< null: none are on a device
    bool settled = true;                     ///< the state of the hook is the same on all ranks
    Accumulator accumulated;
    std::shared_ptr<float> host_status = std::make_shared<float>(0.0F); ///< if it is apart
    std::size_t announced = 0;                                          ///< number of the plan
    std::size_t started = 0;                                            ///< buckets
    std::vector<std::unique_ptr<Pending>> flights;                      ///< empty when complete
    std::size_t completed = 0;                                          ///< of flights
    Arrivals arrivals;
    Open open = Open::no;
    Clipper clipper;
    std::uint64_t bytes = 0; ///< that a step sends
    std::uint64_t plain_bytes = 0;
    Traffic traffic;
    CoreWait core;
    std::function<double()> clock;    ///< empty: nothing is measured
    double first_began = 0.0;         ///< of the flights
    Timing timing;                    ///< of the last step, on a host
    Timing total_timing;              ///< likewise, of all steps
    std::optional<DeviceTimer> timer; ///< of gradients on a device, if they are measured
};

GradientReducer::Impl::Impl(Group& of_trial, std::vector<std::size_t> sizes, ReducerSettings chosen)
    : group(of_trial),
      collective(Collective::of(of_trial)),
      settings(std::move(chosen)),
      tensor_sizes(std::move(sizes)) {
    require_settings(settings, tensor_sizes);
    BucketPlan plan = plan_buckets(tensor_sizes, settings.limit, settings.first_limit);
    assert(!plan.buckets.empty());
    require_reducible(collective, plan, settings);
    if (auto* const accelerator = device::accelerator_of(settings.place)) sums = &collective.sums_on(*accelerator);
    lay_out(std::move(plan));
}

void GradientReducer::Impl::make_hooks() {
    hook.reset();
    device_hook.reset();
    if (collective.size() == 1) return;
    HookInput input = hook_input(*gradients, settings, static_cast<std::size_t>(collective.size()));
    if (auto* const accelerator = device::accelerator_of(settings.place))
        device_hook = make_device_hook(std::move(input), *accelerator);
    else
        hook = make_hook(std::move(input));
}

void GradientReducer::Impl::lay_out(BucketPlan plan) {
    gradients.emplace(tensor_sizes, std::move(plan), settings.type, settings.place);
    make_hooks();
    const StepPlan step = step_plan(gradients->plan, settings.type, sums, hook.get(), device_hook.get());
    const double ranks = collective.size();
    bytes = bytes_sent(step, ranks, status_is_apart());
    plain_bytes = bytes_of_sum(gradients->total * base::size_of(settings.type), ranks);
    flights.reserve(step.counts.size());
    arrivals = Arrivals(gradients->plan, tensor_sizes.size());
    announced = collective.announce(step);
    check_agreement(group, plan_digest(gradients->plan, settings),
                    "the bucket plans (sizes, order, compression or type of the gradients, or their limit)");
}

GradientReducer::GradientReducer(Group& group, std::vector<std::size_t> tensor_sizes, std::size_t limit,
                                 base::DType type, base::Place place)
    : GradientReducer(group, std::move(tensor_sizes), ReducerSettings{limit, type, place, {}, {}}) {}

GradientReducer::GradientReducer(Group& group, std::vector<std::size_t> tensor_sizes, ReducerSettings settings)
    : impl_(std::make_unique<Impl>(group, std::move(tensor_sizes), std::move(settings))) {}

GradientReducer::~GradientReducer() {
    Impl& s = *impl_;
    if (s.open != Impl::Open::no) s.fail();
    // A reduction that was given up may write into its memory until the process ends.
    // (On a device nothing does: sums that are given up are aborted.)
    if (s.completed >= s.flights.size()) return;
    if (s.status_is_apart()) comm::keep_to_exit(std::shared_ptr<const void>(s.host_status));
    if (s.hook) comm::keep_to_exit(std::shared_ptr<const void>(s.hook));
    if (!s.status_is_apart()) comm::keep_to_exit(s.gradients->memory);
}

const BucketPlan& GradientReducer::plan() const { return impl_->gradients->plan; }

base::Buffer GradientReducer::gradient_buffer(std::size_t i) { return impl_->gradients->gradient(i); }

base::Buffer GradientReducer::gradients_buffer() { return impl_->gradients->all().part(0, impl_->gradients->total); }

// ---- a step

void GradientReducer::begin() {
    Impl& s = *impl_;
    assert(s.open == Impl::Open::no);
    s.collective.begin_step(s.announced, s);
    s.open = Impl::Open::step;
    s.reset_step();
    write_number(s.status(), 0.0F);
}

void GradientReducer::begin_micro_step() {
    assert(impl_->open == Impl::Open::no);
    impl_->open = Impl::Open::micro_step;
    impl_->reset_step();
}

void GradientReducer::ready(std::size_t i) {
    Impl& s = *impl_;
    assert(s.open != Impl::Open::no && i < s.tensor_sizes.size());
    if (!s.arrivals.mark(i))
        throw base::UsageError("gradient " + std::to_string(i) + " became ready twice in one step of its reducer");
    if (s.open == Impl::Open::step) s.start_full();
}

void GradientReducer::poll() {
    if (impl_->open == Impl::Open::step) static_cast<void>(impl_->advance(impl_->flights.size()));
}

void GradientReducer::finish() {
    Impl& s = *impl_;
    assert(s.open != Impl::Open::no);
    s.fill_missing();
    if (s.open == Impl::Open::micro_step) {
        s.accumulated.take(*s.gradients);
        return s.close();
    }
    s.start_rest();
    s.wait(s.flights.size());
    s.accumulated.forget();
    const bool failed = is_positive(s.status());
    s.total_timing.in_flight_s += s.timing.in_flight_s;
    s.total_timing.waited_s += s.timing.waited_s;
    if (s.timer) s.timer->ends();
    if (s.sums != nullptr) s.sums->expect();
    s.close();
    s.collective.end_step();
    if (failed) {
        s.collective.part();
        throw PeerFailed("another rank of the trial failed in this step");
    }
    for (std::size_t b = 0; s.hook && b < s.buckets(); ++b) s.hook->decode(b);
    s.settled = s.settled && s.feedback_free();
    ++s.traffic.steps;
    s.traffic.bytes += s.bytes;
    s.traffic.plain_bytes += s.plain_bytes;
}

void GradientReducer::fail() noexcept {
    if (impl_->open != Impl::Open::no) impl_->fail();
}

void GradientReducer::Impl::fail() noexcept {
    accumulated.forget();
    if (open == Open::micro_step) return close(); // the others learn of it from their next operation
    try {
        // Zero the buckets that are not in flight yet; those in flight must not be touched.
        const std::size_t begin = started < buckets() ? gradients->bucket_begin[started] : gradients->total;
        fill_with_zeros(gradients->all().part(begin, gradients->total - begin));
        write_number(status(), 1.0F);
        start_rest();
        wait(flights.size());
        close();
        collective.end_step();
    } catch (...) {
        // PeerFailed: another rank failed too. Anything else means that the group is lost, which every rank detects by
        // itself, unless a device failed here: then the others have to be told.
        open = Open::no;
        tell_if_sick();
    }
    collective.part();
}

void GradientReducer::check_sums() { impl_->collective.check_sums(); }

bool GradientReducer::in_step() const { return impl_->open != Impl::Open::no; }

// ---- clipping

void GradientReducer::clip_norm(double most) {
    assert(impl_->open == Impl::Open::no && most > 0.0);
    impl_->clipper.clip(gradients_buffer(), most);
}

double GradientReducer::last_norm() const { return impl_->clipper.last_norm(); }

// ---- plans

namespace {
std::vector<float> numbers_of(const HookState& state) {
    std::vector<float> numbers(state.values.count());
    base::copy(state.values, numbers);
    return numbers;
}
} // namespace

std::vector<std::size_t> GradientReducer::agreed_arrivals() {
    const std::vector<std::size_t> arrived = impl_->arrivals.arrived();
    std::vector<std::uint64_t> first(arrived.begin(), arrived.end());
    impl_->group.broadcast(first);
    return {first.begin(), first.end()};
}

bool GradientReducer::replan() { return reorder(agreed_arrivals()); }

std::vector<std::size_t> GradientReducer::order() const { return impl_->arrivals.order(); }

bool GradientReducer::reorder(const std::vector<std::size_t>& order) {
    Impl& s = *impl_;
    assert(s.open == Impl::Open::no);
    require_order(order, s.tensor_sizes.size());
    if (order == this->order()) return false;
    std::map<std::string, std::vector<float>> before; // goes on
    for (const HookState& state : s.feedback()) before.emplace(state.name, numbers_of(state));
    s.accumulated.forget();
    s.lay_out(plan_buckets(s.tensor_sizes, s.settings.limit, s.settings.first_limit, order));
    for (const HookState& state : s.feedback()) base::copy(before.at(state.name), state.values);
    return true;
}

// ---- error feedback

void GradientReducer::settle() {
    Impl& s = *impl_;
    if (s.settled) return;
    const float ranks = static_cast<float>(s.collective.size());
    for (const HookState& state : s.feedback()) {
        if (!state.error) continue;
        std::vector<float> numbers = numbers_of(state);
        s.group.all_reduce(numbers);
        for (float& number : numbers) number /= ranks;
        base::copy(numbers, state.values);
        s.traffic.bytes += bytes_of_sum(state.values.bytes(), s.collective.size());
    }
    s.settled = true;
}

namespace {
constexpr const char* saved_prefix = "gradients.";
constexpr const char* saved_ranks = "gradients.ranks";
} // namespace

void GradientReducer::save(study::StateSink& sink) const {
    const Impl& s = *impl_;
    if (s.feedback_free()) return;
    if (!s.settled)
        throw base::UsageError(
            "the gradients' error feedback differs between the ranks, so it cannot be saved: call "
            "GradientReducer::settle on all ranks at the end of the iteration");
    for (const HookState& state : s.feedback()) sink.put(saved_prefix + state.name, state.values);
    const std::uint64_t ranks = static_cast<std::uint64_t>(s.collective.size());
    sink.put<std::uint64_t>(saved_ranks, std::span(&ranks, 1));
}

void GradientReducer::load(study::StateSource& source) {
    const Impl& s = *impl_;
    if (s.feedback_free()) return;
    const std::vector<study::TensorInfo> saved = source.tensors();
    const auto has = [&saved](const std::string& name) {
        return std::ranges::find(saved, name, &study::TensorInfo::name) != saved.end();
    };
    if (!has(saved_ranks)) return;
    std::uint64_t ranks = 1;
    source.get<std::uint64_t>(saved_ranks, std::span(&ranks, 1));
    const float share = static_cast<float>(ranks) / static_cast<float>(s.collective.size());
    for (const HookState& state : s.feedback()) {
        const auto found = std::ranges::find(saved, saved_prefix + state.name, &study::TensorInfo::name);
        if (found == saved.end() || found->shape != std::vector<std::uint64_t>{state.values.count()}) continue;
        std::vector<float> numbers(state.values.count());
        source.get(found->name, numbers);
        if (state.error)
            for (float& number : numbers) number *= share;
        base::copy(numbers, state.values);
    }
}

// ---- measures

GradientReducer::Traffic GradientReducer::traffic() const { return impl_->traffic; }

void GradientReducer::set_clock(std::function<double()> clock) {
    Impl& s = *impl_;
    s.clock = std::move(clock);
    s.timer.reset();
    auto* const accelerator = device::accelerator_of(s.settings.place);
    if (s.clock && accelerator != nullptr && s.collective.size() > 1) s.timer.emplace(*accelerator);
}

GradientReducer::Timing GradientReducer::total_timing() const {
    return impl_->timer ? impl_->timer->total([this] { impl_->sums->look(); }) : impl_->total_timing;
}

} // namespace ranktune::ddp
