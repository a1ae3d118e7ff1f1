// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoints/checkpoint_store.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/bulk_write.hpp"
#include "storage/checkpoints/checkpoint_file.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::storage {
namespace {

std::vector<std::byte> read_verified(File& file, const StoredPart& part, const std::string& path) {
    std::vector<std::byte> bytes(part.bytes);
    if (file.read_at(part.offset, bytes) != bytes.size() || base::crc32c(bytes) != part.crc) {
        throw DamageError("'" + path + "' is damaged: the checksum of '" + part.info.name + "' does not hold");
    }
    return bytes;
}

CheckpointContents read_contents(File& file, const std::string& path) {
    const std::uint64_t size = file.size();
    std::vector<std::byte> last(std::min<std::uint64_t>(size, checkpoint_seal_bytes));
    last.resize(file.read_at(size - last.size(), last));
    const CheckpointSeal seal = decode_seal(last, path);
    std::vector<std::byte> metadata(std::min(seal.metadata_bytes, size));
    if (seal.file_bytes != size || file.read_at(0, metadata) != seal.metadata_bytes ||
        base::crc32c(metadata) != seal.metadata_crc) {
        throw DamageError("'" + path + "' is damaged: the checksum of its HDF5 metadata does not hold");
    }
    CheckpointContents contents = hdf5_call([&] { return read_checkpoint_metadata(std::move(metadata), size, path); });
    for (const auto* parts : {&contents.tensors, &contents.blobs}) {
        for (const StoredPart& part : *parts) {
            if (part.offset > size || part.bytes > size - part.offset) {
                throw DamageError("'" + path + "' ends before '" + part.info.name + "' does");
            }
        }
    }
    return contents;
}

[[noreturn]] void not_the_one(const std::string& path) {
    throw DamageError("'" + path + "' is not the checkpoint that the journal names: the digests differ");
}

/// The shards of one checkpoint. Opening verifies only the metadata; a part is read and verified on demand.
class ShardSource final : public study::StateSource {
  public:
    void add(FileSystem& files, const std::string& path, std::uint64_t digest) {
        auto file = files.open(path, FileSystem::Open::read);
        CheckpointContents contents = read_contents(*file, path);
        if (contents.digest != digest) not_the_one(path);
        shards_.push_back({path, std::move(file), std::move(contents)});
    }

    void tensor(const study::TensorInfo& info, base::Buffer values) override {
        if (values.type() != info.type || values.bytes() != study::bytes_of(info))
            throw base::UsageError("tensor '" + info.name + "': " + values.text() + " are not what its shape takes");
        const bool rows = info.layout == study::Layout::sharded;
        std::uint64_t found = 0;
        for (const Shard& shard : shards_) {
            for (const StoredPart& part : shard.contents.tensors) {
                if (part.info.name != info.name) continue;
                if (part.info.type != info.type || part.info.shape != info.shape || part.info.layout != info.layout)
                    throw base::FormatError("tensor '" + info.name + "' has another type, shape or layout in '" +
                                            shard.path + "'");
                found += rows ? take_rows(shard, part, info, values) : take_whole(shard, part, values);
            }
        }
        if (found != (rows ? info.rows : 1))
            throw base::FormatError("the checkpoint lacks " + std::string(rows ? "rows of " : "") + "tensor '" +
                                    info.name + "'");
    }
    [[nodiscard]] std::vector<std::byte> blob(std::string_view name) override {
        for (const Shard& shard : shards_)
            for (const StoredPart& part : shard.contents.blobs)
                if (part.info.name == name) return read_verified(*shard.file, part, shard.path);
        throw base::FormatError("the state has no blob '" + std::string(name) + "'");
    }
    [[nodiscard]] std::vector<study::TensorInfo> tensors() const override {
        std::vector<study::TensorInfo> infos;
        for (const Shard& shard : shards_)
            for (const StoredPart& part : shard.contents.tensors) infos.push_back(part.info);
        return infos;
    }

  private:
    struct Shard {
        std::string path;
        std::unique_ptr<File> file;
        CheckpointContents contents;
    };

    static std::uint64_t take_whole(const Shard& shard, const StoredPart& part, base::Buffer values) {
        const auto bytes = read_verified(*shard.file, part, shard.path);
        base::copy(base::ConstBuffer::of_bytes(bytes, part.info.type), values);
        return 1;
    }
    static std::uint64_t take_rows(const Shard& shard, const StoredPart& part, const study::TensorInfo& info,
                                   base::Buffer values) {
        const bool needed =
            part.info.first_row < info.first_row + info.rows && info.first_row < part.info.first_row + part.info.rows;
        if (!needed) return 0;
        const auto bytes = read_verified(*shard.file, part, shard.path);
        return study::copy_rows(part.info, base::ConstBuffer::of_bytes(bytes, part.info.type), info, values);
    }

    std::vector<Shard> shards_;
};

} // namespace

std::string checkpoint_path(const CheckpointKey& key) {
    return "checkpoints/" + std::to_string(key.trial.value()) + "/" + std::to_string(key.iteration) + "-" +
           std::to_string(key.incarnation.value()) + "." + std::to_string(key.attempt.value()) + ".h5";
}

std::string shard_path(const std::string& path, std::uint32_t shard) {
    const auto dot = path.rfind('.');
    return path.substr(0, dot) + "." + std::to_string(shard) + path.substr(dot);
}

bool is_checkpoint_name(std::string_view name) {
    const auto skip = [&name](std::string_view end) {
        if (name.ends_with(end)) name.remove_suffix(end.size());
    };
    skip(".tmp");
    skip(".h5");
    const auto take_number = [&name] {
        const auto end = std::min(name.find_first_not_of("0123456789"), name.size());
        name.remove_prefix(end);
        return end > 0;
    };
    const auto take = [&name](char expected) {
        const bool there = name.starts_with(expected);
        if (there) name.remove_prefix(1);
        return there;
    };
    if (!take_number() || !take('-') || !take_number() || !take('.') || !take_number()) return false;
    return name.empty() || (take('.') && take_number() && name.empty());
}

std::vector<std::string> paths_of(const std::string& path, std::size_t shards) {
    if (shards == 0) return {path};
    std::vector<std::string> paths;
    for (std::uint32_t shard = 0; shard < shards; ++shard) paths.push_back(shard_path(path, shard));
    return paths;
}

study::CheckpointRef join_shards(const CheckpointKey& key, const std::vector<study::CheckpointRef>& shards) {
    study::CheckpointRef whole{key.iteration, checkpoint_path(key), 0, 0};
    base::Digest digest;
    for (const auto& shard : shards) {
        whole.bytes += shard.bytes;
        whole.shards.push_back(shard.digest);
        digest.add(shard.digest);
    }
    whole.digest = digest.value();
    return whole;
}

CheckpointStore::CheckpointStore(FileSystem& files, std::string study_directory, bool direct)
    : files_(files), directory_(std::move(study_directory)), direct_(direct) {}

study::CheckpointRef CheckpointStore::save(const CheckpointKey& key, const study::MemoryState& state) {
    study::CheckpointRef reference{key.iteration, checkpoint_path(key), 0, 0};
    const std::string path = key.shards == 0 ? reference.path : shard_path(reference.path, key.shard);
    files_.make_below(directory_, "checkpoints/" + std::to_string(key.trial.value()));
    files_.write_whole(directory_ + "/" + path, [&](File& file) { write(file, key, state, reference); });
    return reference;
}

void CheckpointStore::write(File& file, const CheckpointKey& key, const study::MemoryState& state,
                            study::CheckpointRef& reference) {
    const auto end = [](CheckpointBuilder* builder) { on_hdf5_thread([&] { delete builder; }); };
    const std::unique_ptr<CheckpointBuilder, decltype(end)> builder(
        hdf5_call([&] { return new CheckpointBuilder(key, state); }), end);
    const std::vector<std::uint64_t> offsets = hdf5_call([&] { return builder->offsets(); });
    const std::uint64_t most = offsets.back() + checkpoint_seal_bytes;
    const bool reserved = file.reserve(most);     // "no space" shows here, before anything is written
    if (reserved && direct_) file.truncate(most); // else each block would extend the file in its own transaction

    std::vector<WrittenPart> parts;
    for (const auto& tensor : state.stored_tensors()) parts.push_back({offsets[parts.size()], tensor.bytes});
    for (const auto& blob : state.stored_blobs()) parts.push_back({offsets[parts.size()], blob.bytes});
    std::vector<std::uint32_t> crcs;
    study::StateDigest digest;
    write_parts(file, parts, direct_, [&] {
        for (const auto& tensor : state.stored_tensors()) {
            digest.begin(tensor.info);
            crcs.push_back(in_pieces(tensor.bytes, [&](std::span<const std::byte> piece) { digest.add(piece); }));
        }
        for (const auto& blob : state.stored_blobs()) crcs.push_back(base::crc32c(blob.bytes));
    });
    reference.digest = digest.value();
    const hdf5::Shell shell = hdf5_call([&] { return builder->finish(crcs, reference.digest); });
    reference.bytes = shell.size;
    file.write_at(0, shell.metadata);
    file.write_at(offsets.back(),
                  encode_seal({shell.size, shell.metadata.size(), reference.digest, base::crc32c(shell.metadata)}));
}

void CheckpointStore::discard(const CheckpointKey& key) noexcept {
    try {
        const std::string path = checkpoint_path(key);
        files_.remove(directory_ + "/" + (key.shards == 0 ? path : shard_path(path, key.shard)));
    } catch (const base::IoError&) { // the next start removes the file
    }
}

study::MemoryState CheckpointStore::load(const study::CheckpointRef& checkpoint) {
    study::MemoryState state;
    if (checkpoint.shards.empty()) {
        load_file(directory_ + "/" + checkpoint.path, checkpoint.digest, state);
        return state;
    }
    for (std::uint32_t shard = 0; shard < checkpoint.shards.size(); ++shard)
        load_file(directory_ + "/" + shard_path(checkpoint.path, shard), checkpoint.shards[shard], state);
    return state;
}

void CheckpointStore::load_file(const std::string& path, std::uint64_t expected, study::MemoryState& state) {
    const auto file = files_.open(path, FileSystem::Open::read);
    const CheckpointContents contents = read_contents(*file, path);
    study::StateDigest digest;
    for (const StoredPart& part : contents.tensors) {
        const std::vector<std::byte> bytes = read_verified(*file, part, path);
        const auto values = base::ConstBuffer::of_bytes(bytes, part.info.type);
        digest.tensor(part.info, values);
        state.tensor(part.info, values);
    }
    for (const StoredPart& part : contents.blobs) state.blob(part.info.name, read_verified(*file, part, path));
    if (digest.value() != expected || contents.digest != expected) not_the_one(path);
}

std::unique_ptr<study::StateSource> CheckpointStore::open_shards(const study::CheckpointRef& checkpoint) {
    auto source = std::make_unique<ShardSource>();
    for (std::uint32_t shard = 0; shard < checkpoint.shards.size(); ++shard)
        source->add(files_, directory_ + "/" + shard_path(checkpoint.path, shard), checkpoint.shards[shard]);
    return source;
}

} // namespace ranktune::storage
