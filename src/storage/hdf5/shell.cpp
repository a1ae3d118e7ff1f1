// SPDX-License-Identifier: Apache-2.0
#include "storage/hdf5/shell.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"

namespace ranktune::storage::hdf5 {
namespace {

/// In memory, in the oldest file format: every HDF5 since 1.6 reads it, and it has no metadata checksums that could go
/// stale.
PropertiesHandle access_properties(MemoryImage& image) {
    PropertiesHandle access(check(H5Pcreate(H5P_FILE_ACCESS), "access properties"));
    use_memory_driver(access.get(), image);
    check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), "format");
    // Without a small-data block every data set is allocated at the end of the file.
    check(H5Pset_small_data_block_size(access.get(), 0), "small data");
    check(H5Pset_sieve_buf_size(access.get(), 0), "sieve buffer");
    return access;
}

/// Allocates the storage of a data set by writing one zero element; EARLY allocation would place it among the metadata.
/// Returns its offset, 0 when it has no elements.
std::uint64_t allocate(hid_t dataset) {
    const SpaceHandle space(check(H5Dget_space(dataset), "extent"));
    if (check(H5Sget_simple_extent_npoints(space.get()), "extent") == 0) return 0;
    const int rank = check(H5Sget_simple_extent_ndims(space.get()), "rank");
    if (rank > 0) {
        const std::vector<hsize_t> start(static_cast<std::size_t>(rank), 0);
        const std::vector<hsize_t> count(static_cast<std::size_t>(rank), 1);
        check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), "slab");
    }
    const TypeHandle type(check(H5Dget_type(dataset), "type"));
    const std::vector<std::byte> zero(H5Tget_size(type.get()));
    const SpaceHandle one(check(H5Screate(H5S_SCALAR), "scalar"));
    check(H5Dwrite(dataset, type.get(), one.get(), space.get(), H5P_DEFAULT, zero.data()), "allocation");
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) fail("a data set has no place in the file");
    return offset;
}

} // namespace

ShellBuilder::ShellBuilder(std::uint64_t align_from) : image_(std::make_unique<MemoryImage>()) {
    const PropertiesHandle access = access_properties(*image_);
    image_->align_raw_from = align_from;
    file_ = FileHandle(check(H5Fcreate("shell", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "file"));
}

hid_t ShellBuilder::add_bulk(hid_t where, const std::string& name, hid_t type,
                             const std::vector<std::uint64_t>& shape) {
    const PropertiesHandle creation(check(H5Pcreate(H5P_DATASET_CREATE), "creation properties"));
    check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "layout");
    check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_LATE), "allocation time");
    check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "fill time");
    check(H5Pset_obj_track_times(creation.get(), false), "times");
    const std::vector<hsize_t> extent(shape.begin(), shape.end());
    const SpaceHandle space(check(extent.empty()
                                      ? H5Screate(H5S_SCALAR)
                                      : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                                  "extent"));
    DatasetHandle dataset(check(
        H5Dcreate2(where, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), name.c_str()));
    const hid_t id = dataset.get();
    bulk_.push_back(std::move(dataset));
    return id;
}

const std::vector<std::uint64_t>& ShellBuilder::place() {
    if (placed_) return offsets_;
    placed_ = true;
    // Flushing allocates all cached metadata before the bulk data.
    check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), "flush");
    image_->discard_raw = true;
    first_ = HADDR_MAX;
    for (const DatasetHandle& dataset : bulk_) {
        const std::uint64_t offset = allocate(dataset.get());
        offsets_.push_back(offset);
        if (offset == 0) continue;
        if (offset < end_) throw base::FormatError("HDF5 placed the data in another order");
        first_ = std::min<std::uint64_t>(first_, offset);
        end_ = offset + H5Dget_storage_size(dataset.get());
    }
    return offsets_;
}

Shell ShellBuilder::finish() {
    Shell shell;
    shell.offsets = place();
    bulk_.clear();
    check(static_cast<int>(H5Fclose(file_.release())), "close");
    shell.size = image_->size;
    shell.metadata = std::move(image_->written);
    if (shell.metadata.size() > first_) throw base::FormatError("HDF5 placed metadata among the data");
    if (end_ != 0 && end_ != shell.size) throw base::FormatError("HDF5 placed something behind the data");
    return shell;
}

ShellReader::ShellReader(std::vector<std::byte> metadata, std::uint64_t file_size)
    : image_(std::make_unique<MemoryImage>()) {
    image_->written = std::move(metadata);
    image_->size = file_size;
    const PropertiesHandle access = access_properties(*image_);
    file_ = FileHandle(check(H5Fopen("shell", H5F_ACC_RDONLY, access.get()), "file"));
}

} // namespace ranktune::storage::hdf5
