// SPDX-License-Identifier: Apache-2.0
#include "worker/peer_io.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "studydir/environment_facts.hpp"
#include "worker/checkpoints/state_exchange.hpp"

namespace ranktune::worker {
namespace {

using Answer = comm::BlockExchange::Answer;

std::string rank_text(base::Rank rank) { return "rank " + std::to_string(rank.value()); }

/// Asks for the form of a state. nullopt: `why` says why not.
std::optional<worker::StateForm> form_of(comm::BlockExchange& exchange, base::Rank holder, const std::string& path,
                                         std::uint64_t digest, std::string& why) {
    std::vector<std::byte> description;
    const Answer answer = exchange.ask(holder, path, description);
    if (answer != Answer::done) {
        why = rank_text(holder) + (answer == Answer::refused ? " does not have it any more" : " does not answer");
        return {};
    }
    const auto all = std::span<const std::byte>(description);
    const std::size_t form_bytes = all.size() - std::min(all.size(), sizeof digest);
    if (study::Decoder(all.subspan(form_bytes)).u64() != digest) {
        why = rank_text(holder) + " has another state of this name";
        return {};
    }
    return worker::decode_form(all.first(form_bytes));
}

} // namespace

/// A state in the memory of its holders, in shards or whole. What cannot be had there comes from disk.
class PeerIo::Source final : public study::StateSource {
  public:
    struct Shard {
        base::Rank holder;
        std::string path;
        worker::StateForm form;
        std::unique_ptr<comm::BlockExchange::Reader> reader = nullptr; ///< of whole tensors, in order
        std::uint32_t next = 0;                                        ///< tensor that it gives
    };
    using OpenDisk = std::function<std::unique_ptr<study::StateSource>()>;

    Source(comm::BlockExchange& exchange, std::vector<Shard> shards, OpenDisk open_disk)
        : exchange_(exchange), shards_(std::move(shards)), open_disk_(std::move(open_disk)) {}

    void tensor(const study::TensorInfo& info, base::Buffer values) override {
        if (disk_ || !copied(info, values)) disk().tensor(info, values);
    }
    [[nodiscard]] std::vector<std::byte> blob(std::string_view name) override {
        for (const Shard& shard : shards_)
            for (const auto& blob : shard.form.blobs)
                if (blob.name == name) return blob.bytes;
        return disk().blob(name); // it knows how to complain
    }
    [[nodiscard]] std::vector<study::TensorInfo> tensors() const override {
        std::vector<study::TensorInfo> infos;
        for (const Shard& shard : shards_)
            infos.insert(infos.end(), shard.form.tensors.begin(), shard.form.tensors.end());
        return infos;
    }

    /// All of it.
    [[nodiscard]] study::MemoryState whole() {
        study::MemoryState state;
        for (const study::TensorInfo& info : tensors())
            tensor(info, base::Buffer::of_bytes(state.add(info), info.type));
        for (const Shard& shard : shards_)
            for (const auto& blob : shard.form.blobs) state.blob(blob.name, blob.bytes);
        return state;
    }

  private:
    study::StateSource& disk() {
        if (!disk_) disk_ = open_disk_();
        return *disk_;
    }

    /// False: it is not all there, or is not what `info` says.
    bool copied(const study::TensorInfo& info, base::Buffer values) {
        if (values.type() != info.type || values.bytes() != study::bytes_of(info)) return false;
        const bool rows = info.layout == study::Layout::sharded;
        std::uint64_t found = 0;
        for (Shard& shard : shards_) {
            for (std::uint32_t i = 0; i < shard.form.tensors.size(); ++i) {
                const study::TensorInfo& part = shard.form.tensors[i];
                if (part.name != info.name) continue;
                if (part.type != info.type || part.shape != info.shape || part.layout != info.layout) return false;
                const auto wanted = rows ? shared_rows(part, info) : part;
                if (rows && wanted.rows == 0) continue;
                if (!copied_part(shard, i, part, wanted, info, values)) return false;
                found += rows ? wanted.rows : 1;
            }
        }
        return found == (rows ? info.rows : 1);
    }

    /// The rows that both have.
    static study::TensorInfo shared_rows(const study::TensorInfo& part, const study::TensorInfo& info) {
        study::TensorInfo shared = part;
        shared.first_row = std::max(part.first_row, info.first_row);
        const std::uint64_t end = std::min(part.first_row + part.rows, info.first_row + info.rows);
        shared.rows = end > shared.first_row ? end - shared.first_row : 0;
        return shared;
    }

    bool copied_part(Shard& shard, std::uint32_t tensor, const study::TensorInfo& part, const study::TensorInfo& wanted,
                     const study::TensorInfo& info, base::Buffer values) {
        const std::size_t element = base::size_of(info.type);
        const std::uint64_t bytes = study::bytes_of(wanted);
        const bool rows = wanted.layout == study::Layout::sharded;
        const std::uint64_t row = rows ? bytes / wanted.rows : 0;
        const std::uint64_t first = rows ? (wanted.first_row - info.first_row) * row : 0;
        const auto take = [&](std::uint64_t at, std::span<const std::byte> piece) {
            base::copy(base::ConstBuffer::of_bytes(piece, info.type),
                       values.part((first + at) / element, piece.size() / element));
        };
        if (!rows && in_order(shard, tensor)) return shard.reader->next(take) == Answer::done;
        comm::BlockExchange::Reader reader(exchange_, shard.holder, shard.path,
                                           {{tensor + 1, (wanted.first_row - part.first_row) * row, bytes}});
        return reader.next(take) == Answer::done;
    }

    /// Whole tensors usually come in the order in which they were saved: they are read ahead, until one does not.
    bool in_order(Shard& shard, std::uint32_t tensor) {
        if (tensor == 0 && !shard.reader) {
            std::vector<comm::BlockExchange::Reader::Range> ranges;
            for (const auto& info : shard.form.tensors) {
                if (info.layout != study::Layout::replicated) break;
                ranges.push_back({static_cast<std::uint32_t>(ranges.size() + 1), 0, study::bytes_of(info)});
            }
            shard.reader = std::make_unique<comm::BlockExchange::Reader>(exchange_, shard.holder, shard.path, ranges);
        }
        if (!shard.reader || shard.next != tensor) return false;
        ++shard.next;
        return true;
    }

    comm::BlockExchange& exchange_;
    std::vector<Shard> shards_;
    OpenDisk open_disk_;
    std::unique_ptr<study::StateSource> disk_; ///< from the first failure on
};

PeerIo::PeerIo(worker::CheckpointIo& disk, comm::BlockExchange& exchange, std::uint64_t keep_bytes, Log log)
    : disk_(disk), exchange_(exchange), log_(std::move(log)), shelf_(keep_bytes) {
    exchange_.offer([this](std::string_view path) { return shelf_.offer(path); });
}

study::CheckpointRef PeerIo::save(const storage::CheckpointKey& key, const State& state) {
    study::CheckpointRef saved = disk_.save(key, state);
    shelf_.put(key.trial, key.shards == 0 ? saved.path : storage::shard_path(saved.path, key.shard), saved.digest,
               state);
    return saved;
}

study::MemoryState PeerIo::load(const study::CheckpointRef& checkpoint, const Ranks& holders) {
    const auto source = from_memory(checkpoint, holders);
    return source ? source->whole() : disk_.load(checkpoint, {});
}

std::unique_ptr<study::StateSource> PeerIo::open(const study::CheckpointRef& checkpoint, const Ranks& holders) {
    if (auto source = from_memory(checkpoint, holders)) return source;
    return disk_.open(checkpoint, {});
}

/// Null: it has to be read from disk.
std::unique_ptr<PeerIo::Source> PeerIo::from_memory(const study::CheckpointRef& checkpoint, const Ranks& holders) {
    const bool whole = checkpoint.shards.empty();
    if (holders.empty() || (!whole && holders.size() != checkpoint.shards.size())) return nullptr;
    std::vector<Source::Shard> shards;
    for (std::uint32_t k = 0; k < (whole ? 1 : holders.size()); ++k) {
        const std::string path = whole ? checkpoint.path : storage::shard_path(checkpoint.path, k);
        std::string why;
        auto form = form_of(exchange_, holders[k], path, whole ? checkpoint.digest : checkpoint.shards[k], why);
        if (!form) {
            log_(checkpoint.path + " is read from disk: " + why);
            return nullptr;
        }
        shards.push_back({.holder = holders[k], .path = path, .form = std::move(*form)});
    }
    log_(checkpoint.path + " comes from the memory of " +
         (shards.size() == 1 ? rank_text(holders.front()) : std::to_string(shards.size()) + " ranks") + ": " +
         studydir::binary_size(checkpoint.bytes));
    return std::make_unique<Source>(exchange_, std::move(shards),
                                    [this, checkpoint] { return disk_.open(checkpoint, {}); });
}

} // namespace ranktune::worker
