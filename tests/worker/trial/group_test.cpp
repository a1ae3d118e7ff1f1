// SPDX-License-Identifier: Apache-2.0
// The group that a trainable gets, and device states, through all layers down to the checkpoint store.

#include <atomic>
#include <memory>

#include "ddp/group_contract.hpp"
#include "support/catch.hpp"
#include "support/fake_device.hpp"
#include "support/ranks.hpp"
#include "worker/trial/group_collective.hpp"
#include "worker/trial/trial_cluster.hpp"

namespace ranktune::testing {

using namespace ranktune::worker;
namespace {

using study::AttemptOutcome;

/// Only counts progress.
class CountingPort final : public AttemptPort {
  public:
    void reported(RunnerReported) override {}
    void saved(study::CheckpointRef) override {}
    void unsaved(std::string) override {}
    study::Verdict verdict_after(base::Iteration) override { return {}; }
    std::optional<study::Verdict> verdict_within(base::Iteration, std::chrono::milliseconds) override { return {}; }
    void progressed() noexcept override { ++progress; }
    void waits(bool) noexcept override {}
    const std::atomic<bool>& abort_flag() const override { return abort; }
    void log(base::TrialId, std::string_view) override {}

    std::atomic<bool> abort{false};
    int progress = 0;
};

using ranktune::testing::FakeDevice;
using ranktune::testing::OnDevice;

/// Runs `step` once on each of three ranks and returns how they ended.
std::vector<RunnerEnded> ends_of(const trainables::TrainFunction& step) {
    trainables::Registration trainable{any_trainable("once"), {}, step};
    TrialCluster cluster(3, trainable);
    cluster.prepare(3, 27);
    auto& logs = cluster.run_until(27);
    std::vector<RunnerEnded> ends;
    for (const auto& log : logs) ends.push_back(*log.ended);
    return ends;
}

void check_blames_rank_1(const std::vector<RunnerEnded>& ends, const std::string& words) {
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        CHECK(ends[rank].outcome == AttemptOutcome::failed);
        CHECK(ends[rank].failure == (rank == 1 ? study::Failure{words, 1} : study::Failure{}));
    }
}

/// Counts on a device; every rank holds the same number and, if sharded, two of its own.
struct DeviceCounter final : trainables::Trainable {
    explicit DeviceCounter(bool in_shards) : sharded(in_shards) {}
    void setup(trainables::TrialContext& context) override {
        rank = static_cast<std::uint64_t>(context.rank());
        size = static_cast<std::uint64_t>(context.size());
    }
    trainables::Metrics step(trainables::TrialContext&) override {
        const auto next = base::BFloat16(static_cast<float>(same.values()[0]) + 1.0F);
        base::copy(std::span(&next, 1), same.buffer());
        return {{"count", static_cast<double>(static_cast<float>(next))}};
    }
    void save(study::StateSink& sink) const override {
        sink.put("same", same.buffer());
        if (sharded) sink.put_rows("rows", rows.buffer(), {2 * size}, 2 * rank, 2);
    }
    void load(study::StateSource& source) override { source.get("same", same.buffer()); }

    bool sharded;
    std::uint64_t rank = 0;
    std::uint64_t size = 1;
    mutable FakeDevice device;
    OnDevice<base::BFloat16> same{device, {base::BFloat16(0.0F)}};
    OnDevice<float> rows{device, {1.0F, 2.0F}};
};

} // namespace

TEST_CASE("the group of a trainable keeps its contract", "[trial]") {
    for (const int size : {1, 2, 3}) {
        std::vector<test::Complaints> complaints(static_cast<std::size_t>(size));
        std::vector<std::unique_ptr<ddp::Collective>> inner = ddp::make_thread_collectives(size);
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < inner.size(); ++rank) {
            threads.emplace_back([&, rank] {
                CountingPort port;
                GroupCollective group(std::move(inner[rank]), port);
                for (const auto contract : {test::reduction_contract, test::copy_contract, test::message_contract})
                    for (const auto& complaint : contract(group)) complaints[rank].push_back(complaint);
                for (const auto& complaint : test::refusal_contract(group)) complaints[rank].push_back(complaint);
                const int before = port.progress;
                group.barrier();
                test::expect(complaints[rank], port.progress == before + 1, "progress is not counted");
            });
        }
        for (auto& thread : threads) thread.join();
        for (const auto& list : complaints) CHECK(list == test::Complaints{});
    }
}

TEST_CASE("an error of one rank fails the trial on all ranks, and that rank is blamed", "[trial]") {
    check_blames_rank_1(ends_of([](trainables::TrialContext& context) {
                            FakeDevice device(1);
                            const OnDevice<float> there(device, {1.0F});
                            std::vector<float> here(1);
                            const auto values = context.rank() == 1 ? there.buffer() : base::Buffer(here);
                            context.group().all_reduce(values);
                        }),
                        "all_reduce of 1 float32 on device 1: the group of this trial only takes host memory; copy it "
                        "there first");
    check_blames_rank_1(ends_of([](trainables::TrialContext& context) {
                            std::vector<float> values(3);
                            context.group().send(values, (context.rank() + 1) % 3);
                            if (context.rank() == 1) context.group().receive(std::span(values).first(2), 0);
                            // Rank 2 gets its message, then waits like rank 0.
                            if (context.rank() == 2) context.group().receive(values, 1);
                            context.group().receive(values, context.rank());
                        }),
                        "rank 0 sent 3 float32 on the host, and this rank receives 2 float32 on the host");
}

TEST_CASE("a rank that fails while others wait for its message frees them", "[trial]") {
    check_blames_rank_1(ends_of([](trainables::TrialContext& context) {
                            if (context.rank() == 1) throw base::Error("broken");
                            std::vector<float> values(3);
                            context.group().receive(values, 1);
                        }),
                        "broken");
}

TEST_CASE("a state on a device is saved and loaded like any other, on any number of ranks", "[trial]") {
    for (const bool sharded : {false, true}) {
        for (const int ranks : {1, 2, 3}) {
            auto info = any_trainable("device counter");
            info.sharded = sharded;
            const trainables::Registration counter{
                info, [sharded] { return std::make_unique<DeviceCounter>(sharded); }, {}};
            TrialCluster cluster(3, counter);
            cluster.prepare(ranks, 3);
            auto& first = cluster.run_until(3);
            REQUIRE(first[0].saved.size() == 1);
            for (int r = 0; r < ranks; ++r)
                CHECK(first[static_cast<std::size_t>(r)].ended->outcome == AttemptOutcome::paused);
            const auto checkpoint = first[0].saved[0];
            cluster.prepare(4 - ranks, 5, checkpoint);
            auto& second = cluster.run_until(5);
            REQUIRE(second[0].reports.size() == 2);
            CHECK(second[0].reports[1].metrics[0].value == 5.0);
        }
    }
}

} // namespace ranktune::testing
