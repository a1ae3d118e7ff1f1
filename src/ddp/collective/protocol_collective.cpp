// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/protocol_collective.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/backoff.hpp"
#include "comm/kept.hpp"

namespace ranktune::ddp {
namespace {

using base::Buffer;
using base::ConstBuffer;
using base::DType;

constexpr std::int64_t neutral = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;

std::int64_t ordered(std::uint64_t number) { return static_cast<std::int64_t>(number ^ sign_bit); }
std::uint64_t unordered(std::int64_t word) { return static_cast<std::uint64_t>(word) ^ sign_bit; }

/// Owned memory for operations that may have to be kept to the exit.
struct Scratch {
    explicit Scratch(std::size_t bytes) : memory(base::allocate({}, bytes)) {}
    [[nodiscard]] std::span<std::byte> first(std::size_t bytes) const {
        return {static_cast<std::byte*>(memory.get()), bytes};
    }
    std::shared_ptr<void> memory;
};

/// Zeros for all operations of a step, as a rank that failed sends them.
class ZerosOf {
  public:
    using Route = StepPlan::Route;
    ZerosOf(const StepPlan& plan, std::size_t ranks)
        : plan_(plan), ranks_(ranks), type_(base::size_of(plan.type) == 2 ? DType::float32 : plan.type) {
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < plan.counts.size(); ++i) {
            begin_.push_back(bytes);
            bytes += (sent(i) + received(i) + 15) / 16 * 16;
        }
        memory_ = base::allocate({}, bytes);
        std::memset(memory_.get(), 0, bytes);
    }
    [[nodiscard]] const std::shared_ptr<void>& memory() const { return memory_; }
    [[nodiscard]] std::unique_ptr<Pending> start(Fabric& fabric, std::size_t i) const {
        std::byte* const at = static_cast<std::byte*>(memory_.get()) + begin_[i];
        if (route(i) == Route::sum) return fabric.start_gradient_sum(Buffer(at, plan_.counts[i], type_));
        const std::span from(at, sent(i));
        const std::span to(at + sent(i), received(i));
        return route(i) == Route::gather ? fabric.start_all_gather(from, to) : fabric.start_exchange(from, to);
    }

  private:
    [[nodiscard]] Route route(std::size_t i) const { return plan_.routes.empty() ? Route::sum : plan_.routes[i]; }
    [[nodiscard]] std::size_t sent(std::size_t i) const {
        if (route(i) == Route::sum) return plan_.counts[i] * base::size_of(type_);
        return plan_.counts[i] * (route(i) == Route::exchange ? ranks_ : 1);
    }
    [[nodiscard]] std::size_t received(std::size_t i) const {
        return route(i) == Route::sum ? 0 : plan_.counts[i] * ranks_;
    }

    const StepPlan& plan_;
    std::size_t ranks_;
    DType type_; ///< of sums, as StepPending reduces them
    std::vector<std::size_t> begin_;
    std::shared_ptr<void> memory_;
};

} // namespace

/// A bucket of a step; while it waits, it checks whether it can still complete.
class ProtocolCollective::StepPending final : public Pending {
  public:
    /// `staging`: for numbers that are staged in another type, else nullptr. Must outlive this object.
    StepPending(ProtocolCollective& owner, Buffer values, Staging* staging)
        : owner_(owner),
          values_(values),
          staging_(staging),
          inner_(owner.fabric_->start_gradient_sum(staging != nullptr ? staging->load(values) : values)) {}
    /// For an operation on bytes.
    StepPending(ProtocolCollective& owner, std::unique_ptr<Pending> inner)
        : owner_(owner), values_(nullptr, 0, DType::float32), staging_(nullptr), inner_(std::move(inner)) {}
    ~StepPending() override {
        if (staging_ != nullptr && !done_) comm::keep_to_exit(staging_->memory());
    }

    bool test() override {
        if (done_) return true;
        owner_.require_usable();
        done_ = owner_.guarded([&] { return inner_->test(); });
        if (done_ && staging_ != nullptr) staging_->store(values_);
        if (!done_) owner_.watch_step();
        return done_;
    }

  private:
    ProtocolCollective& owner_;
    Buffer values_;
    Staging* staging_;
    std::unique_ptr<Pending> inner_;
    bool done_ = false;
};

ProtocolCollective::ProtocolCollective(std::unique_ptr<Fabric> fabric, const std::atomic<bool>& abort,
                                       std::uint64_t epoch, Pieces pieces)
    : fabric_(std::move(fabric)),
      abort_(abort),
      pieces_(pieces),
      messages_(*fabric_, epoch, pieces.bytes,
                [this](Pending& pending, const std::shared_ptr<const void>& keep) { wait(pending, keep); }) {}

ProtocolCollective::~ProtocolCollective() {
    if (header_pending_) poison();                // a step was not ended
    const auto ending = std::move(devices_.sums); // which look after the group while they end
    devices_.sums.clear();
}

// ---- for users ----

void ProtocolCollective::do_barrier() {
    require_outside_step();
    agree(make_header(Operation::barrier));
}

void ProtocolCollective::do_all_reduce(Buffer values, Reduce how) {
    require_outside_step();
    const std::size_t most = std::min(values.count(), pieces_.elements);
    Staging staging(values.type(), most, how); // allocate before anything is sent: it may fail on one rank alone
    agree(make_header(Operation::all_reduce, values, static_cast<int>(how)));
    for (std::size_t done = 0; done < values.count(); done += most) {
        const Buffer piece = values.part(done, std::min(most, values.count() - done));
        const Buffer staged = staging.load(piece);
        const auto pending = guarded([&] { return fabric_->start_all_reduce(staged, how); });
        wait(*pending, staging.memory());
        staging.store(piece);
    }
}

void ProtocolCollective::do_broadcast(Buffer values, int root) {
    require_outside_step();
    std::span<std::byte> bytes = values.host_bytes();
    const Scratch scratch(std::min(bytes.size(), pieces_.bytes));
    agree(make_header(Operation::broadcast, values, root));
    while (!bytes.empty()) {
        const auto part = bytes.first(std::min(bytes.size(), pieces_.bytes));
        const auto piece = scratch.first(part.size());
        if (rank() == root) std::ranges::copy(part, piece.begin());
        const auto pending = guarded([&] { return fabric_->start_broadcast(piece, root); });
        wait(*pending, scratch.memory);
        if (rank() != root) std::ranges::copy(piece, part.begin());
        bytes = bytes.subspan(part.size());
    }
}

/// In pieces, so that the scratch memory does not grow with the group.
void ProtocolCollective::do_all_gather(ConstBuffer mine, Buffer all) {
    require_outside_step();
    const auto from = mine.host_bytes();
    const auto to = all.host_bytes();
    const auto ranks = static_cast<std::size_t>(size());
    const std::size_t most = std::min(from.size(), std::max<std::size_t>(pieces_.bytes / (ranks + 1), 1));
    const Scratch scratch((ranks + 1) * most);
    agree(make_header(Operation::all_gather, mine, 0));
    for (std::size_t done = 0; done < from.size(); done += most) {
        const std::size_t bytes = std::min(most, from.size() - done);
        const auto own = scratch.first(bytes);
        const auto gathered = scratch.first((ranks + 1) * bytes).subspan(bytes);
        std::ranges::copy(from.subspan(done, bytes), own.begin());
        const auto pending = guarded([&] { return fabric_->start_all_gather(own, gathered); });
        wait(*pending, scratch.memory);
        for (std::size_t r = 0; r < ranks; ++r)
            std::ranges::copy(gathered.subspan(r * bytes, bytes), to.subspan(r * from.size() + done).begin());
    }
}

void ProtocolCollective::do_send(ConstBuffer message, int to) {
    require_usable();
    require_outside_step();
    auto letter = messages_.write(message); // allocates: may fail on this rank alone
    look_out();
    guarded([&] { messages_.send(std::move(letter), to); });
}

void ProtocolCollective::do_receive(Buffer message, int from) {
    require_usable();
    require_outside_step();
    comm::Backoff backoff;
    const auto idle = [&, begin = std::chrono::steady_clock::now()] {
        look_out();
        check_wait(begin);
        backoff.pause();
    };
    const std::string complaint = guarded([&] { return messages_.receive(message, from, idle); });
    if (!complaint.empty()) throw base::UsageError(complaint);
}

// ---- for the library ----

std::pair<std::uint64_t, std::uint64_t> ProtocolCollective::min_max(std::uint64_t number) {
    require_outside_step();
    auto header = make_header(Operation::min_max);
    header[value] = ordered(number);
    header[not_value] = ~ordered(number);
    agree(header, true);
    return {unordered(~(*header_)[not_value]), unordered((*header_)[value])};
}

void ProtocolCollective::reach_devices(DeviceGroups& groups, std::vector<base::Rank> roster, std::string name) {
    devices_.groups = &groups;
    devices_.roster = std::move(roster);
    devices_.name = std::move(name);
}

std::unique_ptr<DeviceSums> ProtocolCollective::formed_sums(device::Accelerator& on) {
    try {
        const auto look = [this] {
            if (abort_.load()) throw Aborted("the trial was told to give up");
            look_for_lost();
        };
        return devices_.groups->form(*this, devices_.roster, on, devices_.name,
                                     {look, [this](const std::function<void()>& call) { use_sums(call); },
                                      [this] { return abort_.load() || others_are_lost(); },
                                      [this] { guarded([&] { messages_.tell_failure(headers_); }); },
                                      [this] { return messages_.failure() == headers_; }},
                                     longest_wait_);
    } catch (const GroupLost&) {
        tell_lost();
        throw;
    }
}

DeviceSums& ProtocolCollective::sums_on(device::Accelerator& on) {
    auto& sums = devices_.sums[&on];
    if (!sums && size() == 1) sums = make_self_sums(&abort_);
    if (!sums && devices_.groups == nullptr) return Collective::sums_on(on);
    if (!sums) sums = formed_sums(on);
    return *sums;
}

void ProtocolCollective::use_sums(const std::function<void()>& call) {
    require_usable();
    try {
        call();
    } catch (const GroupLost&) {
        tell_lost();
        throw;
    } catch (const device::DeviceMemoryError&) { // this rank cannot join a sum
        tell_lost();
        throw;
    } catch (...) {
        poison();
        throw;
    }
}

std::size_t ProtocolCollective::announce(const StepPlan& plan) {
    const auto known = std::ranges::find(plans_, plan, &Plan::step);
    if (known != plans_.end()) return static_cast<std::size_t>(known - plans_.begin());
    Plan added{plan, {}};
    if (base::size_of(plan.type) == 2) // allocate here: within a step it might fail on one rank alone
        for (const std::size_t elements : plan.counts) added.staging.emplace_back(plan.type, elements, Reduce::sum);
    plans_.push_back(std::move(added));
    return plans_.size() - 1;
}

void ProtocolCollective::begin_step(std::size_t plan, OpenStep& open) {
    require_outside_step();
    auto header = make_header(Operation::step);
    header[count] = static_cast<std::int64_t>(plan);
    header[not_count] = ~header[count];
    header[step] = 1;
    start_header(header);
    open_step_ = &open;
    open_plan_ = plan;
    started_buckets_ = 0;
    if (abort_.load()) give_up(); // the other ranks know from the header
}

std::unique_ptr<Pending> ProtocolCollective::start_sum(Buffer values) {
    require_usable();
    Plan& plan = plans_[open_plan_];
    const std::size_t bucket = started_buckets_++;
    assert(values.type() == plan.step.type && values.count() == plan.step.counts[bucket]);
    Staging* const staging = plan.staging.empty() ? nullptr : &plan.staging[bucket];
    return guarded([&] { return std::make_unique<StepPending>(*this, values, staging); });
}

std::unique_ptr<Pending> ProtocolCollective::start_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
    require_usable();
    assert(plans_[open_plan_].step.routes[started_buckets_] == StepPlan::Route::gather);
    assert(plans_[open_plan_].step.counts[started_buckets_] == mine.size());
    ++started_buckets_;
    return guarded([&] { return std::make_unique<StepPending>(*this, fabric_->start_all_gather(mine, all)); });
}

std::unique_ptr<Pending> ProtocolCollective::start_exchange(std::span<const std::byte> parts,
                                                            std::span<std::byte> all) {
    require_usable();
    assert(plans_[open_plan_].step.routes[started_buckets_] == StepPlan::Route::exchange);
    assert(plans_[open_plan_].step.counts[started_buckets_] * static_cast<std::size_t>(size()) == parts.size());
    ++started_buckets_;
    return guarded([&] { return std::make_unique<StepPending>(*this, fabric_->start_exchange(parts, all)); });
}

void ProtocolCollective::end_step() {
    open_step_ = nullptr;
    require_usable();
    wait_header();
    judge();
}

void ProtocolCollective::fail() {
    if (poisoned_) return;
    if (open_step_ != nullptr) return open_step_->fail();
    // The others may wait for sums that a sick device cannot join: they are told, and this throws.
    for (const auto& [on, sums] : devices_.sums)
        if (sums) sums->look();
    guarded([&] { messages_.tell_failure(headers_); });
    Header header = make_failing_header();
    header[failed] = rank() + 1;
    join(header);
}

void ProtocolCollective::check_sums() {
    for (const auto& [on, sums] : devices_.sums)
        if (sums && sums->lost()) sums->look();
}

void ProtocolCollective::part() noexcept {
    if (poisoned_) return;
    try {
        guarded([&] { messages_.new_generation(headers_); });
    } catch (...) { // the group is poisoned
    }
}

// ---- headers ----

ProtocolCollective::Header ProtocolCollective::make_header(Operation operation) const {
    Header header{};
    header[what] = static_cast<std::int64_t>(operation);
    header[not_what] = ~header[what];
    header[not_count] = ~header[count];
    header[aborted] = abort_.load() ? 1 : 0;
    header[not_plans] = neutral;
    header[value] = neutral;
    header[not_value] = neutral;
    return header;
}

ProtocolCollective::Header ProtocolCollective::make_header(Operation operation, const ConstBuffer& values,
                                                           int detail) const {
    Header header = make_header(operation);
    header[what] |= (static_cast<std::int64_t>(values.type()) << 8) | (static_cast<std::int64_t>(detail) << 16);
    header[not_what] = ~header[what];
    header[count] = static_cast<std::int64_t>(values.count());
    header[not_count] = ~header[count];
    return header;
}

ProtocolCollective::Header ProtocolCollective::make_failing_header() const {
    Header header{};
    std::ranges::fill(header, neutral);
    header[aborted] = abort_.load() ? 1 : 0;
    header[not_plans] = ~static_cast<std::int64_t>(plans_.size());
    header[step] = 0;
    return header;
}

void ProtocolCollective::start_header(const Header& header) {
    require_usable();
    check_sums();             // before values that depend on them are sent
    assert(!header_pending_); // only one operation at a time
    header_ = std::make_shared<Header>(header);
    header_pending_ = guarded([&] { return fabric_->start_all_reduce(*header_, Reduce::max); });
    ++headers_;
}

void ProtocolCollective::wait_header(bool patiently) {
    if (!header_pending_) return;
    wait(*header_pending_, header_, patiently);
    header_is_complete();
}

void ProtocolCollective::header_is_complete() {
    header_pending_.reset();
    if ((*header_)[failed] > 0) guarded([&] { messages_.new_generation(headers_); });
}

bool ProtocolCollective::joinable() const {
    const Header& header = *header_;
    return header[what] == ~header[not_what] && header[count] == ~header[not_count] &&
           header[count] < ~header[not_plans] && header[aborted] <= 0;
}

void ProtocolCollective::judge() const {
    const Header& header = *header_;
    if (header[aborted] > 0) throw Aborted("the trial was told to give up");
    if (header[failed] > 0) throw PeerFailed("rank " + std::to_string(header[failed] - 1) + " of the trial failed");
    if (header[what] != ~header[not_what]) {
        throw base::Error(
            "the ranks of the trial called different operations of its group, or the same with other types or roots");
    }
    if (header[count] != ~header[not_count]) {
        throw base::Error("the ranks of the trial passed different sizes to an operation of its group: " +
                          std::to_string(~header[not_count]) + " to " + std::to_string(header[count]));
    }
}

void ProtocolCollective::agree(const Header& header, bool patiently) {
    start_header(header);
    wait_header(patiently);
    if ((*header_)[step] > 0 && !joinable()) poison(); // the ranks in the step give up
    judge();
}

void ProtocolCollective::join(const Header& header) {
    start_header(header);
    wait_header();
    if ((*header_)[step] <= 0) return;
    if (!joinable()) {
        poison(); // the ranks in the step read the same header and do the same
        return;
    }
    guarded([&] { send_zeros(plans_[static_cast<std::size_t>((*header_)[count])].step); });
}

void ProtocolCollective::send_zeros(const StepPlan& plan) {
    const StepPlan::OnDevice& device = plan.on_device;
    for (std::size_t i = 0; i < device.counts.size(); ++i)
        device.sums->start_zeros(device.route(i), device.counts[i], device.type);
    const ZerosOf zeros(plan, static_cast<std::size_t>(size())); // allocate first: it may fail
    std::vector<std::unique_ptr<Pending>> pending;
    try {
        for (std::size_t i = 0; i < plan.counts.size(); ++i) pending.push_back(zeros.start(*fabric_, i));
    } catch (...) {
        comm::keep_to_exit(zeros.memory());
        throw;
    }
    for (const auto& operation : pending) wait(*operation, zeros.memory());
}

void ProtocolCollective::watch_step() {
    if (header_pending_ && guarded([&] { return header_pending_->test(); })) header_is_complete();
    if (!header_pending_ && !joinable()) {
        poison();
        judge();
    }
    if (abort_.load()) give_up();
    for (const auto& [on, sums] : devices_.sums)
        if (sums) sums->look();
}

void ProtocolCollective::tell_lost() noexcept {
    if (poisoned_) return;
    try {
        static const std::byte word{1};
        for (int other = 0; other < size(); ++other)
            if (other != rank()) told_.push_back(fabric_->start_send(std::span(&word, 1), other, Channel::lost));
    } catch (...) { // then the head tells them, when this rank's attempt has ended
    }
    poison();
}

/// A message is taken once, by whichever thread finds it.
bool ProtocolCollective::others_are_lost() {
    if (!others_lost_ && fabric_->arrived(Fabric::any_rank, Channel::lost)) others_lost_ = true;
    return others_lost_;
}

void ProtocolCollective::look_for_lost() {
    if (poisoned_ || !others_are_lost()) return;
    poison();
    throw GroupLost(GroupLost::Cause::told,
                    "another rank of the trial lost its GPU or the connection to others, or waited too long for them");
}

void ProtocolCollective::check_wait(std::chrono::steady_clock::time_point begin) {
    constexpr std::chrono::milliseconds hardly(100); // without devices only a peer that gives up tells anything
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (devices_.groups != nullptr || waited > hardly) look_for_lost();
    if (waited <= longest_wait_) return;
    tell_lost();
    throw GroupLost(GroupLost::Cause::timeout,
                    "rank " + std::to_string(rank()) + " waited for the other ranks of the trial for more than " +
                        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(longest_wait_).count()) +
                        " s (failure.collective_timeout)");
}

void ProtocolCollective::look_out() {
    if (abort_.load()) give_up();
    if (const auto header = messages_.failure(); header == headers_) {
        join(make_failing_header());
        judge();
        throw PeerFailed("another rank of the trial failed");
    }
}

void ProtocolCollective::wait(Pending& pending, const std::shared_ptr<const void>& keep, bool patiently) {
    comm::Backoff backoff;
    const auto begin = std::chrono::steady_clock::now();
    try {
        while (!pending.test()) {
            if (abort_.load()) give_up();
            if (patiently)
                look_for_lost();
            else
                check_wait(begin);
            backoff.pause();
        }
    } catch (...) {
        poison();
        comm::keep_to_exit(keep);
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
    open_step_ = nullptr;
    if (header_pending_) {
        comm::keep_to_exit(header_);
        header_pending_.reset();
    }
    messages_.abandon();
    for (const auto& [on, sums] : devices_.sums)
        if (sums) sums->abandon();
    fabric_->poison();
}

void ProtocolCollective::require_usable() const {
    if (poisoned_) throw Aborted("the trial's group has been given up");
}

void ProtocolCollective::require_outside_step() const {
    if (open_step_ != nullptr)
        throw base::UsageError("an operation of the group between the begin and the finish of a gradient step");
}

} // namespace ranktune::ddp
