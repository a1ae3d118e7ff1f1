// SPDX-License-Identifier: Apache-2.0
#include "ddp/thread_collective.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ddp/protocol_collective.hpp"
#include "ddp/self_collective.hpp"

namespace ranktune::ddp {

/// What the threads of a group share. The n-th operation of every rank meets in slot n.
class ThreadMeeting::Board {
  public:
    enum class Kind { max, sum_float, sum_double, broadcast };

    explicit Board(int size) : size_(static_cast<std::size_t>(size)) {}
    [[nodiscard]] int size() const { return static_cast<int>(size_); }

    void contribute(std::uint64_t number, std::size_t rank, Kind kind, std::size_t root,
                    std::span<const std::byte> bytes) {
        const std::lock_guard lock(mutex_);
        Slot& slot = slots_[number];
        slot.parts.resize(size_);
        slot.parts[rank].assign(bytes.begin(), bytes.end());
        ++slot.arrived;
        if (slot.arrived == size_) slot.result = combine(slot.parts, kind, root);
    }

    /// Copies the result once all ranks have contributed.
    bool take(std::uint64_t number, std::span<std::byte> bytes) {
        const std::lock_guard lock(mutex_);
        const auto it = slots_.find(number);
        assert(it != slots_.end());
        Slot& slot = it->second;
        if (slot.arrived < size_) return false;
        if (slot.result.size() != bytes.size()) {
            throw base::Error("the threads of a group contributed different sizes to a reduction");
        }
        std::copy(slot.result.begin(), slot.result.end(), bytes.begin());
        if (++slot.taken == size_) slots_.erase(it);
        return true;
    }

  private:
    using Bytes = std::vector<std::byte>;
    struct Slot {
        std::vector<Bytes> parts; ///< by rank
        std::size_t arrived = 0;
        std::size_t taken = 0;
        Bytes result;
    };

    static Bytes combine(const std::vector<Bytes>& parts, Kind kind, std::size_t root) {
        const auto sum = [](auto a, auto b) { return a + b; };
        switch (kind) {
            case Kind::broadcast:
                return parts[root];
            case Kind::max:
                return fold<std::int64_t>(parts, [](auto a, auto b) { return std::max(a, b); });
            case Kind::sum_float:
                return fold<float>(parts, sum);
            case Kind::sum_double:
                return fold<double>(parts, sum);
        }
        return {};
    }

    template <class T, class F>
    static Bytes fold(const std::vector<Bytes>& parts, F&& join) {
        Bytes result = parts.front();
        for (std::size_t rank = 1; rank < parts.size(); ++rank) {
            if (parts[rank].size() != result.size()) return {};
            for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
                T a{};
                T b{};
                std::memcpy(&a, result.data() + at, sizeof(T));
                std::memcpy(&b, parts[rank].data() + at, sizeof(T));
                a = join(a, b);
                std::memcpy(result.data() + at, &a, sizeof(T));
            }
        }
        return result;
    }

    const std::size_t size_;
    std::mutex mutex_;
    std::map<std::uint64_t, Slot> slots_;
};

namespace {

using Board = ThreadMeeting::Board;

class ThreadPending final : public Pending {
  public:
    ThreadPending(std::shared_ptr<Board> board, std::uint64_t number, std::span<std::byte> bytes)
        : board_(std::move(board)), number_(number), bytes_(bytes) {}
    bool test() override {
        if (!done_) done_ = board_->take(number_, bytes_);
        return done_;
    }

  private:
    std::shared_ptr<Board> board_;
    std::uint64_t number_;
    std::span<std::byte> bytes_;
    bool done_ = false;
};

class ThreadFabric final : public Fabric {
  public:
    ThreadFabric(std::shared_ptr<Board> board, int rank) : board_(std::move(board)), rank_(rank) {}

    int rank() const override { return rank_; }
    int size() const override { return board_->size(); }
    std::unique_ptr<Pending> start_max(std::span<std::int64_t> values) override {
        return start(Board::Kind::max, std::as_writable_bytes(values), 0);
    }
    std::unique_ptr<Pending> start_sum(std::span<float> values) override {
        return start(Board::Kind::sum_float, std::as_writable_bytes(values), 0);
    }
    std::unique_ptr<Pending> start_sum(std::span<double> values) override {
        return start(Board::Kind::sum_double, std::as_writable_bytes(values), 0);
    }
    std::unique_ptr<Pending> start_broadcast(std::span<std::byte> bytes, int root) override {
        return start(Board::Kind::broadcast, bytes, root);
    }
    void poison() noexcept override {} // buffers are copied: nothing goes on writing

  private:
    std::unique_ptr<Pending> start(Board::Kind kind, std::span<std::byte> bytes, int root) {
        const auto number = next_++;
        board_->contribute(number, static_cast<std::size_t>(rank_), kind, static_cast<std::size_t>(root), bytes);
        return std::make_unique<ThreadPending>(board_, number, bytes);
    }

    std::shared_ptr<Board> board_;
    int rank_;
    std::uint64_t next_ = 0;
};

const std::atomic<bool> never{false};

} // namespace

std::vector<std::unique_ptr<Collective>> make_thread_collectives(int size,
                                                                 std::span<const std::atomic<bool>* const> aborts) {
    assert(size > 0 && (aborts.empty() || aborts.size() == static_cast<std::size_t>(size)));
    const auto board = std::make_shared<Board>(size);
    std::vector<std::unique_ptr<Collective>> result;
    for (int rank = 0; rank < size; ++rank) {
        const auto& abort = aborts.empty() ? never : *aborts[static_cast<std::size_t>(rank)];
        result.push_back(std::make_unique<ProtocolCollective>(std::make_unique<ThreadFabric>(board, rank), abort));
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
    return std::make_unique<ProtocolCollective>(std::move(fabric), abort);
}

std::size_t ThreadMeeting::incomplete() const {
    const std::lock_guard lock(mutex_);
    return forming_.size();
}

} // namespace ranktune::ddp
