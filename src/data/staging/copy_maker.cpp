// SPDX-License-Identifier: Apache-2.0
#include "data/staging/copy_maker.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::data {
namespace {

using Answer = comm::BlockExchange::Answer;
using Clock = std::chrono::steady_clock;

/// Between two reads of the original: the others wait for that.
constexpr std::size_t pieces_at_once = 8;

std::uint64_t digest_of(storage::File& copy, const Piece& piece) {
    base::Digest digest;
    storage::add_bytes(digest, copy, piece.offset, piece.bytes);
    return digest.value();
}

} // namespace

CopyMaker::CopyMaker(const FileList& list, std::string folder, const CopyOptions& options, CopyEvents events)
    : list_(list), folder_(std::move(folder)), options_(options), events_(std::move(events)) {
    make_files();
    table_ = std::make_shared<PieceTable>(list_, options_.piece_bytes, folder_);
    missing_ = table_->pieces().size();
    here_.resize(missing_);
}

void CopyMaker::make_files() {
    for (const FileList::Entry& entry : list_.entries) {
        const std::string path = folder_ + "/" + entry.name;
        options_.files.make_directories(std::filesystem::path(path).parent_path());
        const auto file = options_.files.open(path, storage::FileSystem::Open::create_private);
        if (entry.bytes == 0) continue;
        file->reserve(entry.bytes);
        file->truncate(entry.bytes);
    }
}

void CopyMaker::fill(const Nodes& nodes, comm::BlockExchange* exchange) {
    using namespace std::chrono_literals;
    peers_.clear();
    for (const auto& ranks : nodes.ranks) peers_.push_back({ranks});
    peers_.at(nodes.own).ranks.clear();
    std::size_t turn = nodes.own; // so that not all ask the same node first
    std::size_t quiet_turns = 0;
    auto nap = 1ms;
    while (missing_ > 0) {
        events_.check();
        const bool read_one = read_own(nodes);
        turn = (turn + 1) % peers_.size();
        const bool pulled = exchange != nullptr && pull(*exchange, peers_[turn]);
        if (read_one || pulled) {
            quiet_turns = 0;
            nap = 1ms;
        } else if (++quiet_turns >= peers_.size()) {
            std::this_thread::sleep_for(nap);
            nap = std::min(2 * nap, 64ms);
        }
    }
}

/// Of nodes that are silent, or do not begin, the next one reads the pieces. One that answers is waited for, however
/// slow its disk is: it has begun, and each node reads its own pieces by itself.
std::size_t CopyMaker::reader_of(std::size_t piece, const Nodes& nodes) const {
    std::size_t node = piece % peers_.size();
    const auto is_aside = [this](const Peer& peer) {
        return peer.ranks.empty() || peer.late || Clock::now() < peer.not_before;
    };
    while (node != nodes.own && is_aside(peers_[node])) node = (node + 1) % peers_.size();
    return node;
}

/// The next piece that is this node's to read. False: all are here, with their digests.
bool CopyMaker::read_own(const Nodes& nodes) {
    while (scan_ < here_.size() && (here_[scan_] || reader_of(scan_, nodes) != nodes.own)) ++scan_;
    if (scan_ == here_.size()) return keep_read();
    read(scan_);
    return true;
}

/// From the original.
void CopyMaker::read(std::size_t piece) {
    const Piece& at = table_->pieces()[piece];
    const std::string& name = list_.entries[at.file].name;
    const std::string path = list_.root + "/" + name;
    const auto original = options_.files.open(path, storage::FileSystem::Open::read);
    const std::shared_ptr copy = options_.files.open(folder_ + "/" + name, storage::FileSystem::Open::read_write);
    if (original->copy_to(*copy, at.offset, at.bytes) != at.bytes)
        throw base::IoError("became shorter while it was copied:", path, std::make_error_code(std::errc::io_error));
    here_[piece] = true; // not to be read again
    static_cast<void>(keep_read());
    read_ = {piece, std::async(std::launch::async, [copy, at] { return digest_of(*copy, at); })};
}

/// The piece that was read last. False: there is none.
bool CopyMaker::keep_read() {
    if (!read_.digest.valid()) return false;
    keep(read_.piece, read_.digest.get(), true);
    return true;
}

void CopyMaker::keep(std::size_t piece, std::uint64_t digest, bool from_original) {
    here_[piece] = true;
    --missing_;
    table_->add({piece, digest});
    const std::uint64_t bytes = table_->pieces()[piece].bytes;
    events_.moved(bytes, from_original ? bytes : 0);
}

// ---- from another node

void CopyMaker::Peer::next_rank() {
    std::ranges::rotate(ranks, ranks.begin() + 1);
    seen = 0;
    offered.clear();
}

/// A rank is silent. Its node may be dead, and each of its ranks would cost as long: they are asked now and then.
void CopyMaker::set_aside(Peer& peer) {
    peer.next_rank();
    peer.ranks.pop_back();
    peer.not_before = Clock::now() + 8 * options_.patience;
    scan_ = 0; // its pieces may have another reader
}

/// No rank of the node has begun: it is about to, or never will.
void CopyMaker::count_refusal(Peer& peer) {
    peer.next_rank();
    if (peer.refusals++ == 0) peer.refuses_since = Clock::now();
    if (peer.late || peer.refusals < peer.ranks.size() || Clock::now() - peer.refuses_since < options_.patience) return;
    peer.late = true;
    scan_ = 0;
}

/// Learns what the node has. False: nothing.
bool CopyMaker::hear(comm::BlockExchange& exchange, Peer& peer) {
    std::vector<std::byte> block;
    const Answer answer = exchange.ask(peer.ranks.front(), name_of_news(list_.key, peer.seen, ++questions_), block);
    if (answer == Answer::silent) set_aside(peer);
    if (answer == Answer::refused) count_refusal(peer);
    if (answer != Answer::done) return false;
    peer.refusals = 0;
    peer.late = false;
    if (takes_no_part(block)) {
        peer.ranks.clear();
        scan_ = 0;
        return false;
    }
    const std::vector<PresentPiece> news = read_news(block);
    peer.seen += news.size();
    for (const PresentPiece& each : news)
        if (each.piece < here_.size()) peer.offered[each.piece] = each.digest;
    std::erase_if(peer.offered, [this](const auto& each) { return here_[each.first]; });
    return !peer.offered.empty();
}

/// Takes over some of the pieces that the node has. False: none.
bool CopyMaker::pull(comm::BlockExchange& exchange, Peer& peer) {
    if (peer.ranks.empty() || Clock::now() < peer.not_before || !hear(exchange, peer)) return false;
    std::vector<std::pair<std::size_t, std::uint64_t>> wanted;
    std::vector<comm::BlockExchange::Reader::Range> ranges;
    for (const auto& [piece, digest] : peer.offered) {
        if (wanted.size() == pieces_at_once) break;
        wanted.emplace_back(piece, digest);
        const Piece& at = table_->pieces()[piece];
        ranges.push_back({1 + at.file, at.offset, at.bytes});
    }
    comm::BlockExchange::Reader reader(exchange, peer.ranks.front(), name_of_bytes(list_.key), std::move(ranges));
    for (const auto& [piece, promised] : wanted) {
        events_.check();
        const Piece& at = table_->pieces()[piece];
        const auto file =
            options_.files.open(folder_ + "/" + list_.entries[at.file].name, storage::FileSystem::Open::read_write);
        base::Digest digest;
        const Answer answer = reader.next([&](std::uint64_t begin, std::span<const std::byte> bytes) {
            digest.add(bytes);
            file->write_at(at.offset + begin, bytes);
        });
        if (answer == Answer::silent) set_aside(peer);
        if (answer == Answer::refused) peer.next_rank();
        if (answer != Answer::done) return true;
        peer.offered.erase(piece);
        if (digest.value() == promised)
            keep(piece, promised, false);
        else
            mistrust(peer, piece, promised);
    }
    return true;
}

/// Once is chance: it is asked for again. Twice is a fault of memory or network of one of the two nodes.
void CopyMaker::mistrust(Peer& peer, std::size_t piece, std::uint64_t promised) {
    if (++wrong_[piece] < 2) {
        peer.offered[piece] = promised;
        return;
    }
    events_.log("piece " + std::to_string(piece) + " of '" + list_.name + "' came damaged twice from rank " +
                std::to_string(peer.ranks.front().value()) +
                " and is read from the file; let the memory and the network of the two nodes be checked");
    read(piece);
}

} // namespace ranktune::data
