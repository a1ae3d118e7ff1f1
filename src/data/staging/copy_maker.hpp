// SPDX-License-Identifier: Apache-2.0
#pragma once
// CopyMaker: fills the files of a copy, from the originals and from other nodes.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "data/staging/file_list.hpp"
#include "data/staging/piece_table.hpp"
#include "ranktune/base/ids.hpp"
#include "storage/file_system.hpp"

namespace ranktune::data {

/// The ranks that use data, node by node.
struct Nodes {
    std::vector<std::vector<base::Rank>> ranks;
    std::size_t own = 0; ///< node of this rank
};

struct CopyOptions {
    std::uint64_t piece_bytes = std::uint64_t{16} << 20U;
    std::chrono::milliseconds patience{5000}; ///< with a node that has not begun, until others read its pieces
    storage::FileSystem& files = storage::posix_file_system();
};

/// What a CopyMaker tells on the way.
struct CopyEvents {
    /// Bytes that were copied, and how many of them were read from the originals.
    std::function<void(std::uint64_t copied, std::uint64_t read)> moved;
    std::function<void()> check; ///< may throw, to end the work
    std::function<void(std::string_view line)> log;
};

class CopyMaker {
  public:
    /// Makes the files in `folder` in their full length, with their space reserved. Throws base::IoError: no room.
    CopyMaker(const FileList& list, std::string folder, const CopyOptions& options, CopyEvents events);

    /// To be offered to other nodes while it is filled, and later.
    [[nodiscard]] std::shared_ptr<PieceTable> table() const { return table_; }
    /// `exchange` may be null if there is one node. Throws base::IoError, and what CopyEvents::check throws.
    void fill(const Nodes& nodes, comm::BlockExchange* exchange);

  private:
    /// Another node.
    struct Peer {
        std::vector<base::Rank> ranks;                      ///< that have not been silent; the first one is asked
        std::chrono::steady_clock::time_point not_before{}; ///< of the next question, after a silence
        std::size_t seen = 0;                               ///< its news
        std::map<std::size_t, std::uint64_t> offered{};     ///< digest of pieces that are missing here
        std::size_t refusals = 0;                           ///< since it last answered
        std::chrono::steady_clock::time_point refuses_since{};
        bool late = false; ///< all of its ranks have refused, for as long as the patience
        void next_rank();
    };
    void make_files();
    [[nodiscard]] std::size_t reader_of(std::size_t piece, const Nodes& nodes) const;
    [[nodiscard]] bool read_own(const Nodes& nodes);
    void read(std::size_t piece);
    [[nodiscard]] bool keep_read();
    [[nodiscard]] bool pull(comm::BlockExchange& exchange, Peer& peer);
    [[nodiscard]] bool hear(comm::BlockExchange& exchange, Peer& peer);
    void set_aside(Peer& peer);
    void count_refusal(Peer& peer);
    void mistrust(Peer& peer, std::size_t piece, std::uint64_t promised);
    void keep(std::size_t piece, std::uint64_t digest, bool from_original);

    const FileList& list_;
    std::string folder_;
    CopyOptions options_;
    CopyEvents events_;
    std::shared_ptr<PieceTable> table_;
    std::vector<bool> here_; ///< by piece
    std::size_t missing_;
    std::size_t scan_ = 0;             ///< pieces before it are here, or another node's
    std::vector<Peer> peers_;          ///< by node; this one's is empty
    std::map<std::size_t, int> wrong_; ///< how often a piece came with another digest than it was offered with
    std::uint64_t questions_ = 0;
    struct {
        std::size_t piece = 0;
        std::future<std::uint64_t> digest;
    } read_; ///< last from the original; its digest is made while the next one is copied
};

} // namespace ranktune::data
