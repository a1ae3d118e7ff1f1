// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/thread_collective.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>

#include "ddp/collective.hpp"
#include "ddp/collective/number_type.hpp"

namespace ranktune::ddp {

/// State shared by a group's threads. The n-th collective operation of every rank uses slot n.
class ThreadMeeting::Board {
  public:
    using Bytes = std::vector<std::byte>;
    /// Combines the ranks' contributions, in rank order; empty when their sizes do not match.
    using Combine = std::function<Bytes(const std::vector<Bytes>& parts)>;

    explicit Board(int size) : size_(static_cast<std::size_t>(size)) {}
    [[nodiscard]] int size() const { return static_cast<int>(size_); }

    void contribute(std::uint64_t number, int rank, std::span<const std::byte> bytes, const Combine& combine) {
        const std::lock_guard lock(mutex_);
        Slot& slot = slots_[number];
        slot.parts.resize(size_);
        slot.parts[static_cast<std::size_t>(rank)].assign(bytes.begin(), bytes.end());
        if (++slot.arrived == size_) slot.result = combine(slot.parts);
    }

    /// Copies the result, or the part of it that is this rank's, once all ranks have contributed.
    bool take(std::uint64_t number, std::span<std::byte> bytes, std::optional<std::size_t> part) {
        const std::lock_guard lock(mutex_);
        const auto it = slots_.find(number);
        assert(it != slots_.end());
        Slot& slot = it->second;
        if (slot.arrived < size_) return false;
        if (slot.result.size() != (part ? size_ * bytes.size() : bytes.size())) {
            throw base::Error("the threads of a group contributed different sizes to an operation");
        }
        const auto begin = slot.result.begin() + static_cast<std::ptrdiff_t>(part.value_or(0));
        std::copy_n(begin, bytes.size(), bytes.begin());
        if (++slot.taken == size_) slots_.erase(it);
        return true;
    }

    void post(int from, int to, Channel channel, std::span<const std::byte> bytes) {
        const std::lock_guard lock(mutex_);
        letters_.push_back({from, to, channel, Bytes(bytes.begin(), bytes.end())});
    }

    /// The oldest message, if any.
    std::optional<Bytes> collect(int from, int to, Channel channel) {
        const std::lock_guard lock(mutex_);
        const auto it = std::ranges::find_if(letters_, [&](const Letter& letter) {
            return letter.to == to && letter.channel == channel && (letter.from == from || from == Fabric::any_rank);
        });
        if (it == letters_.end()) return std::nullopt;
        Bytes bytes = std::move(it->bytes);
        letters_.erase(it);
        return bytes;
    }

  private:
    struct Slot {
        std::vector<Bytes> parts; ///< by rank
        std::size_t arrived = 0;
        std::size_t taken = 0;
        Bytes result;
    };
    struct Letter {
        int from;
        int to;
        Channel channel;
        Bytes bytes;
    };

    const std::size_t size_;
    std::mutex mutex_;
    std::map<std::uint64_t, Slot> slots_;
    std::deque<Letter> letters_; ///< in the order of sending
};

namespace {

using Board = ThreadMeeting::Board;
using Bytes = Board::Bytes;

template <class T>
T joined(T a, T b, Reduce how) {
    if (how == Reduce::min) return std::min(a, b);
    if (how == Reduce::max) return std::max(a, b);
    if constexpr (std::is_integral_v<T>) { // unsigned arithmetic wraps around
        using Unsigned = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
        return a + b;
    }
}

template <class T>
Bytes fold(const std::vector<Bytes>& parts, Reduce how) {
    Bytes result = parts.front();
    for (std::size_t rank = 1; rank < parts.size(); ++rank) {
        if (parts[rank].size() != result.size()) return {};
        for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
            T a{};
            T b{};
            std::memcpy(&a, result.data() + at, sizeof(T));
            std::memcpy(&b, parts[rank].data() + at, sizeof(T));
            a = joined(a, b, how);
            std::memcpy(result.data() + at, &a, sizeof(T));
        }
    }
    return result;
}

Board::Combine folding(base::DType type, Reduce how) {
    Board::Combine combine;
    with_type(type, [&]<class T>(T) {
        if constexpr (sizeof(T) > 2) combine = [how](const auto& parts) { return fold<T>(parts, how); };
    });
    if (!combine) throw base::Error("threads do not reduce " + std::string(base::name(type)));
    return combine;
}

class Complete final : public Pending {
  public:
    bool test() override { return true; }
};

class ThreadPending final : public Pending {
  public:
    /// `part`: where this rank's bytes begin in the result, if they are not all of it.
    ThreadPending(std::shared_ptr<Board> board, std::uint64_t number, std::span<std::byte> bytes,
                  std::optional<std::size_t> part = {})
        : board_(std::move(board)), number_(number), bytes_(bytes), part_(part) {}
    bool test() override {
        if (!done_) done_ = board_->take(number_, bytes_, part_);
        return done_;
    }

  private:
    std::shared_ptr<Board> board_;
    std::uint64_t number_;
    std::span<std::byte> bytes_;
    std::optional<std::size_t> part_;
    bool done_ = false;
};

class ThreadArrival final : public Arrival {
  public:
    explicit ThreadArrival(Bytes bytes) : bytes_(std::move(bytes)) {}
    std::size_t bytes() const override { return bytes_.size(); }
    std::unique_ptr<Pending> start_receive(std::span<std::byte> to) override {
        std::ranges::copy(bytes_, to.begin());
        return std::make_unique<Complete>();
    }

  private:
    Bytes bytes_;
};

class ThreadFabric final : public Fabric {
  public:
    ThreadFabric(std::shared_ptr<Board> board, int rank) : board_(std::move(board)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return board_->size(); }
    std::unique_ptr<Pending> start_all_reduce(base::Buffer values, Reduce how) override {
        return start(values.host_bytes(), values.host_bytes(), folding(values.type(), how));
    }
    std::unique_ptr<Pending> start_gradient_sum(base::Buffer values) override {
        return start_all_reduce(values, Reduce::sum);
    }
    std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) override {
        return start(bytes, bytes, [root](const auto& parts) { return parts[static_cast<std::size_t>(root)]; });
    }
    std::unique_ptr<Pending> start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
        return start(mine, all, [](const auto& parts) {
            Bytes joined;
            for (const Bytes& part : parts) joined.insert(joined.end(), part.begin(), part.end());
            return joined;
        });
    }
    std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts, std::span<std::byte> all) override {
        const auto mine = static_cast<std::size_t>(rank_);
        board_->contribute(next_, rank_, parts, [](const auto& sent) {
            Bytes joined; // for all ranks, one after the other
            for (std::size_t to = 0; to < sent.size(); ++to)
                for (const Bytes& from : sent) {
                    const auto size = static_cast<std::ptrdiff_t>(from.size() / sent.size());
                    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(to) * size;
                    joined.insert(joined.end(), begin, begin + size);
                }
            return joined;
        });
        return std::make_unique<ThreadPending>(board_, next_++, all, mine * all.size());
    }
    std::unique_ptr<Pending> start_send(std::span<const std::byte> bytes, int to, Channel channel) override {
        board_->post(rank_, to, channel, bytes);
        return std::make_unique<Complete>();
    }
    std::unique_ptr<Arrival> arrived(int from, Channel channel) override {
        auto bytes = board_->collect(from, rank_, channel);
        return bytes ? std::make_unique<ThreadArrival>(std::move(*bytes)) : nullptr;
    }
    void poison() noexcept override {} // buffers are copied: no operation writes into them later

  private:
    std::unique_ptr<Pending> start(std::span<const std::byte> mine, std::span<std::byte> result,
                                   const Board::Combine& combine) {
        const auto number = next_++;
        board_->contribute(number, rank_, mine, combine);
        return std::make_unique<ThreadPending>(board_, number, result);
    }

    std::shared_ptr<Board> board_;
    int rank_;
    std::uint64_t next_ = 0;
};

const std::atomic<bool> never{false};

} // namespace

std::vector<std::unique_ptr<Collective>> make_thread_collectives(int size,
                                                                 std::span<const std::atomic<bool>* const> aborts,
                                                                 ProtocolCollective::Pieces pieces) {
    assert(size > 0 && (aborts.empty() || aborts.size() == static_cast<std::size_t>(size)));
    const auto board = std::make_shared<Board>(size);
    std::vector<std::unique_ptr<Collective>> result;
    for (int rank = 0; rank < size; ++rank) {
        const auto& abort = aborts.empty() ? never : *aborts[static_cast<std::size_t>(rank)];
        result.push_back(
            std::make_unique<ProtocolCollective>(std::make_unique<ThreadFabric>(board, rank), abort, 0, pieces));
    }
    return result;
}

std::unique_ptr<Collective> ThreadMeeting::form(std::span<const base::Rank> ranks, base::Rank me, std::uint64_t ticket,
                                                const std::atomic<bool>& abort) {
    const auto position = std::find(ranks.begin(), ranks.end(), me);
    assert(position != ranks.end());
    if (ranks.size() == 1) return make_self_collective(&abort);
    const std::lock_guard lock(mutex_);
    const std::pair key(ticket, std::vector<base::Rank>(ranks.begin(), ranks.end()));
    Forming& forming = forming_[key];
    if (!forming.board) forming.board = std::make_shared<Board>(static_cast<int>(ranks.size()));
    auto fabric = std::make_unique<ThreadFabric>(forming.board, static_cast<int>(position - ranks.begin()));
    if (++forming.joined == ranks.size()) forming_.erase(key);
    return std::make_unique<ProtocolCollective>(std::move(fabric), abort, ticket);
}

std::size_t ThreadMeeting::incomplete() const {
    const std::lock_guard lock(mutex_);
    return forming_.size();
}

} // namespace ranktune::ddp
