// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/kept.hpp"

namespace ranktune::ddp {

Messages::Messages(Fabric& fabric, std::uint64_t epoch, std::size_t piece_bytes, Wait wait)
    : fabric_(fabric), wait_(std::move(wait)), epoch_(epoch), piece_bytes_(piece_bytes) {}

Messages::~Messages() {
    try {
        retire();
    } catch (...) { // the library has failed: keep pending sends
    }
    abandon();
}

Messages::Letter Messages::write(base::ConstBuffer message) const {
    const auto from = message.host_bytes();
    const std::size_t pieces = from.empty() ? 1 : (from.size() + piece_bytes_ - 1) / piece_bytes_;
    Letter letter{base::allocate({}, pieces * sizeof(Envelope) + from.size()), {}};
    auto* at = static_cast<std::byte*>(letter.memory.get());
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t first = i * piece_bytes_;
        const std::size_t size = std::min(piece_bytes_, from.size() - first);
        const Envelope envelope{epoch_, generation_, static_cast<std::uint64_t>(message.type()), message.count()};
        std::memcpy(at, &envelope, sizeof envelope);
        if (size > 0) std::memcpy(at + sizeof envelope, from.data() + first, size);
        letter.pieces.emplace_back(at, sizeof envelope + size);
        at += sizeof envelope + size;
    }
    return letter;
}

void Messages::send(Letter letter, int to, Channel channel) {
    retire();
    Sent& sent = sent_.emplace_back(Sent{std::move(letter.memory), {}}); // kept, even if starting a piece throws
    for (const auto piece : letter.pieces) sent.pieces.push_back(fabric_.start_send(piece, to, channel));
}

std::string Messages::receive(base::Buffer message, int from, const std::function<void()>& idle) {
    Piece piece = next_piece(from, idle);
    const auto type = static_cast<base::DType>(piece.envelope.type);
    const base::ConstBuffer sent(nullptr, piece.envelope.count, type);
    const bool fits = type == message.type() && sent.count() == message.count();
    for (std::size_t done = 0;;) {
        if (fits) std::ranges::copy(piece.payload, message.host_bytes().begin() + static_cast<std::ptrdiff_t>(done));
        done += piece.payload.size();
        if (done >= sent.bytes()) break;
        piece = next_piece(from, idle);
    }
    if (fits) return {};
    return "rank " + std::to_string(from) + " sent " + sent.text() + ", and this rank receives " + message.text();
}

void Messages::tell_failure(std::uint64_t header) {
    for (int rank = 0; rank < fabric_.size(); ++rank) {
        if (rank == fabric_.rank()) continue;
        Letter notice{base::allocate({}, sizeof(Envelope)), {}};
        auto* const at = static_cast<std::byte*>(notice.memory.get());
        const Envelope envelope{epoch_, generation_, 0, header};
        std::memcpy(at, &envelope, sizeof envelope);
        notice.pieces.emplace_back(at, sizeof envelope);
        send(std::move(notice), rank, Channel::failure);
    }
}

std::optional<std::uint64_t> Messages::failure() {
    while (!notice_) {
        const auto arrival = fabric_.arrived(Fabric::any_rank, Channel::failure);
        if (!arrival) break;
        const Envelope notice = take(*arrival).envelope;
        if (notice.epoch == epoch_ && notice.generation == generation_) notice_ = notice.count;
    }
    return std::exchange(notice_, std::nullopt);
}

void Messages::new_generation(std::uint64_t generation) {
    generation_ = generation;
    retire();
    notice_ = failure(); // drops old ones; a rank that left before this one may have failed again
}

void Messages::abandon() noexcept {
    for (const Sent& sent : sent_) comm::keep_to_exit(sent.memory);
    sent_.clear();
}

Messages::Piece Messages::take(Arrival& arrival) const {
    Piece piece;
    piece.memory = base::allocate({}, arrival.bytes());
    auto* const begin = static_cast<std::byte*>(piece.memory.get());
    const auto pending = arrival.start_receive({begin, arrival.bytes()});
    wait_(*pending, piece.memory);
    std::memcpy(&piece.envelope, begin, sizeof piece.envelope);
    piece.payload = {begin + sizeof piece.envelope, arrival.bytes() - sizeof piece.envelope};
    return piece;
}

Messages::Piece Messages::next_piece(int from, const std::function<void()>& idle) const {
    while (true) {
        if (const auto arrival = fabric_.arrived(from, Channel::data)) {
            Piece piece = take(*arrival);
            if (piece.envelope.epoch == epoch_ && piece.envelope.generation == generation_) return piece;
        } else {
            idle();
        }
    }
}

/// Drops completed sends.
void Messages::retire() {
    std::erase_if(sent_, [](const Sent& sent) {
        return std::ranges::all_of(sent.pieces, [](const auto& piece) { return piece->test(); });
    });
}

} // namespace ranktune::ddp
