// SPDX-License-Identifier: Apache-2.0
#include "ddp/gradients/device_groups.hpp"

#include <algorithm>
#include <cassert>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>

#include "comm/backoff.hpp"
#include "device/gradient_kernels.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::ddp {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto close_within = std::chrono::seconds(10);
/// Other ranks may be gone already.
constexpr auto flush_within = std::chrono::seconds(2);

/// Beyond it, times are as good as none, and cannot be added to the clock.
constexpr std::chrono::nanoseconds longest_time = std::chrono::hours(24 * 365);
Clock::time_point in_time(std::chrono::nanoseconds within) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::min(within, longest_time));
}

GroupLost::Cause cause_of(const device::CommunicatorError& error) {
    switch (error.cause()) {
        case device::CommunicatorError::Cause::peer:
            return GroupLost::Cause::peer;
        case device::CommunicatorError::Cause::timeout:
            return GroupLost::Cause::timeout;
        case device::CommunicatorError::Cause::system:
            break;
    }
    return GroupLost::Cause::system;
}

/// Another rank has no room for its part of a communicator, so that this one waits in vain.
struct OthersGoOn {};

/// Calls `call`; failures of device and communicator are a lost group, but for a full memory.
template <class Call>
auto or_lost(Call&& call) {
    try {
        return call();
    } catch (const device::CommunicatorError& error) {
        throw GroupLost(cause_of(error), error.what());
    } catch (const device::DeviceMemoryError&) {
        throw;
    } catch (const device::DeviceError& error) {
        throw GroupLost(GroupLost::Cause::device, error.what());
    }
}

/// Polls `done` until it is true.
void await(const std::function<bool()>& done, const DeviceGroups::Look& look, Clock::time_point end, const char* what) {
    comm::Backoff backoff;
    while (!done()) {
        look();
        if (Clock::now() > end)
            throw GroupLost(GroupLost::Cause::timeout,
                            std::string("the GPUs of the trial did not come together in time (") + what +
                                "; failure.forming_timeout): a rank is gone, or they cannot reach each other; "
                                "NCCL_DEBUG=INFO in the environment says more");
        backoff.pause();
    }
}

class SelfSums final : public DeviceSums {
  public:
    explicit SelfSums(const std::atomic<bool>* abort) : abort_(abort) {}
    void start(base::Buffer) override {}
    void join() override {}
    void issue(const std::function<void(device::Stream&)>&) override { assert(false); } // nothing is compressed
    void exchange(const void*, void*, std::size_t) override { assert(false); }
    void gather(const void*, void*, std::size_t) override { assert(false); }
    void sum_rounded(void*, std::size_t) override { assert(false); }
    void broadcast(base::Buffer) override {}
    void start_zeros(StepPlan::Route, std::size_t, base::DType) override {}
    void expect() override {}
    [[nodiscard]] bool lost() const override { return false; }
    void look() override {
        if (abort_ != nullptr && abort_->load()) throw Aborted("the trial was told to give up");
    }
    void abandon() noexcept override {}

  private:
    const std::atomic<bool>* abort_;
};

} // namespace

std::unique_ptr<DeviceSums> make_self_sums(const std::atomic<bool>* abort) { return std::make_unique<SelfSums>(abort); }

/// Sums over a communicator that is in use. Its functions and `tend` exclude each other; a `look_` may come back to
/// `abandon`.
class DeviceGroups::Sums final : public DeviceSums {
  public:
    /// `keep`: whether the communicator returns to the cache; agreed by all ranks.
    Sums(DeviceGroups& owner, Key key, Kept kept, bool keep, device::Accelerator& on, Ties ties,
         std::chrono::nanoseconds complete_within)
        : owner_(owner),
          ranks_(key.first.size()),
          key_(std::move(key)),
          kept_(std::move(kept)),
          keep_(keep),
          on_(on),
          ties_(std::move(ties)),
          complete_within_(complete_within),
          computed_(on.make_event()),
          summed_(on.make_event()) {
        const std::lock_guard lock(owner_.mutex_);
        owner_.in_use_.push_back(this);
    }
    ~Sums() override {
        {
            const std::lock_guard lock(owner_.mutex_);
            std::erase(owner_.in_use_, this);
        }
        if (abandoned_) return;
        try {
            finish();
        } catch (const base::Error&) {
            kept_.communicator->abort();
        }
    }
    Sums(const Sums&) = delete;
    Sums& operator=(const Sums&) = delete;

    void start(base::Buffer values) override {
        using_it([&] {
            follow_compute();
            add(values.address(), values.count(), values.type());
        });
    }

    void join() override {
        using_it([&] {
            stream().record(*summed_);
            on_.compute_stream().wait(*summed_);
        });
    }

    void issue(const std::function<void(device::Stream&)>& work) override {
        using_it([&] {
            follow_compute();
            work(stream());
        });
    }

    void exchange(const void* parts, void* all, std::size_t bytes) override {
        using_it([&] {
            if (bytes == 0) return;
            kept_.communicator->exchange(parts, all, bytes, stream());
            settle();
        });
    }

    void gather(const void* mine, void* all, std::size_t bytes) override {
        using_it([&] {
            if (bytes == 0) return;
            kept_.communicator->gather(mine, all, bytes, stream());
            settle();
        });
    }

    void sum_rounded(void* values, std::size_t count) override {
        using_it([&] { sum(values, count, base::DType::bfloat16); });
    }

    void broadcast(base::Buffer values) override {
        using_it([&] {
            if (values.count() == 0) return;
            follow_compute();
            kept_.communicator->broadcast(values.address(), values.bytes(), stream());
            settle();
        });
    }

    void start_zeros(StepPlan::Route route, std::size_t count, base::DType type) override {
        using Route = StepPlan::Route;
        if (route == Route::rounded_sum) type = base::DType::bfloat16;
        const bool sums = route == Route::sum || route == Route::rounded_sum;
        const std::size_t sent = sums ? count * base::size_of(type) : (route == Route::exchange ? ranks_ : 1) * count;
        using_it([&] {
            const Scratch zeros(stream(), sent + (sums ? 0 : ranks_ * count));
            stream().fill_zero(zeros.data(), sent);
            if (route == Route::sum)
                add(zeros.data(), count, type);
            else if (route == Route::rounded_sum)
                sum(zeros.data(), count, type);
            else if (route == Route::exchange)
                exchange(zeros.data(), zeros.data() + sent, count);
            else
                gather(zeros.data(), zeros.data() + sent, count);
        });
    }

    void expect() override {
        using_it([&] {
            drop_complete();
            if (complete_within_ > longest_time) return;
            expected_.push_back(
                {spare_.empty() ? on_.make_event() : std::move(spare_.back()), in_time(complete_within_)});
            if (!spare_.empty()) spare_.pop_back();
            stream().record(*expected_.back().complete);
        });
    }
    [[nodiscard]] bool lost() const override { return lost_.load(); }

    void look() override {
        ties_.guard([&] {
            ties_.look();
            using_it([&] {
                static_cast<void>(on_.compute_stream().idle()); // NCCL does not see that a device has failed
                static_cast<void>(kept_.communicator->settled());
                abort_if_overdue();
            });
            throw_if_lost();
            ties_.look();
        });
    }

    void abandon() noexcept override {
        const std::lock_guard lock(mutex_);
        if (abandoned_) return;
        abandoned_ = true;
        kept_.communicator->abort();
    }

    /// For other threads. The trial's thread looks by itself while it is inside one of the functions above.
    void tend() noexcept {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock || abandoned_) return;
        try {
            static_cast<void>(kept_.communicator->settled());
            abort_if_overdue();
            if (!abandoned_ && ties_.gives_up()) lose(GroupLost::Cause::told, "the group of the trial was given up");
        } catch (const device::CommunicatorError& error) {
            lose(cause_of(error), error.what());
        } catch (const base::Error&) { // of the device or of MPI: the trial's thread finds the same
        }
    }

  private:
    /// Memory of the device for work of one stream.
    class Scratch {
      public:
        Scratch(device::Stream& stream, std::size_t bytes) : stream_(stream), memory_(stream.allocate(bytes)) {}
        ~Scratch() { stream_.release(memory_); }
        Scratch(const Scratch&) = delete;
        Scratch& operator=(const Scratch&) = delete;
        [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_); }

      private:
        device::Stream& stream_;
        void* memory_;
    };
    struct Expected {
        std::unique_ptr<device::Event> complete;
        Clock::time_point until;
    };

    [[nodiscard]] device::Stream& stream() const { return on_.communication_stream(); }

    /// Calls `call` while no other thread looks.
    template <class Call>
    void using_it(Call&& call) {
        ties_.guard([&] {
            const std::lock_guard lock(mutex_);
            throw_if_lost();
            or_lost(call);
        });
    }
    void throw_if_lost() const {
        if (lost_) throw GroupLost(*why_);
    }
    /// Ends what is in flight; the trial's thread throws when it comes back from its wait.
    void lose(GroupLost::Cause cause, const std::string& message) {
        if (abandoned_) return;
        why_.emplace(cause, message);
        lost_ = true;
        abandon();
    }
    void drop_complete() {
        while (!expected_.empty() && expected_.front().complete->reached()) {
            spare_.push_back(std::move(expected_.front().complete));
            expected_.pop_front();
        }
    }
    void abort_if_overdue() {
        drop_complete();
        if (expected_.empty() || Clock::now() <= expected_.front().until) return;
        const auto limit = std::chrono::duration_cast<std::chrono::seconds>(complete_within_);
        lose(GroupLost::Cause::timeout, "a sum of gradients over the GPUs of the trial was not complete " +
                                            std::to_string(limit.count()) +
                                            " s after all ranks had started it (failure.collective_timeout); "
                                            "NCCL_DEBUG=INFO in the environment says more");
    }

    void follow_compute() {
        on_.compute_stream().record(*computed_);
        stream().wait(*computed_);
    }

    void sum(void* values, std::size_t count, base::DType type) {
        if (count == 0) return;
        kept_.communicator->sum(values, count, type, stream());
        settle();
    }

    void add(void* values, std::size_t count, base::DType type) {
        base::size_of(type) == 2 ? sum_narrow(values, count, type) : sum(values, count, type);
    }

    /// As 16 bits: every rank adds one part of the numbers in float, and rounds it once, as on hosts. NCCL's own sum
    /// would round at every rank.
    void sum_narrow(void* values, std::size_t count, base::DType type) {
        if (count == 0) return;
        constexpr std::size_t aligned = 8; // numbers: NCCL is fastest with 16 bytes
        const std::size_t part = ((count + ranks_ - 1) / ranks_ + aligned - 1) / aligned * aligned;
        const std::size_t bytes = part * base::size_of(type);
        const std::size_t mine = count * base::size_of(type);
        const Scratch sent(stream(), ranks_ * bytes);
        const Scratch received(stream(), ranks_ * bytes);
        const Scratch own(stream(), bytes);
        stream().copy(sent.data(), values, mine);
        stream().fill_zero(sent.data() + mine, ranks_ * bytes - mine);
        exchange(sent.data(), received.data(), bytes);
        if (!kernels_) kernels_ = on_.make_gradient_kernels(stream());
        kernels_->add_parts(own.data(), received.data(), part, ranks_, type, 1.0F);
        gather(own.data(), sent.data(), bytes);
        stream().copy(values, sent.data(), mine);
    }

    /// NCCL wants no other work on the stream before it has accepted a sum, which takes microseconds.
    void settle() {
        await([&] { return kept_.communicator->settled(); }, ties_.look, in_time(owner_.settings_.form_within),
              "starting a sum");
    }

    /// All ranks do this at the same place: the end of the trial.
    void finish() {
        const auto end = Clock::now() + close_within;
        await([&] { return stream().idle(); }, ties_.look, end, "ending a trial");
        if (keep_) {
            owner_.kept_[key_] = std::move(kept_);
            return;
        }
        await([&] { return kept_.communicator->close(); }, ties_.look, end, "closing a communicator");
    }

    DeviceGroups& owner_;
    std::size_t ranks_;
    Key key_;
    Kept kept_;
    bool keep_;
    device::Accelerator& on_;
    Ties ties_;
    std::chrono::nanoseconds complete_within_;
    std::unique_ptr<device::Event> computed_;
    std::unique_ptr<device::Event> summed_;
    std::unique_ptr<device::GradientKernels> kernels_; ///< made when they are needed
    std::recursive_mutex mutex_;
    std::deque<Expected> expected_; ///< in the order of `until`
    std::vector<std::unique_ptr<device::Event>> spare_;
    std::optional<GroupLost> why_; ///< set before `lost_`
    std::atomic<bool> lost_{false};
    bool abandoned_ = false;
};

void DeviceGroups::tend() noexcept {
    constexpr std::chrono::milliseconds between(50);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto now = Clock::now();
    if (!lock || in_use_.empty() || now < tended_ + between) return;
    tended_ = now;
    for (Sums* const sums : in_use_) sums->tend();
}

DeviceGroups::~DeviceGroups() { drop_kept(nullptr); }

bool DeviceGroups::drop_kept(const device::Accelerator* on) {
    std::vector<Kept> dropped;
    for (auto entry = kept_.begin(); entry != kept_.end();) {
        const bool keep = on != nullptr && entry->first.second != on;
        if (!keep) dropped.push_back(std::move(entry->second));
        entry = keep ? std::next(entry) : kept_.erase(entry);
    }
    const bool any = !dropped.empty();
    const auto closed = [](const Kept& kept) {
        try {
            return kept.communicator->close();
        } catch (const base::Error&) { // aborted below, with its owner
            return true;
        }
    };
    comm::Backoff backoff;
    for (const auto end = Clock::now() + flush_within; !dropped.empty() && Clock::now() < end; backoff.pause())
        std::erase_if(dropped, closed);
    return any;
}

/// NCCL would refuse it, too, but only some of the ranks, and with a message that helps nobody.
void DeviceGroups::refuse_shared_devices(Collective& group, const device::Accelerator& on) const {
    base::Digest digest;
    digest.add(std::as_bytes(std::span(settings_.host))).add(std::as_bytes(std::span(on.facts().uuid)));
    const std::uint64_t mine = digest.value();
    std::vector<std::uint64_t> all(static_cast<std::size_t>(group.size()));
    group.all_gather(std::span(&mine, 1), all);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto same = std::find(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), all[i]);
        if (same == all.end()) continue;
        throw base::UsageError("ranks " + std::to_string(i) + " and " + std::to_string(same - all.begin()) +
                               " of the trial have the same GPU" +
                               (mine == all[i] ? " (" + on.facts().uuid + " on " + settings_.host + ")" : "") +
                               "; NCCL needs one for each rank: start fewer workers on the node, or grant more GPUs "
                               "(resources.gpus checks that before trials start)");
    }
}

/// Joins the communicator `id`, and proves it with a sum. Throws OthersGoOn.
DeviceGroups::Kept DeviceGroups::make_with(const device::CommunicatorId& id, Collective& group, device::Accelerator& on,
                                           const std::string& name, const Ties& ties) const {
    // Freed after the communicator, whose abort ends what uses them.
    const auto summed = on.allocate_pinned(sizeof(float));
    const auto on_device = or_lost([&] { return base::allocate(base::Place(on), sizeof(float)); });
    Kept kept;
    base::Digest digest;
    kept.number = digest.add(std::as_bytes(std::span(id.bytes))).value() | 1U;
    const auto end = in_time(settings_.form_within);
    auto& stream = on.communication_stream();
    const auto look = [&ties] {
        ties.look();
        if (ties.others_go_on()) throw OthersGoOn();
    };
    or_lost([&] {
        kept.communicator = on.make_communicator(id, group.size(), group.rank(), name);
        await([&] { return kept.communicator->settled(); }, look, end, "forming a communicator");
        auto* const number = static_cast<float*>(summed.get());
        *number = 1.0F;
        stream.upload(on_device.get(), number, sizeof(float));
        kept.communicator->sum(on_device.get(), 1, base::DType::float32, stream);
        await([&] { return kept.communicator->settled(); }, look, end, "the first sum");
        await([&] { return kept.communicator->settled() && stream.idle(); }, look, end, "the first sum");
        stream.download(number, on_device.get(), sizeof(float));
        await([&] { return stream.idle(); }, look, end, "the first sum");
        if (*number != static_cast<float>(group.size()))
            throw GroupLost(GroupLost::Cause::system, "NCCL adds wrongly: the sum of " + std::to_string(group.size()) +
                                                          " ones is " + std::to_string(*number));
    });
    return kept;
}

/// All ranks learn together whether it is formed: what NCCL says on one of them may follow from another's full memory.
DeviceGroups::Kept DeviceGroups::make(Collective& group, device::Accelerator& on, const std::string& name,
                                      const Ties& ties) {
    enum State : std::uint64_t { failed, formed, no_room };
    for (bool again = false;; again = true) {
        device::CommunicatorId id;
        if (group.rank() == 0) id = or_lost([] { return device::require_devices().make_id(); });
        group.broadcast(id.bytes);
        Kept kept;
        State state = failed;
        GroupLost why(GroupLost::Cause::told, "another rank of the trial could not connect its GPU");
        try {
            kept = make_with(id, group, on, name, ties);
            state = formed;
        } catch (const device::DeviceMemoryError& error) {
            state = no_room;
            why = {GroupLost::Cause::device, error.what()};
        } catch (const GroupLost& error) {
            if (error.cause() != GroupLost::Cause::system && error.cause() != GroupLost::Cause::peer) throw;
            why = error;
        } catch (const OthersGoOn&) { // they know why
        }
        if (state != formed) ties.go_on();
        const auto [low, high] = group.min_max(state);
        if (low == formed && high == formed) {
            ++made_;
            return kept;
        }
        kept = {};
        if (high != no_room) throw GroupLost(why);
        if (again && state == no_room)
            throw device::DeviceMemoryError(std::string("there is no room for the communicator of the trial's GPUs: ") +
                                            why.what());
        if (again) throw PeerFailed("another rank of the trial has no room for its communicator");
        static_cast<void>(on.relieve());
    }
}

std::unique_ptr<DeviceSums> DeviceGroups::form(Collective& group, std::span<const base::Rank> roster,
                                               device::Accelerator& on, const std::string& name, Ties ties,
                                               std::chrono::nanoseconds complete_within) {
    assert(group.size() > 1 && roster.size() == static_cast<std::size_t>(group.size()));
    if (auto& dropper = droppers_[&on]; !dropper) {
        dropper = std::make_shared<const device::Accelerator::Freeing>([this, &on] { return drop_kept(&on); });
        on.add_idle(dropper);
    }
    refuse_shared_devices(group, on);
    Key key{{roster.begin(), roster.end()}, &on};
    Kept kept;
    if (const auto found = kept_.find(key); found != kept_.end()) {
        kept = std::move(found->second);
        kept_.erase(found);
    }
    const auto [low, high] = group.min_max(kept.number);
    const bool reuse = low == high && kept.communicator != nullptr;
    if (reuse) {
        ++reused_;
    } else {
        kept = {}; // aborted: other ranks have lost theirs
        kept = make(group, on, name, ties);
    }
    const std::uint64_t room = kept_.size() < settings_.keep ? 1 : 0;
    const bool keep = group.min_max(room).first == 1; // also says that all have formed it
    return std::make_unique<Sums>(*this, std::move(key), std::move(kept), keep, on, std::move(ties), complete_within);
}

} // namespace ranktune::ddp
