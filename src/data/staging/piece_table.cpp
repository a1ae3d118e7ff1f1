// SPDX-License-Identifier: Apache-2.0
#include "data/staging/piece_table.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ranktune::data {
namespace {

/// In the place of the number of pieces.
constexpr std::uint64_t no_part = ~std::uint64_t{0};

/// What a receiver reads from.
struct Shown {
    std::vector<std::byte> news;
    std::vector<std::shared_ptr<const data::MappedFile>> files;
};

std::vector<std::byte> as_block(std::span<const PresentPiece> news) {
    const std::uint64_t count = news.size();
    std::vector<std::byte> block(sizeof count + news.size_bytes());
    std::memcpy(block.data(), &count, sizeof count);
    if (!news.empty()) std::memcpy(block.data() + sizeof count, news.data(), news.size_bytes());
    return block;
}

} // namespace

PieceTable::PieceTable(const FileList& list, std::uint64_t piece_bytes, const std::string& folder)
    : key_(list.key), pieces_(pieces_of(list, piece_bytes)) {
    for (const FileList::Entry& entry : list.entries) {
        files_.push_back(nullptr);
        if (entry.bytes > 0) files_.back() = std::make_shared<data::MappedFile>(folder + "/" + entry.name);
    }
}

void PieceTable::add(PresentPiece present) {
    const std::scoped_lock lock(mutex_);
    present_.push_back(present);
}

std::vector<PresentPiece> PieceTable::present() const {
    const std::scoped_lock lock(mutex_);
    return present_;
}

std::optional<comm::BlockExchange::Offer> PieceTable::offer(std::string_view name) const {
    const std::string bytes = name_of_bytes(key_);
    if (!name.starts_with(bytes)) return std::nullopt;
    std::size_t seen = 0;
    if (const auto rest = name.substr(bytes.size()); !rest.empty())
        std::from_chars(rest.data(), rest.data() + rest.size(), seen);
    auto shown = std::make_shared<Shown>();
    {
        const std::scoped_lock lock(mutex_);
        shown->news = as_block(std::span(present_).subspan(std::min(seen, present_.size())));
    }
    shown->files = files_;
    comm::BlockExchange::Offer offer{shown, {shown->news}};
    for (const auto& file : shown->files) offer.blocks.push_back(file ? file->bytes() : std::span<const std::byte>());
    return offer;
}

comm::BlockExchange::Offer offer_of_no_part() {
    const auto block = std::make_shared<const std::uint64_t>(no_part);
    return {block, {std::as_bytes(std::span(block.get(), 1))}};
}

bool takes_no_part(std::span<const std::byte> block) {
    std::uint64_t count = 0;
    if (block.size() == sizeof count) std::memcpy(&count, block.data(), sizeof count);
    return count == no_part;
}

std::string name_of_bytes(std::uint64_t key) { return "data/" + std::to_string(key) + "/"; }
std::string name_of_news(std::uint64_t key, std::size_t seen, std::uint64_t question) {
    return name_of_bytes(key) + std::to_string(seen) + "/" + std::to_string(question);
}

std::vector<PresentPiece> read_news(std::span<const std::byte> block) {
    std::uint64_t count = 0;
    if (block.size() < sizeof count) return {};
    std::memcpy(&count, block.data(), sizeof count);
    if ((block.size() - sizeof count) / sizeof(PresentPiece) != count) return {};
    std::vector<PresentPiece> news(count);
    if (count > 0) std::memcpy(news.data(), block.data() + sizeof count, count * sizeof(PresentPiece));
    return news;
}

} // namespace ranktune::data
