// SPDX-License-Identifier: Apache-2.0
#include "storage/hdf5/memory_driver.hpp"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h> // since HDF5 1.14 the drivers' interface has a header of its own
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace ranktune::storage::hdf5 {
namespace {

/// An open file as the library sees it; `base` must be the first member.
struct MemoryFile {
    H5FD_t base;
    MemoryImage* image;
    haddr_t end_of_allocation;
};

MemoryFile& self(H5FD_t* file) { return *reinterpret_cast<MemoryFile*>(file); }
const MemoryFile& self(const H5FD_t* file) { return *reinterpret_cast<const MemoryFile*>(file); }

H5FD_t* open_file(const char*, unsigned flags, hid_t access, haddr_t) {
    const auto* image = static_cast<MemoryImage* const*>(H5Pget_driver_info(access));
    if (image == nullptr) return nullptr;
    auto file = std::unique_ptr<MemoryFile>(new (std::nothrow) MemoryFile{});
    if (!file) return nullptr;
    file->image = *image;
    if ((flags & H5F_ACC_TRUNC) != 0) file->image->written.clear();
    return &file.release()->base;
}

herr_t close_file(H5FD_t* file) {
    self(file).image->size = std::max<std::uint64_t>(self(file).image->size, self(file).end_of_allocation);
    delete &self(file);
    return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
    const auto* x = self(a).image;
    const auto* y = self(b).image;
    return std::less<const MemoryImage*>()(x, y) ? -1 : (x == y ? 0 : 1);
}

herr_t query(const H5FD_t*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA;
    return 0;
}

haddr_t allocate(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t size) {
    constexpr haddr_t page = 4096;
    const std::uint64_t align_from = self(file).image->align_raw_from;
    haddr_t at = self(file).end_of_allocation;
    if (type == H5FD_MEM_DRAW && align_from != 0 && size >= align_from) at = (at + page - 1) / page * page;
    self(file).end_of_allocation = at + size;
    return at;
}

haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) { return self(file).end_of_allocation; }

herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
    self(file).end_of_allocation = address;
    return 0;
}

haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) {
    return std::max<haddr_t>(self(file).image->size, self(file).image->written.size());
}

herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, void* into) {
    const auto& written = self(file).image->written;
    std::memset(into, 0, size);
    if (at < written.size()) std::memcpy(into, written.data() + at, std::min<std::size_t>(size, written.size() - at));
    return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t at, std::size_t size, const void* from) {
    MemoryImage& image = *self(file).image;
    if (image.discard_raw && type == H5FD_MEM_DRAW) return 0;
    try {
        if (image.written.size() < at + size) image.written.resize(at + size);
    } catch (const std::bad_alloc&) { // the caller is C code
        return -1;
    }
    std::memcpy(image.written.data() + at, from, size);
    return 0;
}

H5FD_class_t driver_class() {
    H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(384); // from the range for unregistered drivers
#endif
    driver.name = "ranktune-memory";
    driver.maxaddr = static_cast<haddr_t>(1) << 62;
    driver.fc_degree = H5F_CLOSE_STRONG;
    driver.fapl_size = sizeof(MemoryImage*); // NOLINT(bugprone-sizeof-expression): the pointer is copied
    driver.open = open_file;
    driver.close = close_file;
    driver.cmp = compare;
    driver.query = query;
    driver.alloc = allocate;
    driver.get_eoa = get_eoa;
    driver.set_eoa = set_eoa;
    driver.get_eof = get_eof;
    driver.read = read_bytes;
    driver.write = write_bytes;
    constexpr H5FD_mem_t lists[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(lists), std::end(lists), std::begin(driver.fl_map));
    return driver;
}

} // namespace

void use_memory_driver(hid_t access, MemoryImage& image) {
    static const H5FD_class_t driver = driver_class();
    static const hid_t id = check(H5FDregister(&driver), "memory driver");
    MemoryImage* const pointer = &image;
    check(H5Pset_driver(access, id, &pointer), "memory driver");
}

} // namespace ranktune::storage::hdf5
