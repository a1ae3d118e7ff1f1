// SPDX-License-Identifier: Apache-2.0
// Groups of devices: a rank that waits where ranktune cannot look, and memory that is short. Ranks are threads.

#include <optional>

#include "device_ranks.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "support/catch.hpp"

namespace groups_test {

using namespace ranktune;
using base::DType;
using testing::Member;
using testing::Ranks;
using testing::With;

namespace {

/// The loop of a worker, which tends the groups of all ranks.
class Worker {
  public:
    explicit Worker(Ranks& ranks)
        : thread_([this, &ranks] {
              while (!over_) {
                  for (int rank = 0; rank < ranks.size(); ++rank) ranks.groups(rank).tend();
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
          }) {}
    ~Worker() {
        over_ = true;
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

  private:
    std::atomic<bool> over_{false};
    std::thread thread_;
};

/// Waits as Tensor::item does: for the device alone. False: that took too long.
bool wait_deaf(device::Stream& stream) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!stream.idle()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

bool on_stand_in() { return testing::is_stand_in(testing::runtime_or_skip()); }

constexpr std::uint64_t mebi = 1U << 20U;
std::string kibi(std::uint64_t mebis) { return std::to_string(mebis << 10U); }

/// Memory that somebody keeps for later.
struct Keeper {
    explicit Keeper(device::Accelerator& on, std::uint64_t bytes) : memory(base::allocate(base::Place(on), bytes)) {}
    std::shared_ptr<void> memory;
    int asked = 0;
    std::shared_ptr<const device::Accelerator::Freeing> freeing =
        std::make_shared<const device::Accelerator::Freeing>([this] {
            ++asked;
            return std::exchange(memory, nullptr) != nullptr;
        });
};

} // namespace

TEST_CASE("a rank that waits inside another library hears that its sums are lost", "[stand-in]") {
    if (!on_stand_in()) return;
    // A trial that is given up; an error of NCCL on rank 1, which then tells rank 0.
    for (const bool told : {true, false}) {
        INFO(told);
        Ranks ranks(2);
        const Worker worker(ranks);
        std::atomic<int> heard{0};
        std::atomic<int> deaf{0};
        std::atomic<int> started{0};
        std::optional<ddp::GroupLost::Cause> cause; // on rank 1
        ranks.trial([&](Member me) {
            const testing::OnAccelerator<float> numbers(me.on, std::vector<float>(10));
            auto& sums = me.group.sums_on(me.on);
            me.group.barrier();
            if (me.rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", "1:next:hang", 1);
            me.group.barrier();
            try {
                sums.start({numbers.data(), 10, DType::float32, base::Place(me.on)});
                sums.join();
                for (++started; started < 2;) std::this_thread::yield();
                if (told)
                    ranks.abort(me.rank) = true;
                else if (me.rank == 1)
                    setenv("RANKTUNE_STAND_IN_NCCL", "1:now:async", 1);
                deaf += wait_deaf(me.on.compute_stream()) ? 0 : 1;
                me.group.check_sums();
            } catch (const ddp::GroupLost& error) {
                ++heard;
                if (me.rank == 1) cause = error.cause();
            } catch (const ddp::Aborted&) {
                ++heard;
            }
        });
        unsetenv("RANKTUNE_STAND_IN_NCCL");
        CHECK(heard == 2);
        CHECK(deaf == 0);
        if (!told) CHECK(cause == ddp::GroupLost::Cause::peer);
    }
}

TEST_CASE("an allocation without room is tried once more when others have freed what they keep", "[device]") {
    auto& on = testing::runtime_or_skip().open(0);
    on.limit_memory(5 * mebi);
    for (const bool idle : {false, true}) {
        Keeper keeper(on, 3 * mebi);
        idle ? on.add_idle(keeper.freeing) : on.add_cache(keeper.freeing);
        CHECK(base::allocate(base::Place(on), 3 * mebi) != nullptr);
        CHECK(keeper.asked == 1);
        CHECK_THROWS_AS(base::allocate(base::Place(on), 6 * mebi), device::DeviceMemoryError);
        CHECK(keeper.asked == 2);
        void* const in_order = on.compute_stream().allocate(3 * mebi);
        on.compute_stream().release(in_order);
        on.free_caches(); // between attempts, when nothing is short
        CHECK(keeper.asked == (idle ? 2 : 3));
    }
    on.limit_memory(0);
}

TEST_CASE("memory that a stream has released can be allocated by others", "[stand-in]") {
    if (!on_stand_in()) return;
    auto& on = testing::runtime_or_skip().open(3);
    auto& stream = on.compute_stream();
    const With memory("MEMORY", kibi(50));
    stream.release(stream.allocate(40 * mebi));
    CHECK(base::allocate(base::Place(on), 40 * mebi) != nullptr);
}

TEST_CASE("kept communicators make room for a trial that needs it", "[stand-in]") {
    if (!on_stand_in()) return;
    const With communicators("NCCL_MEMORY", kibi(20));
    const With memory("MEMORY", kibi(50));
    Ranks ranks(2);
    const auto trial = [&] { ranks.trial([](Member me) { static_cast<void>(me.group.sums_on(me.on)); }); };
    trial();
    REQUIRE(ranks.groups(0).counts().kept == 1);
    CHECK(base::allocate(base::Place(testing::runtime_or_skip().open(0)), 40 * mebi) != nullptr);
    CHECK(ranks.groups(0).counts().kept == 0);
    trial(); // rank 1 still has its side of the old one
    CHECK(ranks.groups(0).counts().made == 2);
    CHECK(ranks.groups(1).counts().made == 2);
}

TEST_CASE("a group forms when one rank has freed what it keeps", "[stand-in]") {
    if (!on_stand_in()) return;
    const With communicators("NCCL_MEMORY", kibi(20));
    const With memory("MEMORY", kibi(50));
    Ranks ranks(2);
    auto& crowded = testing::runtime_or_skip().open(1);
    Keeper keeper(crowded, 40 * mebi);
    crowded.add_cache(keeper.freeing);
    std::atomic<int> wrong{0};
    ranks.trial([&](Member me) {
        const testing::OnAccelerator<float> numbers(me.on, std::vector<float>{1.0F});
        auto& sums = me.group.sums_on(me.on);
        sums.start({numbers.data(), 1, DType::float32, base::Place(me.on)});
        sums.join();
        wrong += numbers.values().front() == 2.0F ? 0 : 1;
    });
    CHECK(wrong == 0);
    CHECK(ranks.groups(0).counts().made == 1);
}

TEST_CASE("no room for a communicator is an oversized trial, not a lost rank", "[stand-in]") {
    if (!on_stand_in()) return;
    const With communicators("NCCL_MEMORY", kibi(20));
    const With memory("MEMORY", kibi(50));
    for (int small = 0; small < 2; ++small) {
        Ranks ranks(2);
        const auto taken = base::allocate(base::Place(testing::runtime_or_skip().open(small)), 40 * mebi);
        std::atomic<int> short_of_memory{-1};
        std::atomic<int> peers{0};
        ranks.trial([&](Member me) {
            try {
                static_cast<void>(me.group.sums_on(me.on));
            } catch (const device::DeviceMemoryError& error) {
                CHECK(
                    std::string(error.what()).starts_with("there is no room for the communicator of the trial's GPUs"));
                short_of_memory = me.rank;
            } catch (const ddp::PeerFailed&) {
                ++peers;
            }
            me.group.barrier(); // goes on
        });
        CHECK(short_of_memory == small);
        CHECK(peers == 1);
    }
}

} // namespace groups_test
