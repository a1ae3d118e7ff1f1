// SPDX-License-Identifier: Apache-2.0
#pragma once
// PieceTable: which pieces of a copy are here, with their digests; other nodes read them from this memory.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "data/mapped_file.hpp"
#include "data/staging/file_list.hpp"

namespace ranktune::data {

/// A piece that is here, as it is told to others.
struct PresentPiece {
    std::uint64_t piece = 0;
    std::uint64_t digest = 0; ///< XXH64
};

/// Thread-safe. One thread adds; another one answers.
class PieceTable {
  public:
    /// `folder`: of the copy, whose files have their full length.
    PieceTable(const FileList& list, std::uint64_t piece_bytes, const std::string& folder);

    [[nodiscard]] std::uint64_t key() const { return key_; }
    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    void add(PresentPiece present);
    [[nodiscard]] std::vector<PresentPiece> present() const;

    /// What `name_of_news(key, seen, ...)` and `name_of_bytes(key)` get: as block 0 the pieces that came after the
    /// first `seen`, led by their number; as block 1 + i the file i.
    [[nodiscard]] std::optional<comm::BlockExchange::Offer> offer(std::string_view name) const;

  private:
    std::uint64_t key_;
    std::vector<Piece> pieces_;
    std::vector<std::shared_ptr<const data::MappedFile>> files_; ///< null: an empty file
    mutable std::mutex mutex_;
    std::vector<PresentPiece> present_;
};

/// What a node offers that reads no pieces, as it has a copy or makes none: others need not wait for it.
[[nodiscard]] comm::BlockExchange::Offer offer_of_no_part();
/// Of block 0 of news.
[[nodiscard]] bool takes_no_part(std::span<const std::byte> block);

/// `question`: another one each time, as an answer may be kept under its name.
[[nodiscard]] std::string name_of_news(std::uint64_t key, std::size_t seen, std::uint64_t question);
[[nodiscard]] std::string name_of_bytes(std::uint64_t key);
/// Block 0 of news. Empty if it is damaged.
[[nodiscard]] std::vector<PresentPiece> read_news(std::span<const std::byte> block);

} // namespace ranktune::data
