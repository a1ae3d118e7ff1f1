// SPDX-License-Identifier: Apache-2.0
// HDF5: contiguous data sets are mapped; chunks are read by the library's thread and decoded by the caller's; what
// neither can do goes through the library, a block of rows at a time.

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "data/block_cache.hpp"
#include "data/chunk_filters.hpp"
#include "data/formats.hpp"
#include "data/mapped_file.hpp"
#include "data/thread_time.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::data {

namespace {

namespace hdf5 = storage::hdf5;
using Extents = std::vector<std::uint64_t>;

enum class Access : std::uint8_t { mapped, chunks, library };

/// One data set. The handle is used on the HDF5 thread only.
struct DataSet {
    Field field;
    Access access = Access::library;
    std::uint64_t samples = 0;
    std::uint64_t offset = 0; ///< mapped: of the first row
    std::uint64_t block = 1;  ///< otherwise: rows that are decoded together
    Extents extents;          ///< of the data set
    Extents chunk;            ///< of a chunk
    std::vector<ChunkFilter> filters;
    std::vector<std::byte> fill; ///< one element: of chunks that were never written
    hdf5::DatasetHandle handle;
};

/// nullopt: not a plain number. `native`: in the byte order of this machine.
struct Plain {
    std::optional<ElementType> type;
    bool native = false;
};

Plain plain_type(hid_t type) {
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_ENUM) { // h5py's booleans
        const hdf5::TypeHandle super(H5Tget_super(type));
        return plain_type(super.get());
    }
    const std::size_t size = H5Tget_size(type);
    const bool native =
        size == 1 || H5Tget_order(type) == (std::endian::native == std::endian::little ? H5T_ORDER_LE : H5T_ORDER_BE);
    if (H5Tget_precision(type) != 8 * size) return {};
    const std::string bits = std::to_string(8 * size);
    if (kind == H5T_INTEGER) return {element_type((H5Tget_sign(type) == H5T_SGN_2 ? "int" : "uint") + bits), native};
    if (kind != H5T_FLOAT) return {};
    std::size_t sign = 0;
    std::size_t exponent = 0;
    std::size_t exponent_bits = 0;
    std::size_t mantissa = 0;
    std::size_t mantissa_bits = 0;
    H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits);
    if (size == 2 && exponent_bits == 8) return {ElementType::bfloat16, native};
    return {element_type("float" + bits), native};
}

/// For conversions by the library; invalid for types that it does not know.
hid_t memory_type(ElementType type) {
    switch (type) {
        case ElementType::int8:
            return H5T_NATIVE_INT8;
        case ElementType::uint8:
            return H5T_NATIVE_UINT8;
        case ElementType::int16:
            return H5T_NATIVE_INT16;
        case ElementType::uint16:
            return H5T_NATIVE_UINT16;
        case ElementType::int32:
            return H5T_NATIVE_INT32;
        case ElementType::uint32:
            return H5T_NATIVE_UINT32;
        case ElementType::int64:
            return H5T_NATIVE_INT64;
        case ElementType::uint64:
            return H5T_NATIVE_UINT64;
        case ElementType::float32:
            return H5T_NATIVE_FLOAT;
        case ElementType::float64:
            return H5T_NATIVE_DOUBLE;
        case ElementType::float16:
        case ElementType::bfloat16:
            break;
    }
    return H5I_INVALID_HID;
}

/// The filters, if all of them are ours.
std::optional<std::vector<ChunkFilter>> own_filters(hid_t properties) {
    std::vector<ChunkFilter> filters;
    const int count = H5Pget_nfilters(properties);
    for (int i = 0; i < count; ++i) {
        unsigned flags = 0;
        std::size_t values = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
        if (id == H5Z_FILTER_DEFLATE)
            filters.push_back(ChunkFilter::deflate);
        else if (id == H5Z_FILTER_SHUFFLE)
            filters.push_back(ChunkFilter::shuffle);
        else if (id == H5Z_FILTER_FLETCHER32)
            filters.push_back(ChunkFilter::fletcher32);
        else
            return std::nullopt;
    }
    return filters;
}

/// How rows are read. `file_bytes`: of the file.
void choose_access(DataSet& set, bool native, std::uint64_t file_bytes, const std::string& path) {
    const hdf5::PropertiesHandle properties(H5Dget_create_plist(set.handle.get()));
    const H5D_layout_t layout = H5Pget_layout(properties.get());
    const std::uint64_t row = std::max<std::uint64_t>(set.field.bytes(), 1);
    set.block = std::max<std::uint64_t>((std::uint64_t{256} << 10U) / row, 1);
    if (layout == H5D_CONTIGUOUS && native && H5Pget_external_count(properties.get()) == 0) {
        const haddr_t offset = H5Dget_offset(set.handle.get());
        if (offset == HADDR_UNDEF) return; // no row was written: the library knows the fill value
        if (offset > file_bytes || product(set.samples, row) > file_bytes - offset)
            refuse_file(path, "field '" + set.field.name + "': the file is cut off");
        set.offset = offset;
        set.access = Access::mapped;
    }
    if (layout != H5D_CHUNKED) return;
    set.chunk.resize(set.extents.size());
    H5Pget_chunk(properties.get(), static_cast<int>(set.chunk.size()), reinterpret_cast<hsize_t*>(set.chunk.data()));
    set.block = std::min(set.chunk[0], set.samples);
    unsigned options = 0;
    H5Pget_chunk_opts(properties.get(), &options);
    const auto filters = own_filters(properties.get());
    if (!native || !filters || options != 0) return;
    set.filters = *filters;
    set.fill.resize(size_of(set.field.type));
    const hdf5::TypeHandle type(H5Dget_type(set.handle.get()));
    if (H5Pget_fill_value(properties.get(), type.get(), set.fill.data()) < 0) return; // there is none
    set.access = Access::chunks;
}

DataSet open_set(hid_t group, const std::string& name, std::uint64_t file_bytes, const std::string& path) {
    DataSet set;
    set.handle = hdf5::DatasetHandle(H5Dopen2(group, name.c_str(), H5P_DEFAULT));
    const auto refuse = [&](const std::string& what) { refuse_file(path, "field '" + name + "' " + what); };
    if (!set.handle) refuse("cannot be opened");
    const hdf5::SpaceHandle space(H5Dget_space(set.handle.get()));
    const int rank = H5Sget_simple_extent_ndims(space.get());
    if (rank < 1) refuse("is a scalar: its first extent has to count samples");
    set.extents.resize(static_cast<std::size_t>(rank));
    static_assert(sizeof(hsize_t) == sizeof(std::uint64_t));
    H5Sget_simple_extent_dims(space.get(), reinterpret_cast<hsize_t*>(set.extents.data()), nullptr);
    const hdf5::TypeHandle type(H5Dget_type(set.handle.get()));
    const Plain plain = plain_type(type.get());
    if (!plain.type || (!plain.native && memory_type(*plain.type) < 0)) refuse("holds no numbers of 8 to 64 bits");
    set.samples = set.extents[0];
    set.field = {name, *plain.type, {set.extents.begin() + 1, set.extents.end()}};
    if (set.samples == 0) refuse("has no samples");
    choose_access(set, plain.native, file_bytes, path);
    constexpr std::uint64_t most = std::uint64_t{1} << 40U;
    if (product(set.block, set.field.bytes()) > most) refuse("has chunks of more than 1 TiB: the file is damaged");
    return set;
}

/// All data sets of a group, or the one called `only`, whatever the others are.
std::vector<DataSet> open_sets(hid_t file, const std::string& group, const std::string& only, std::uint64_t file_bytes,
                               const std::string& path) {
    const hdf5::GroupHandle where(H5Gopen2(file, group.empty() ? "/" : group.c_str(), H5P_DEFAULT));
    if (!where) refuse_file(path, "has no group '" + group + "'");
    H5G_info_t info{};
    hdf5::check(H5Gget_info(where.get(), &info), "data file");
    std::vector<DataSet> sets;
    std::string groups;
    std::vector<std::string> others;
    for (hsize_t i = 0; i < info.nlinks; ++i) {
        const auto get = [&](char* text, std::size_t size) {
            return H5Lget_name_by_idx(where.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, text, size, H5P_DEFAULT);
        };
        std::string name(static_cast<std::size_t>(std::max<ssize_t>(get(nullptr, 0), 0)), '\0');
        get(name.data(), name.size() + 1);
        const hdf5::Handle<H5Oclose> object(H5Oopen(where.get(), name.c_str(), H5P_DEFAULT));
        if (!object && (only.empty() || name == only))
            refuse_file(path, "'" + name + "' cannot be opened: it is damaged, or a link that leads nowhere");
        const H5I_type_t kind = object ? H5Iget_type(object.get()) : H5I_BADID;
        if (kind == H5I_GROUP) groups += (groups.empty() ? "" : ", ") + name;
        if (kind != H5I_DATASET) continue;
        if (only.empty() || name == only)
            sets.push_back(open_set(where.get(), name, file_bytes, path));
        else
            others.push_back(name);
    }
    if (sets.empty() && !others.empty())
        throw base::UsageError("data file '" + path + "' has no field '" + only + "'" +
                               base::suggestion(only, std::span<const std::string>(others)) + "; it has " +
                               base::join_some(others, 10));
    if (sets.empty())
        refuse_file(path, "has no data sets in '" + (group.empty() ? "/" : group) + "'" +
                              (groups.empty() ? "" : "; set `group` to one of its groups: " + groups));
    for (const DataSet& set : sets)
        if (set.samples != sets[0].samples)
            refuse_file(path, "field '" + set.field.name + "' has " + std::to_string(set.samples) + " samples, and '" +
                                  sets[0].field.name + "' has " + std::to_string(sets[0].samples));
    return sets;
}

/// Copies a chunk, from dimension `dim` on, into its block of rows. What lies outside of the data set is left out.
void place_chunk(const DataSet& set, const Extents& at, std::size_t dim, const std::byte* from, std::byte* to) {
    const std::size_t element = size_of(set.field.type);
    const std::uint64_t end = dim == 0 ? set.samples : set.extents[dim];
    const std::uint64_t count = std::min(set.chunk[dim], end - at[dim]);
    if (dim + 1 == set.chunk.size()) {
        std::memcpy(to, from, count * element);
        return;
    }
    std::uint64_t chunk_step = element;
    std::uint64_t row_step = element;
    for (std::size_t d = dim + 1; d < set.chunk.size(); ++d) chunk_step *= set.chunk[d], row_step *= set.extents[d];
    std::uint64_t inner = element; // bytes of a step of the next dimension, in the block
    for (std::size_t d = dim + 2; d < set.chunk.size(); ++d) inner *= set.extents[d];
    for (std::uint64_t i = 0; i < count; ++i)
        place_chunk(set, at, dim + 1, from + i * chunk_step, to + i * row_step + at[dim + 1] * inner);
}

struct Packed {
    Extents at;                   ///< first element of the chunk
    std::uint32_t skipped = 0;    ///< filters
    std::vector<std::byte> bytes; ///< empty: the chunk was never written
};

const hsize_t* extents(const Extents& values) { return reinterpret_cast<const hsize_t*>(values.data()); }

/// Whether the library can read this element. Of a chunk that was never written, it needs the index alone.
bool reads_element(const DataSet& set, const Extents& at) {
    const Extents one(at.size(), 1);
    const hdf5::SpaceHandle file(H5Dget_space(set.handle.get()));
    const hdf5::SpaceHandle memory(H5Screate(H5S_SCALAR));
    const hdf5::TypeHandle type(H5Dget_type(set.handle.get()));
    std::vector<std::byte> element(size_of(set.field.type));
    return H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, extents(at), nullptr, extents(one), nullptr) >= 0 &&
           H5Dread(set.handle.get(), type.get(), memory.get(), file.get(), H5P_DEFAULT, element.data()) >= 0;
}

/// The packed chunks of a block. On the HDF5 thread.
std::vector<Packed> read_chunks(const DataSet& set, std::uint64_t block) {
    const hdf5::QuietErrors quiet;
    std::vector<Packed> chunks;
    Extents at(set.extents.size());
    at[0] = block * set.block;
    for (bool more = true; more;) {
        Packed& chunk = chunks.emplace_back(Packed{at, 0, {}});
        const hsize_t* const offset = extents(at);
        hsize_t size = 0;
        // An error is a damaged index or, in HDF5 1.10, a chunk that was never written. Later versions say 0 then.
        if (H5Dget_chunk_storage_size(set.handle.get(), offset, &size) < 0 && !reads_element(set, at))
            throw base::FormatError("the library cannot find the chunk: the index of chunks is damaged");
        if (size > 0) {
            chunk.bytes.resize(size);
            if (H5Dread_chunk(set.handle.get(), H5P_DEFAULT, offset, &chunk.skipped, chunk.bytes.data()) < 0)
                throw base::FormatError("the library cannot read the chunk");
        }
        more = false;
        for (std::size_t d = at.size(); d-- > 1 && !more;) {
            at[d] += set.chunk[d];
            more = at[d] < set.extents[d];
            if (!more) at[d] = 0;
        }
    }
    return chunks;
}

void fill_block(const DataSet& set, std::vector<std::byte>& rows) {
    if (std::ranges::all_of(set.fill, [](std::byte b) { return b == std::byte{0}; })) return;
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = set.fill[i % set.fill.size()];
}

std::vector<std::byte> decode_block(const DataSet& set, std::uint64_t block, std::uint64_t count) {
    std::vector<std::byte> rows(count * set.field.bytes());
    std::vector<Packed> chunks = read_by_hdf5([&] { return read_chunks(set, block); });
    const std::size_t element = size_of(set.field.type);
    const std::uint64_t size = std::accumulate(set.chunk.begin(), set.chunk.end(), std::uint64_t{element}, product);
    fill_block(set, rows);
    for (Packed& chunk : chunks) {
        if (chunk.bytes.empty()) continue;
        const auto plain = undo_filters(std::move(chunk.bytes), set.filters, chunk.skipped, element, size);
        place_chunk(set, chunk.at, 0, plain.data(), rows.data());
    }
    return rows;
}

std::vector<std::byte> read_block(const DataSet& set, std::uint64_t block, std::uint64_t count) {
    std::vector<std::byte> rows(count * set.field.bytes());
    const bool good = read_by_hdf5([&] {
        const hdf5::QuietErrors quiet;
        Extents start(set.extents.size());
        Extents size = set.extents;
        start[0] = block * set.block;
        size[0] = count;
        const hdf5::SpaceHandle file(H5Dget_space(set.handle.get()));
        const hdf5::SpaceHandle memory(H5Screate_simple(static_cast<int>(size.size()), extents(size), nullptr));
        H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, extents(start), nullptr, extents(size), nullptr);
        const hdf5::TypeHandle own(H5Dget_type(set.handle.get()));
        const hid_t known = memory_type(set.field.type);
        const hid_t type = known >= 0 && H5Tget_class(own.get()) != H5T_ENUM ? known : own.get();
        return H5Dread(set.handle.get(), type, memory.get(), file.get(), H5P_DEFAULT, rows.data()) >= 0;
    });
    if (!good)
        throw base::FormatError(
            "the library cannot read it: the file is damaged, or has a filter that this HDF5 lacks; where the filter "
            "is, `h5repack -f SHUF -f GZIP=4 IN OUT` replaces it");
    return rows;
}

class Hdf5Source final : public Source {
  public:
    Hdf5Source(const std::string& path, std::unique_ptr<MappedFile> file, hdf5::FileHandle handle,
               std::vector<DataSet> sets, std::uint64_t memory)
        : Source(path, fields_of(sets), extent_of(sets)),
          file_(std::move(file)),
          handle_(std::move(handle)),
          sets_(std::move(sets)),
          cache_(memory) {}
    ~Hdf5Source() override {
        storage::on_hdf5_thread([&] {
            sets_.clear();
            handle_ = {};
        });
    }
    Hdf5Source(const Hdf5Source&) = delete;
    Hdf5Source& operator=(const Hdf5Source&) = delete;

    void gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const override {
        const DataSet& set = sets_[field];
        const std::size_t size = set.field.bytes();
        if (set.access == Access::mapped) {
            const std::byte* const rows = file_->bytes().data() + set.offset;
            for (std::size_t i = 0; i < samples.size(); ++i)
                std::memcpy(out.data() + i * size, rows + samples[i] * size, size);
            return;
        }
        // Block by block, so that a small cache decodes each of them once.
        std::vector<std::size_t> places(samples.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        std::ranges::sort(places, {}, [&](std::size_t i) { return samples[i]; });
        BlockCache::Block block;
        std::uint64_t number = ~std::uint64_t{0};
        for (const std::size_t i : places) {
            if (samples[i] / set.block != number) block = block_of(field, number = samples[i] / set.block);
            std::memcpy(out.data() + i * size, block->data() + samples[i] % set.block * size, size);
        }
    }

  private:
    static std::vector<Field> fields_of(const std::vector<DataSet>& sets) {
        std::vector<Field> fields;
        for (const DataSet& set : sets) fields.push_back(set.field);
        return fields;
    }
    static Extent extent_of(const std::vector<DataSet>& sets) {
        Extent extent{sets[0].samples, 0, 1};
        for (const DataSet& set : sets)
            if (set.access != Access::mapped) extent.chunk_samples = std::max(extent.chunk_samples, set.block);
        return extent;
    }
    [[nodiscard]] BlockCache::Block block_of(std::size_t field, std::uint64_t number) const {
        const DataSet& set = sets_[field];
        const std::uint64_t first = number * set.block;
        const std::uint64_t count = std::min(set.block, set.samples - first);
        try {
            return cache_.get({field, number}, [&] {
                return set.access == Access::chunks ? decode_block(set, number, count) : read_block(set, number, count);
            });
        } catch (const base::FormatError& error) {
            refuse_file(path(), "field '" + set.field.name + "', samples " + std::to_string(first) + " to " +
                                    std::to_string(first + count - 1) + ": " + error.what());
        }
    }

    std::unique_ptr<MappedFile> file_;
    hdf5::FileHandle handle_;
    std::vector<DataSet> sets_;
    mutable BlockCache cache_;
};

} // namespace

SourcePointer open_hdf5(const std::string& path, const SourceOptions& options) {
    auto file = std::make_unique<MappedFile>(path);
    return storage::hdf5_call([&]() -> SourcePointer {
        const hdf5::QuietErrors quiet;
        hdf5::FileHandle handle = hdf5::open_unlocked(path);
        if (!handle) refuse_file(path, "cannot be opened as HDF5: it is something else, or cut off");
        auto sets = open_sets(handle.get(), options.group, options.field, file->bytes().size(), path);
        return std::make_shared<Hdf5Source>(path, std::move(file), std::move(handle), std::move(sets), options.memory);
    });
}

} // namespace ranktune::data
