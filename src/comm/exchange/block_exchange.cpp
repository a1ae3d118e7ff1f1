// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange/block_exchange.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "comm/backoff.hpp"
#include "comm/graveyard.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/mpi/error.hpp"
#include "ranktune/base/error.hpp"

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
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<const void> owner;
};

/// A piece that was asked for.
struct Receiving {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Request asking = MPI_REQUEST_NULL;
    std::vector<std::byte> question;
    std::size_t bytes = 0;
};

using Clock = std::chrono::steady_clock;

/// An error counts as done: the piece does not come, and the receiver notices.
bool is_done(MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return true;
    int flag = 0;
    return MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag != 0;
}

} // namespace

struct BlockExchange::Impl {
    mpi::Communicator world;
    Settings settings;
    // serve
    Find find;
    std::string key; ///< of `found`
    std::optional<Offer> found;
    std::list<Sending> sending;
    // ask, fetch
    int next_tag = 0;

    void answer(const std::vector<std::byte>& question, int to);
    void drive_sends() {
        std::erase_if(sending, [](Sending& each) { return is_done(each.request); });
    }
    [[nodiscard]] bool take_request();
    void start(Receiving& piece, int from, std::string_view wanted, RequestHeader header, std::byte* into);
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
    bury(std::make_shared<std::list<Sending>>(std::move(impl_->sending)));
}

// ---- the rank that has the bytes

void BlockExchange::offer(Find find) { impl_->find = std::move(find); }

bool BlockExchange::serve() {
    impl_->drive_sends();
    bool busy = false;
    while (impl_->take_request()) busy = true;
    if (!busy && impl_->sending.empty()) impl_->found.reset(); // keep nothing alive between transfers
    return busy || !impl_->sending.empty();
}

bool BlockExchange::Impl::take_request() {
    int flag = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, request_tag, world.get(), &flag, &message, &status) != MPI_SUCCESS || flag == 0)
        return false;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::vector<std::byte> question(static_cast<std::size_t>(size)); // small: complete when it is matched
    if (MPI_Mrecv(question.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        answer(question, status.MPI_SOURCE);
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
        found = find ? find(wanted) : std::nullopt;
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
                  &sent.request) != MPI_SUCCESS)
        sending.pop_back();
}

// ---- the rank that wants them

/// `into`: null if the answer is to be probed for.
void BlockExchange::Impl::start(Receiving& piece, int from, std::string_view wanted, RequestHeader header,
                                std::byte* into) {
    piece.bytes = header.bytes;
    piece.question.resize(sizeof header + wanted.size());
    std::memcpy(piece.question.data(), &header, sizeof header);
    std::memcpy(piece.question.data() + sizeof header, wanted.data(), wanted.size());
    if (into != nullptr)
        mpi::check(MPI_Irecv(into, static_cast<int>(header.bytes), MPI_BYTE, from, header.answer_tag, world.get(),
                             &piece.request),
                   "MPI_Irecv");
    mpi::check(MPI_Isend(piece.question.data(), static_cast<int>(piece.question.size()), MPI_BYTE, from, request_tag,
                         world.get(), &piece.asking),
               "MPI_Isend");
}

BlockExchange::Answer BlockExchange::ask(base::Rank from, std::string_view key, std::vector<std::byte>& description) {
    const int peer = static_cast<int>(from.value());
    auto asked = std::make_shared<Receiving>();
    RequestHeader header;
    header.answer_tag = impl_->new_tag();
    impl_->start(*asked, peer, key, header, nullptr);
    const auto until = Clock::now() + impl_->settings.patience;
    Backoff backoff;
    while (true) {
        int flag = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        mpi::check(MPI_Improbe(peer, header.answer_tag, impl_->world.get(), &flag, &message, &status), "MPI_Improbe");
        if (flag != 0) {
            int size = 0;
            MPI_Get_count(&status, MPI_BYTE, &size);
            description.resize(static_cast<std::size_t>(size));
            mpi::check(MPI_Mrecv(description.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
            if (!is_done(asked->asking)) bury(asked);
            return size == 0 ? Answer::refused : Answer::done;
        }
        if (Clock::now() >= until) {
            bury(asked);
            return Answer::silent;
        }
        backoff.pause();
    }
}

BlockExchange::Answer BlockExchange::fetch(base::Rank from, std::string_view key, std::span<const Part> parts,
                                           const std::shared_ptr<const void>& owner) {
    struct Transfer {
        std::list<Receiving> pieces; ///< addresses must not change
        std::shared_ptr<const void> owner;
    };
    const int peer = static_cast<int>(from.value());
    const auto transfer = std::make_shared<Transfer>();
    transfer->owner = owner;
    std::size_t part = 0;
    std::uint64_t done = 0; ///< bytes of `part` that were asked for
    const auto ask_for_more = [&] {
        while (part < parts.size() && transfer->pieces.size() < impl_->settings.in_flight) {
            const auto left = parts[part].into.subspan(done);
            RequestHeader header{parts[part].offset + done, std::min(left.size(), impl_->settings.piece),
                                 parts[part].block, impl_->new_tag()};
            if (header.bytes > 0) impl_->start(transfer->pieces.emplace_back(), peer, key, header, left.data());
            done += header.bytes;
            if (done < parts[part].into.size()) continue;
            ++part;
            done = 0;
        }
    };
    const auto give_up = [&](Answer answer) {
        bury(transfer);
        return answer;
    };
    auto heard = Clock::now();
    Backoff backoff;
    ask_for_more();
    while (!transfer->pieces.empty()) {
        bool arrived = false;
        for (auto piece = transfer->pieces.begin(); piece != transfer->pieces.end();) {
            int flag = 0;
            MPI_Status status;
            mpi::check(MPI_Test(&piece->request, &flag, &status), "MPI_Test");
            if (flag == 0) {
                ++piece;
                continue;
            }
            int size = 0;
            MPI_Get_count(&status, MPI_BYTE, &size);
            if (static_cast<std::size_t>(size) != piece->bytes) return give_up(Answer::refused);
            while (!is_done(piece->asking)) {
            } // small and answered: it has left
            piece = transfer->pieces.erase(piece);
            arrived = true;
        }
        if (arrived) {
            ask_for_more();
            heard = Clock::now();
            backoff.reset();
            continue;
        }
        if (Clock::now() - heard >= impl_->settings.patience) return give_up(Answer::silent);
        backoff.pause();
    }
    return Answer::done;
}

} // namespace ranktune::comm
