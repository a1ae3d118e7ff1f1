// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoints/checkpoint_file.hpp"

#include <algorithm>
#include <cstring>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/fields.hpp"
#include "storage/hdf5/hdf5.hpp"

namespace ranktune::storage {
namespace {

constexpr char seal_magic[8] = {'R', 'T', 'C', 'H', 'K', 'P', 'T', '1'};
constexpr std::size_t seal_crc_at = checkpoint_seal_bytes - 4;
constexpr const char* newer_version = "' was written by a newer ranktune: use that version or a later one";
constexpr std::uint64_t aligned_tensor_bytes = std::uint64_t{64} * 1024;

base::DType dtype_of(hid_t dataset) {
    const hdf5::TypeHandle stored(hdf5::check(H5Dget_type(dataset), "type"));
    for (const auto type : base::dtypes) {
        if (H5Tequal(stored.get(), hdf5::stored_type(type).get()) > 0) return type;
    }
    throw base::FormatError("a tensor has a type that this version does not know");
}

void add_part(hdf5::ShellBuilder& builder, hid_t group, const study::TensorInfo& info, std::uint64_t index) {
    const bool sharded = info.layout == study::Layout::sharded;
    auto shape = info.shape;
    if (sharded) shape[0] = info.rows;
    const hid_t dataset =
        builder.add_bulk(group, hdf5::link_name(info.name), hdf5::stored_type(info.type).get(), shape);
    hdf5::put_attribute(dataset, "name", info.name);
    hdf5::put_attribute(dataset, "index", index);
    hdf5::put_attribute(dataset, "crc32c", std::uint64_t{0}); // known when the bytes are written
    hdf5::put_attribute(dataset, "layout", sharded ? "sharded" : "replicated");
    if (!sharded) return;
    hdf5::put_attribute(dataset, "first_row", info.first_row);
    hdf5::put_attribute(dataset, "all_rows", info.shape[0]);
}

StoredPart read_part(hid_t group, hsize_t position) {
    char link[4096];
    hdf5::check(H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_NATIVE, position, link, sizeof link, H5P_DEFAULT),
                "name of a data set");
    const hdf5::DatasetHandle dataset(hdf5::check(H5Dopen2(group, link, H5P_DEFAULT), link));
    const hdf5::SpaceHandle space(hdf5::check(H5Dget_space(dataset.get()), link));
    std::vector<hsize_t> extent(static_cast<std::size_t>(hdf5::check(H5Sget_simple_extent_ndims(space.get()), link)));
    if (!extent.empty()) hdf5::check(H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr), link);
    const std::string layout = hdf5::get_string(dataset.get(), "layout");
    const bool sharded = layout == "sharded" && !extent.empty();
    if (!sharded && layout != "replicated") {
        throw base::FormatError("tensor '" + std::string(link) + "' has a layout that this version does not know");
    }
    StoredPart part;
    part.info.name = hdf5::get_string(dataset.get(), "name");
    part.info.type = dtype_of(dataset.get());
    part.info.shape.assign(extent.begin(), extent.end());
    if (sharded) {
        part.info.layout = study::Layout::sharded;
        part.info.rows = extent[0];
        part.info.first_row = hdf5::get_uint(dataset.get(), "first_row");
        part.info.shape[0] = hdf5::get_uint(dataset.get(), "all_rows");
    }
    part.index = hdf5::get_uint(dataset.get(), "index");
    part.crc = static_cast<std::uint32_t>(hdf5::get_uint(dataset.get(), "crc32c"));
    part.bytes = static_cast<std::uint64_t>(hdf5::check(H5Sget_simple_extent_npoints(space.get()), link)) *
                 base::size_of(part.info.type);
    if (part.bytes == 0) return part;
    const haddr_t offset = H5Dget_offset(dataset.get());
    if (offset == HADDR_UNDEF) throw base::FormatError("tensor '" + part.info.name + "' was never written");
    part.offset = offset;
    return part;
}

std::vector<StoredPart> read_parts(hid_t file, const char* name) {
    const hdf5::GroupHandle group(hdf5::check(H5Gopen2(file, name, H5P_DEFAULT), name));
    H5G_info_t info{};
    hdf5::check(H5Gget_info(group.get(), &info), name);
    std::vector<StoredPart> parts;
    for (hsize_t i = 0; i < info.nlinks; ++i) parts.push_back(read_part(group.get(), i));
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    return parts;
}

} // namespace

std::vector<std::byte> encode_seal(const CheckpointSeal& seal) {
    std::vector<std::byte> bytes(checkpoint_seal_bytes);
    std::memcpy(bytes.data(), seal_magic, sizeof seal_magic);
    put(bytes, 8, seal.file_bytes);
    put(bytes, 16, seal.metadata_bytes);
    put(bytes, 24, seal.digest);
    put(bytes, 32, seal.metadata_crc);
    put(bytes, seal_crc_at, base::crc32c(std::span(bytes).first(seal_crc_at)));
    return bytes;
}

CheckpointSeal decode_seal(std::span<const std::byte> bytes, const std::string& path) {
    if (bytes.size() != checkpoint_seal_bytes || std::memcmp(bytes.data(), seal_magic, sizeof seal_magic - 1) != 0) {
        throw DamageError("'" + path + "' is not a whole checkpoint");
    }
    if (get<std::uint32_t>(bytes, seal_crc_at) != base::crc32c(bytes.first(seal_crc_at))) {
        throw DamageError("'" + path + "' is damaged in its last 64 bytes");
    }
    if (bytes[7] != static_cast<std::byte>(seal_magic[7])) {
        throw base::FormatError("'" + path + newer_version);
    }
    CheckpointSeal seal;
    seal.file_bytes = get<std::uint64_t>(bytes, 8);
    seal.metadata_bytes = get<std::uint64_t>(bytes, 16);
    seal.digest = get<std::uint64_t>(bytes, 24);
    seal.metadata_crc = get<std::uint32_t>(bytes, 32);
    return seal;
}

CheckpointBuilder::CheckpointBuilder(const CheckpointKey& key, const study::MemoryState& state)
    : builder_(aligned_tensor_bytes) {
    const hdf5::QuietErrors quiet;
    const hid_t file = builder_.file();
    hdf5::put_attribute(file, "format", "ranktune checkpoint");
    hdf5::put_attribute(file, "schema_version", checkpoint_schema);
    hdf5::put_attribute(file, "trial", std::uint64_t{key.trial.value()});
    hdf5::put_attribute(file, "iteration", std::uint64_t{key.iteration});
    hdf5::put_attribute(file, "incarnation", std::uint64_t{key.incarnation.value()});
    hdf5::put_attribute(file, "attempt", std::uint64_t{key.attempt.value()});
    hdf5::put_attribute(file, "digest", std::uint64_t{0}); // known when the bytes are written
    if (key.shards != 0) {
        hdf5::put_attribute(file, "shard", std::uint64_t{key.shard});
        hdf5::put_attribute(file, "shards", std::uint64_t{key.shards});
    }
    const hdf5::GroupHandle tensors = hdf5::create_group(file, "tensors");
    std::uint64_t index = 0;
    for (const auto& tensor : state.stored_tensors()) {
        add_part(builder_, tensors.get(), tensor.info, index++);
    }
    const hdf5::GroupHandle blobs = hdf5::create_group(file, "blobs");
    index = 0;
    for (const auto& blob : state.stored_blobs()) {
        const study::TensorInfo info{blob.name, base::DType::uint8, {blob.bytes.size()}, study::Layout::replicated};
        add_part(builder_, blobs.get(), info, index++);
    }
    static_cast<void>(builder_.add_bulk(file, "seal", H5T_STD_U8LE, {checkpoint_seal_bytes}));
}

hdf5::Shell CheckpointBuilder::finish(std::span<const std::uint32_t> crcs, std::uint64_t digest) {
    const hdf5::QuietErrors quiet;
    static_cast<void>(builder_.place());
    hdf5::set_attribute(builder_.file(), "digest", digest);
    for (std::size_t i = 0; i < crcs.size(); ++i)
        hdf5::set_attribute(builder_.bulk(i), "crc32c", std::uint64_t{crcs[i]});
    return builder_.finish();
}

CheckpointContents read_checkpoint_metadata(std::vector<std::byte> metadata, std::uint64_t file_bytes,
                                            const std::string& path) {
    const hdf5::QuietErrors quiet;
    const hdf5::ShellReader reader(std::move(metadata), file_bytes);
    if (hdf5::get_uint(reader.file(), "schema_version") > checkpoint_schema)
        throw base::FormatError("'" + path + newer_version);
    CheckpointContents contents;
    contents.digest = hdf5::get_uint(reader.file(), "digest");
    contents.tensors = read_parts(reader.file(), "tensors");
    contents.blobs = read_parts(reader.file(), "blobs");
    return contents;
}

} // namespace ranktune::storage
