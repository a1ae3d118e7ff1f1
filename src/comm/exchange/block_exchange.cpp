// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange/block_exchange.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "comm/backoff.hpp"
#include "comm/kept.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/error.hpp"
#include "comm/mpi/request.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::comm {
namespace {

constexpr int request_tag = 1;
constexpr int first_answer_tag = 2;
constexpr int answer_tags = 30000; // MPI guarantees tags up to 32767

/// Followed by the key.
struct RequestHeader {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< 0: the whole of block 0
    std::uint32_t block = 0;
    std::int32_t answer_tag = 0;
};

/// An answer on its way. Its address must not change, because MPI holds that of the request.
struct Sending {
    mpi::Request request; ///< an error ends it, too: the piece does not come, and the receiver notices
    std::shared_ptr<const void> owner;
};

/// A piece, and where it is to lie.
struct Wanted {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;
    std::span<std::byte> into;
};

/// A piece that was asked for.
struct Receiving {
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::Request asking;
    std::vector<std::byte> question;
    Wanted wanted;
    bool refused = false; ///< by MPI: the peer has died
};

constexpr std::size_t most_pieces = 64; // under way to a receiver, however small

using Clock = std::chrono::steady_clock;

/// MPI does not say who moves the bytes: the receiver or the network, or this process inside of MPI_Test. But copies
/// take time. (Short naps in the first case slow down the training of a donor by a fifth.)
constexpr auto moves_nothing_within = std::chrono::microseconds(5);

/// Large blocks of a state begin at a page. The kernel copies between processes page by page, and that takes three
/// times as long where source and target do not lie in their pages alike.
constexpr std::size_t page = study::PageAllocator<std::byte>::page;

} // namespace

struct BlockExchange::Impl {
    mpi::Communicator world;
    Settings settings;
    // serve
    std::vector<Find> finds;
    std::string key; ///< of `found`
    std::optional<Offer> found;
    std::list<Sending> sending;
    // ask, Reader
    int next_tag = 0;
    study::StateBytes landing; ///< of readers; empty while one uses it, and after a failure

    void answer(const std::vector<std::byte>& question, int to);
    void drive_sends() {
        std::erase_if(sending, [](Sending& each) { return each.request.ended(); });
    }
    [[nodiscard]] bool take_request();
    void start(Receiving& piece, int from, std::string_view wanted_key, const Wanted& wanted, int tag);
    [[nodiscard]] int new_tag() {
        next_tag = (next_tag + 1) % answer_tags;
        return first_answer_tag + next_tag;
    }
};

BlockExchange::BlockExchange(const mpi::Environment& environment) : BlockExchange(environment, Settings{}) {}

BlockExchange::BlockExchange(const mpi::Environment&, Settings settings) : impl_(std::make_unique<Impl>()) {
    impl_->world = mpi::Communicator::world().duplicate();
    impl_->settings = settings;
}

BlockExchange::~BlockExchange() {
    impl_->drive_sends();
    if (impl_->sending.empty()) return;
    impl_->world.leak(); // MPI still reads the blocks
    keep_to_exit(std::make_shared<std::list<Sending>>(std::move(impl_->sending)));
}

// ---- the rank that has the bytes

void BlockExchange::offer(Find find) { impl_->finds.push_back(std::move(find)); }

BlockExchange::Served BlockExchange::serve() {
    if (impl_->finds.empty()) return Served::nothing;
    const auto begin = Clock::now();
    impl_->drive_sends();
    const bool moved = Clock::now() - begin > moves_nothing_within;
    bool busy = false;
    while (impl_->take_request()) busy = true;
    if (!busy && impl_->sending.empty()) impl_->found.reset(); // keep nothing alive between transfers
    if (!busy && impl_->sending.empty()) return Served::nothing;
    return moved ? Served::by_hand : Served::waits;
}

bool BlockExchange::Impl::take_request() {
    auto asked = world.match(MPI_ANY_SOURCE, request_tag);
    if (!asked) return false;
    std::vector<std::byte> question(static_cast<std::size_t>(asked->bytes)); // small: complete when it is matched
    if (MPI_Mrecv(question.data(), asked->bytes, MPI_BYTE, &asked->message, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        answer(question, asked->source);
    return true;
}

/// Sends what was asked for; an empty message if there is none.
void BlockExchange::Impl::answer(const std::vector<std::byte>& question, int to) {
    RequestHeader header;
    if (question.size() < sizeof header) return;
    std::memcpy(&header, question.data(), sizeof header);
    const std::string_view wanted(reinterpret_cast<const char*>(question.data()) + sizeof header,
                                  question.size() - sizeof header);
    if (!found || key != wanted) {
        found.reset();
        for (std::size_t i = 0; i < finds.size() && !found; ++i) found = finds[i](wanted);
        key = wanted;
    }
    std::span<const std::byte> bytes;
    if (found && header.block < found->blocks.size()) {
        const auto block = found->blocks[header.block];
        if (header.bytes == 0)
            bytes = block;
        else if (header.offset <= block.size() && header.bytes <= block.size() - header.offset)
            bytes = block.subspan(header.offset, header.bytes);
    }
    if (bytes.size() > settings.piece) bytes = {};
    auto& sent = sending.emplace_back();
    if (found) sent.owner = found->owner;
    if (MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, header.answer_tag, world.get(),
                  sent.request.slot()) != MPI_SUCCESS)
        sending.pop_back();
}

// ---- the rank that wants them

/// Without a place to lie, the answer is to be probed for.
void BlockExchange::Impl::start(Receiving& piece, int from, std::string_view wanted_key, const Wanted& wanted,
                                int tag) {
    piece.wanted = wanted;
    const RequestHeader header{wanted.offset, wanted.into.size(), wanted.block, tag};
    piece.question.resize(sizeof header + wanted_key.size());
    std::memcpy(piece.question.data(), &header, sizeof header);
    std::memcpy(piece.question.data() + sizeof header, wanted_key.data(), wanted_key.size());
    if (!wanted.into.empty())
        piece.refused = MPI_Irecv(wanted.into.data(), static_cast<int>(wanted.into.size()), MPI_BYTE, from, tag,
                                  world.get(), &piece.request) != MPI_SUCCESS;
    piece.refused = piece.refused || MPI_Isend(piece.question.data(), static_cast<int>(piece.question.size()), MPI_BYTE,
                                               from, request_tag, world.get(), piece.asking.slot()) != MPI_SUCCESS;
}

BlockExchange::Answer BlockExchange::ask(base::Rank from, std::string_view key, std::vector<std::byte>& description) {
    const int peer = static_cast<int>(from.value());
    auto asked = std::make_shared<Receiving>();
    const int tag = impl_->new_tag();
    impl_->start(*asked, peer, key, {}, tag);
    const auto until = Clock::now() + impl_->settings.patience;
    Backoff backoff;
    try {
        while (!asked->refused && Clock::now() < until) {
            if (auto found = impl_->world.match(peer, tag)) {
                description.resize(static_cast<std::size_t>(found->bytes));
                mpi::check(MPI_Mrecv(description.data(), found->bytes, MPI_BYTE, &found->message, MPI_STATUS_IGNORE),
                           "MPI_Mrecv");
                if (!asked->asking.ended()) keep_to_exit(asked);
                return found->bytes == 0 ? Answer::refused : Answer::done;
            }
            backoff.pause();
        }
    } catch (const mpi::MpiError&) { // it has died
    }
    keep_to_exit(asked);
    return Answer::silent;
}

// ---- in a given order

/// The pieces lie in a ring, in the order in which they were asked for.
struct BlockExchange::Reader::Transfer {
    study::StateBytes ring;
    std::size_t write = 0;       ///< where the next piece goes
    std::list<Receiving> pieces; ///< addresses must not change
};

BlockExchange::Reader::Reader(BlockExchange& exchange, base::Rank from, std::string key, std::vector<Range> ranges)
    : impl_(*exchange.impl_),
      from_(static_cast<int>(from.value())),
      key_(std::move(key)),
      ranges_(std::move(ranges)),
      transfer_(std::make_shared<Transfer>()) {
    transfer_->ring = std::exchange(impl_.landing, {});
    std::uint64_t all = 0; // with gaps for alignment
    for (const Range& range : ranges_) all += range.bytes + page * (1 + range.bytes / impl_.settings.piece);
    const std::size_t size = std::min<std::uint64_t>(all, impl_.settings.in_flight * impl_.settings.piece);
    if (transfer_->ring.size() < size) transfer_->ring = study::StateBytes(size);
    ask_for_more();
}

BlockExchange::Reader::~Reader() {
    if (transfer_->pieces.empty())
        impl_.landing = std::move(transfer_->ring);
    else
        keep_to_exit(transfer_); // MPI may still write there
}

/// Null: there is none before the oldest piece is used.
std::byte* BlockExchange::Reader::room_for(std::size_t bytes) {
    Transfer& t = *transfer_;
    constexpr std::size_t line = 64;
    const std::size_t alignment = bytes < page ? line : page;
    const std::size_t oldest =
        t.pieces.empty() ? 0 : static_cast<std::size_t>(t.pieces.front().wanted.into.data() - t.ring.data());
    if (t.pieces.empty()) t.write = 0;
    const bool wrapped = !t.pieces.empty() && t.write <= oldest;
    std::size_t begin = (t.write + alignment - 1) / alignment * alignment;
    if (begin + bytes > (wrapped ? oldest : t.ring.size())) {
        if (wrapped || t.pieces.empty() || bytes > oldest) return nullptr;
        begin = 0;
    }
    t.write = begin + bytes;
    return t.ring.data() + begin;
}

void BlockExchange::Reader::ask_for_more() {
    while (asked_range_ < ranges_.size() && transfer_->pieces.size() < most_pieces) {
        const Range& range = ranges_[asked_range_];
        if (asked_bytes_ == range.bytes) {
            ++asked_range_;
            asked_bytes_ = 0;
            continue;
        }
        const std::size_t size = std::min<std::uint64_t>(range.bytes - asked_bytes_, impl_.settings.piece);
        std::byte* const room = room_for(size);
        if (room == nullptr) return;
        const Wanted wanted{range.block, range.offset + asked_bytes_, {room, size}};
        impl_.start(transfer_->pieces.emplace_back(), from_, key_, wanted, impl_.new_tag());
        asked_bytes_ += size;
    }
}

BlockExchange::Answer BlockExchange::Reader::next(const Take& take) {
    const Range& range = ranges_.at(at_);
    std::uint64_t done = 0;
    while (done < range.bytes) {
        Receiving& piece = transfer_->pieces.front();
        const auto until = Clock::now() + impl_.settings.patience;
        MPI_Status status;
        Backoff backoff;
        for (int flag = 0; flag == 0;) {
            if (piece.refused || MPI_Test(&piece.request, &flag, &status) != MPI_SUCCESS) return Answer::silent;
            if (flag != 0) break;
            if (Clock::now() >= until) return Answer::silent;
            backoff.pause();
        }
        int size = 0;
        MPI_Get_count(&status, MPI_BYTE, &size);
        const auto bytes = piece.wanted.into;
        if (static_cast<std::size_t>(size) != bytes.size()) return Answer::refused;
        while (!piece.asking.ended()) {
        } // small and answered: it has left
        take(done, bytes);
        done += bytes.size();
        transfer_->pieces.pop_front();
        ask_for_more();
    }
    ++at_;
    return Answer::done;
}

} // namespace ranktune::comm
