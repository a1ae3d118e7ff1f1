// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoint_store.hpp"

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/checkpoint_file.hpp"
#include "storage/hdf5_thread.hpp"

namespace ranktune::storage {
namespace {

/// Writes are cut into blocks of this size: large enough for every file system, small enough that the disk starts
/// early.
constexpr std::size_t block_bytes = 16 * 1024 * 1024;

void write_blocks(File& file, std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const auto block = bytes.first(std::min(block_bytes, bytes.size()));
        file.write_at(offset, block);
        offset += block.size();
        bytes = bytes.subspan(block.size());
    }
}

std::vector<std::byte> read_verified(File& file, const StoredPart& part, const std::string& path) {
    std::vector<std::byte> bytes(part.bytes);
    if (file.read_at(part.offset, bytes) != bytes.size() || base::crc32c(bytes) != part.crc) {
        throw base::FormatError("'" + path + "' is damaged: the checksum of '" + part.info.name + "' does not hold");
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
        throw base::FormatError("'" + path + "' is damaged: the checksum of its HDF5 metadata does not hold");
    }
    CheckpointContents contents = hdf5_call([&] { return read_checkpoint_metadata(std::move(metadata), size); });
    for (const auto* parts : {&contents.tensors, &contents.blobs}) {
        for (const StoredPart& part : *parts) {
            if (part.offset > size || part.bytes > size - part.offset) {
                throw base::FormatError("'" + path + "' ends before '" + part.info.name + "' does");
            }
        }
    }
    return contents;
}

} // namespace

std::string checkpoint_path(const CheckpointKey& key) {
    return "checkpoints/" + std::to_string(key.trial.value()) + "/" + std::to_string(key.iteration) + "-" +
           std::to_string(key.incarnation.value()) + "." + std::to_string(key.attempt.value()) + ".h5";
}

CheckpointStore::CheckpointStore(FileSystem& files, std::string study_directory)
    : files_(files), directory_(std::move(study_directory)) {}

study::CheckpointRef CheckpointStore::save(const CheckpointKey& key, const study::MemoryState& state) {
    study::CheckpointRef reference{key.iteration, checkpoint_path(key), 0, state.digest()};
    const hdf5::Shell shell = hdf5_call([&] { return build_checkpoint(key, state, reference.digest); });
    reference.bytes = shell.size;
    const CheckpointSeal seal{shell.size, shell.metadata.size(), reference.digest, base::crc32c(shell.metadata)};
    files_.make_directories(directory_ + "/checkpoints/" + std::to_string(key.trial.value()));
    files_.write_whole(directory_ + "/" + reference.path, [&](File& file) {
        file.reserve(shell.size); // "no space" shows here, before anything is written
        file.write_at(0, shell.metadata);
        auto offset = shell.offsets.begin();
        for (const auto& tensor : state.stored_tensors()) write_blocks(file, *offset++, tensor.bytes);
        for (const auto& blob : state.stored_blobs()) write_blocks(file, *offset++, blob.bytes);
        file.write_at(*offset, encode_seal(seal));
    });
    return reference;
}

study::MemoryState CheckpointStore::load(const study::CheckpointRef& checkpoint) {
    const std::string path = directory_ + "/" + checkpoint.path;
    const auto file = files_.open(path, FileSystem::Open::read);
    const CheckpointContents contents = read_contents(*file, path);
    study::MemoryState state;
    for (const StoredPart& part : contents.tensors) {
        const std::vector<std::byte> bytes = read_verified(*file, part, path);
        state.tensor(part.info, std::span<const std::byte>(bytes));
    }
    for (const StoredPart& part : contents.blobs) state.blob(part.info.name, read_verified(*file, part, path));
    if (state.digest() != checkpoint.digest || contents.digest != checkpoint.digest) {
        throw base::FormatError("'" + path + "' is not the checkpoint that the journal names: the digests differ");
    }
    return state;
}

} // namespace ranktune::storage
