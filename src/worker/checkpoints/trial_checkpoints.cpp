// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/trial_checkpoints.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "ranktune/base/error.hpp"
#include "worker/checkpoints/state_exchange.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

using Clock = std::chrono::steady_clock;
using study::AttemptOutcome;

base::UsageError needs_shards(const std::string& name) {
    return base::UsageError("tensor '" + name +
                            "' is saved in parts (put_rows), but the trainable does not say so: set sharded = true in "
                            "its TrainableInfo");
}

/// For one rank that saves for all: rejects tensors that are distributed over ranks.
class PlainSink final : public study::StateSink {
  public:
    explicit PlainSink(study::StateSink& to) : to_(to) {}
    void tensor(const study::TensorInfo& info, base::ConstBuffer values) override {
        if (info.layout != study::Layout::replicated) throw needs_shards(info.name);
        to_.tensor(info, values);
    }
    void blob(std::string_view name, std::span<const std::byte> bytes) override { to_.blob(name, bytes); }

  private:
    study::StateSink& to_;
};

/// One rank's shard: its rows, and on rank 0 also what all ranks hold.
class ShardSink final : public study::StateSink {
  public:
    ShardSink(study::MemoryState& to, bool leads) : to_(to), leads_(leads) {}
    void tensor(const study::TensorInfo& info, base::ConstBuffer values) override {
        const bool mine = info.layout == study::Layout::sharded;
        if (!mine) same_.tensor(info, values);
        if (mine || leads_) to_.tensor(info, values);
    }
    void blob(std::string_view name, std::span<const std::byte> bytes) override {
        if (leads_) to_.blob(name, bytes);
    }
    /// Digest of what all ranks must hold the same.
    [[nodiscard]] std::uint64_t digest() const { return same_.value(); }

  private:
    study::MemoryState& to_;
    bool leads_;
    study::StateDigest same_;
};

/// Tells a checkpoint that cannot be read from a tensor that does not exist.
class ReadingSource final : public study::StateSource {
  public:
    explicit ReadingSource(study::StateSource& from) : from_(from) {}
    void tensor(const study::TensorInfo& info, base::Buffer values) override {
        reading([&] { from_.tensor(info, values); });
    }
    [[nodiscard]] std::vector<std::byte> blob(std::string_view name) override {
        std::vector<std::byte> bytes;
        reading([&] { bytes = from_.blob(name); });
        return bytes;
    }
    [[nodiscard]] std::vector<study::TensorInfo> tensors() const override { return from_.tensors(); }

  private:
    template <class F>
    void reading(F&& read) {
        try {
            read();
        } catch (const storage::DamageError& error) {
            throw CheckpointError(AttemptOutcome::unreadable, error.what());
        } catch (const base::IoError& error) {
            throw CheckpointError(AttemptOutcome::unreachable, error.what());
        }
    }
    study::StateSource& from_;
};

/// Failure of the first rank with this value of `failed`, without a rank number for rank 0; empty: none.
template <class ToldByRanks>
study::Failure first_failure(const ToldByRanks& told, std::uint64_t failed) {
    for (std::uint32_t rank = 0; rank < told.size(); ++rank)
        if (told[rank].failed == failed) return {told[rank].error, rank == 0 ? std::nullopt : std::optional(rank)};
    return {};
}

template <class Told>
void say(Told& told, std::uint64_t failed, const std::string& error) {
    told.failed = failed;
    std::strncpy(told.error, error.c_str(), sizeof told.error - 1);
}

} // namespace

TrialCheckpoints::TrialCheckpoints(const AttemptSetting& setting, const Assignment& assignment, GroupCollective& group,
                                   CheckpointSchedule& schedule)
    : setting_(setting),
      assignment_(assignment),
      group_(group),
      schedule_(schedule),
      sharded_(setting.trainable->info.sharded) {}

TrialCheckpoints::~TrialCheckpoints() { static_cast<void>(setting_.writer->wait()); }

storage::CheckpointKey TrialCheckpoints::key_at(base::Iteration iteration) const {
    const auto& start = assignment_.start;
    storage::CheckpointKey key{start.trial, iteration, start.incarnation, start.attempt};
    if (sharded_) {
        key.shard = static_cast<std::uint32_t>(group_.rank());
        key.shards = static_cast<std::uint32_t>(group_.size());
    }
    return key;
}

// ---- loading ----

/// Without shards rank 0 reads and broadcasts; with shards every rank reads what it needs.
void TrialCheckpoints::restore(const study::CheckpointRef& checkpoint, const Load& load) {
    if (!checkpoint.shards.empty()) return restore_shards(checkpoint, load);
    if (group_.size() == 1) return read(checkpoint, load);
    study::MemoryState state;
    if (assignment_.leads()) {
        try {
            state = setting_.checkpoints->load(checkpoint, assignment_.start.holders);
        } catch (const base::Error& error) {
            throw CheckpointError(outcome_of_reading(error), error.what());
        }
    }
    broadcast_state(group_, state);
    load(state);
}

/// Gives `load` what this rank can read on demand.
void TrialCheckpoints::read(const study::CheckpointRef& checkpoint, const Load& load) {
    std::unique_ptr<study::StateSource> source;
    try {
        source = setting_.checkpoints->open(checkpoint, assignment_.start.holders);
    } catch (const base::Error& error) {
        throw CheckpointError(outcome_of_reading(error), error.what());
    }
    ReadingSource reading(*source);
    load(reading);
}

void TrialCheckpoints::restore_shards(const study::CheckpointRef& checkpoint, const Load& load) {
    Told mine;
    try {
        read(checkpoint, load);
    } catch (const CheckpointError& error) {
        say(mine, error.outcome() == AttemptOutcome::unreadable ? damage : trouble, error.what());
    }
    const std::uint64_t worst = group_.min_max(mine.failed).second;
    if (worst == 0) return;
    const auto told = tell(mine);
    group_.part(); // all ranks see the same error: nobody waits
    const auto outcome = worst == damage ? AttemptOutcome::unreadable : AttemptOutcome::unreachable;
    const study::Failure failed = first_failure(told, worst);
    if (assignment_.leads()) throw CheckpointError(outcome, failed.message, failed.rank);
    throw ddp::PeerFailed("the trial's checkpoint cannot be read");
}

// ---- between two iterations ----

bool TrialCheckpoints::collect(bool wait) {
    if (!sharded_) take_result(wait ? setting_.writer->wait() : setting_.writer->take());
    return written_.has_value();
}

/// Leader. A failed write is only reported, because training can go on.
void TrialCheckpoints::take_result(std::optional<CheckpointWriter::Result> result) {
    if (!result) return;
    schedule_.measured(stall_s_, result->seconds);
    if (result->error.empty())
        written_ = std::move(result->checkpoint);
    else
        schedule_.missed(result->error);
}

bool TrialCheckpoints::idle() const { return !in_flight_ && setting_.writer->idle(); }

void TrialCheckpoints::settle(bool compare, bool goes_on) {
    if (in_flight_) settle_shards(goes_on);
    if (!compare) return;
    agree_on(assignment_.leads() ? written_->digest : taken_digest_, taken_.iteration);
    if (assignment_.leads()) schedule_.saved(*std::exchange(written_, std::nullopt), taken_.value);
}

/// The shards are complete when the last rank has written its own.
void TrialCheckpoints::settle_shards(bool goes_on) {
    if (!own_) own_ = goes_on ? setting_.writer->take() : setting_.writer->wait();
    if (group_.min_max(own_ ? 1 : 0).first == 0) return;
    schedule_.measured(stall_s_, own_->seconds);
    agree_on(taken_digest_, taken_.iteration);
    in_flight_ = false; // from here on another rank may have announced the checkpoint
    finish_own_shard();
}

/// Collective.
void TrialCheckpoints::finish_own_shard() {
    const auto own = *std::exchange(own_, std::nullopt);
    Told mine{0, own.checkpoint.bytes, own.checkpoint.digest, {}};
    if (!own.error.empty()) say(mine, failure, own.error);
    const study::Failure failed = finish_shards(key_at(taken_.iteration), mine);
    if (!failed.empty() && assignment_.leads()) schedule_.missed(study::describe(failed));
}

/// Collective. Announces the checkpoint, or removes what was written of it and returns why.
study::Failure TrialCheckpoints::finish_shards(const storage::CheckpointKey& key, const Told& mine) {
    const auto told = tell(mine);
    study::Failure failed = first_failure(told, failure);
    if (!failed.empty()) {
        if (mine.failed == 0) setting_.checkpoints->discard(key);
        return failed;
    }
    if (!assignment_.leads()) return {};
    std::vector<study::CheckpointRef> shards;
    for (const Told& shard : told) shards.push_back({key.iteration, {}, shard.bytes, shard.digest});
    schedule_.saved(storage::join_shards(key, shards), taken_.value);
    return {};
}

/// Copies what this rank writes into `state`, and returns the digest of what all ranks must hold the same.
std::uint64_t TrialCheckpoints::copy_state(study::MemoryState& state, const Save& save) {
    ShardSink sink(state, assignment_.leads());
    save(sink);
    return sink.digest();
}

void TrialCheckpoints::take(const TrialPoint& point, const Save& save) {
    const auto before = Clock::now();
    taken_ = point;
    schedule_.taken(point);
    if (sharded_) {
        taken_digest_ = copy_state(*setting_.writer->fresh_state(), save);
        in_flight_ = true;
        setting_.writer->start(key_at(point.iteration));
    } else if (assignment_.leads()) {
        PlainSink sink(*setting_.writer->fresh_state());
        save(sink);
        setting_.writer->start(key_at(point.iteration));
    } else {
        study::StateDigest digest;
        PlainSink sink(digest);
        save(sink);
        taken_digest_ = digest.value();
    }
    stall_s_ = std::chrono::duration<double>(Clock::now() - before).count();
}

// ---- the last checkpoint ----

void TrialCheckpoints::save_last(const TrialPoint& point, const Save& save) {
    taken_ = point;
    const auto key = key_at(point.iteration);
    if (sharded_) {
        const auto& state = setting_.writer->fresh_state();
        agree_on(copy_state(*state, save), point.iteration);
        Told mine;
        try {
            const auto shard = setting_.checkpoints->save(key, state);
            mine = {0, shard.bytes, shard.digest, {}};
        } catch (const base::Error& error) {
            say(mine, failure, error.what());
        }
        const study::Failure failed = finish_shards(key, mine);
        group_.part(); // the last operation
        if (!failed.empty() && assignment_.leads())
            throw CheckpointError(AttemptOutcome::unsaved, failed.message, failed.rank);
        return;
    }
    if (!assignment_.leads()) {
        study::StateDigest digest;
        PlainSink sink(digest);
        save(sink);
        agree_on(digest.value(), point.iteration);
        group_.part();
        return;
    }
    const auto& state = setting_.writer->fresh_state();
    PlainSink sink(*state);
    save(sink);
    agree_on(state->digest(), point.iteration);
    group_.part(); // the last operation: later errors strand no other rank
    try {
        schedule_.saved(setting_.checkpoints->save(key, state), point.value);
    } catch (const base::Error& error) {
        throw CheckpointError(AttemptOutcome::unsaved, error.what());
    }
}

void TrialCheckpoints::close(bool abandoned) {
    auto result = setting_.writer->wait();
    const bool alone = group_.size() == 1 && !abandoned;
    if (sharded_) {
        if (!std::exchange(in_flight_, false)) return;
        if (!own_) own_ = std::move(result);
        if (alone)
            finish_own_shard();
        else
            setting_.checkpoints->discard(key_at(taken_.iteration));
        return;
    }
    take_result(std::move(result));
    if (!written_) return;
    if (alone)
        schedule_.saved(*std::exchange(written_, std::nullopt), taken_.value);
    else
        setting_.checkpoints->discard(key_at(taken_.iteration));
}

// ---- between the ranks ----

/// Collective. The values of all ranks, by rank.
std::vector<TrialCheckpoints::Told> TrialCheckpoints::tell(const Told& mine) {
    std::vector<Told> told(static_cast<std::size_t>(group_.size()));
    told[static_cast<std::size_t>(group_.rank())] = mine;
    if (told.size() == 1) return told;
    for (std::size_t rank = 0; rank < told.size(); ++rank)
        group_.broadcast(std::as_writable_bytes(std::span(&told[rank], 1)), static_cast<int>(rank));
    return told;
}

/// Collective. Throws on all ranks when the digests of their states after `iteration` differ.
void TrialCheckpoints::agree_on(std::uint64_t digest, base::Iteration iteration) {
    if (group_.size() == 1) return;
    const auto [low, high] = group_.min_max(digest);
    if (low == high) return;
    group_.part(); // all ranks see the same error: nobody waits
    throw base::Error("the ranks of the trial hold different parameters at iteration " + std::to_string(iteration));
}

} // namespace ranktune::worker
