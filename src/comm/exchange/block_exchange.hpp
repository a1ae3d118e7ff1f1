// SPDX-License-Identifier: Apache-2.0
#pragma once
// BlockExchange: ranks read large blocks of memory of other ranks, which train on meanwhile.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/mpi/environment.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::comm {

/// On a communicator of its own: a transport copies messages, limits them to 2 GiB and delivers them in order. Here the
/// receiver asks for pieces, a few at a time, which arrive in memory that waits for them. One
/// thread calls `serve`, another one (at a time) `ask` and a Reader. No call waits for a dead rank for longer
/// than `patience`.
class BlockExchange {
  public:
    /// What a rank offers under a key. `owner` keeps the bytes alive and unchanged. Block 0 describes the others.
    struct Offer {
        std::shared_ptr<const void> owner;
        std::vector<std::span<const std::byte>> blocks;
    };
    using Find = std::function<std::optional<Offer>(std::string_view key)>;

    struct Settings {
        std::size_t piece = std::size_t{64} << 20; ///< largest message, in bytes: a multiple of 16, less than 2 GiB
        std::size_t in_flight = 4;                 ///< largest messages that a receiver waits for at a time
        std::chrono::milliseconds patience{5000};  ///< without a piece, until the other rank counts as silent
    };

    /// Collective over all ranks; so is destruction while MPI is alive. Must not outlive the environment.
    explicit BlockExchange(const mpi::Environment& environment);
    BlockExchange(const mpi::Environment& environment, Settings settings);
    ~BlockExchange();
    BlockExchange(const BlockExchange&) = delete;
    BlockExchange& operator=(const BlockExchange&) = delete;

    // ---- the rank that has the bytes
    /// `find` is called by `serve`, which does nothing before that. May be called again, for other keys: they are asked
    /// in order.
    void offer(Find find);
    enum class Served : std::uint8_t {
        nothing, ///< no transfer is under way
        waits,   ///< receivers take the bytes from this memory by themselves
        by_hand  ///< this call moved bytes: call again after a short nap, the transfer stands still meanwhile
    };
    /// Answers what has arrived and returns at once.
    Served serve();

    // ---- the rank that wants them
    enum class Answer : std::uint8_t {
        done,
        refused, ///< the other rank does not have it (any more)
        silent   ///< no answer within `patience`
    };
    /// Block 0 of `key` on rank `from`.
    [[nodiscard]] Answer ask(base::Rank from, std::string_view key, std::vector<std::byte>& description);
    /// The other blocks.
    class Reader;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Reads ranges of blocks in a given order, and asks for the next ones while this one is used: through memory of the
/// exchange, for memory that must not be written to after a failure, and without a second copy of everything. That
/// memory (`in_flight` pieces, as far as they are used) is kept for the next reader. The exchange outlives it.
class BlockExchange::Reader {
  public:
    struct Range {
        std::uint32_t block = 0;
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    Reader(BlockExchange& exchange, base::Rank from, std::string key, std::vector<Range> ranges);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// A piece, and where in its range it begins.
    using Take = std::function<void(std::uint64_t at, std::span<const std::byte> bytes)>;
    /// Hands the next range to `take`, piece by piece, in order. After another answer than `done`: no further call.
    [[nodiscard]] Answer next(const Take& take);

  private:
    struct Transfer;
    void ask_for_more();
    [[nodiscard]] std::byte* room_for(std::size_t bytes);

    Impl& impl_;
    int from_;
    std::string key_;
    std::vector<Range> ranges_;
    std::size_t at_ = 0;            ///< range that `next` gives
    std::size_t asked_range_ = 0;   ///< range that is asked for
    std::uint64_t asked_bytes_ = 0; ///< of it
    std::shared_ptr<Transfer> transfer_;
};

} // namespace ranktune::comm
