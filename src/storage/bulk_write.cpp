// SPDX-License-Identifier: Apache-2.0
#include "storage/bulk_write.hpp"

#include <exception>
#include <system_error>
#include <thread>

#include "ranktune/base/error.hpp"

namespace ranktune::storage {
namespace {

/// Block size through the page cache: large enough for every file system, small enough that the disk starts early.
constexpr std::size_t block_bytes = std::size_t{16} * 1024 * 1024;
/// Block size for direct writes: the disk idles between two writes, so there should be few of them.
constexpr std::size_t direct_block_bytes = std::size_t{64} * 1024 * 1024;
/// Below this size a thread costs more than it saves.
constexpr std::uint64_t threaded_from = std::uint64_t{4} * 1024 * 1024;
/// Below this size the written data hardly evicts anything useful from the page cache.
constexpr std::uint64_t direct_from = std::uint64_t{16} * 1024 * 1024;
constexpr std::size_t page = 4096;

/// Number of bytes, from the part's beginning, that can bypass the page cache.
std::size_t direct_bytes(const WrittenPart& part) {
    const bool aligned = part.offset % page == 0 && reinterpret_cast<std::uintptr_t>(part.bytes.data()) % page == 0;
    return aligned ? part.bytes.size() / page * page : 0;
}

std::uint64_t sum_of(const std::vector<WrittenPart>& parts, std::size_t (*size)(const WrittenPart&)) {
    std::uint64_t bytes = 0;
    for (const WrittenPart& part : parts) bytes += size(part);
    return bytes;
}

template <class Write>
void in_blocks(std::size_t size, std::uint64_t offset, std::span<const std::byte> bytes, Write&& write) {
    while (!bytes.empty()) {
        const auto block = bytes.first(std::min(size, bytes.size()));
        write(offset, block);
        offset += block.size();
        bytes = bytes.subspan(block.size());
    }
}

/// Returns whether the direct pages were written: some file systems accept the flag and refuse the write.
bool write_direct(File& file, const std::vector<WrittenPart>& parts) {
    if (sum_of(parts, direct_bytes) < direct_from || !file.set_direct(true)) return false;
    bool done = true;
    try {
        for (const WrittenPart& part : parts)
            in_blocks(direct_block_bytes, part.offset, part.bytes.first(direct_bytes(part)),
                      [&](std::uint64_t at, std::span<const std::byte> block) { file.write_at(at, block); });
    } catch (const base::IoError& error) {
        if (error.code() != std::errc::invalid_argument) throw;
        done = false;
    }
    return file.set_direct(false) && done;
}

void write_all(File& file, const std::vector<WrittenPart>& parts, bool direct) {
    const bool went = direct && write_direct(file, parts);
    for (const WrittenPart& part : parts) {
        const std::size_t done = went ? direct_bytes(part) : 0;
        in_blocks(block_bytes, part.offset + done, part.bytes.subspan(done),
                  [&](std::uint64_t at, std::span<const std::byte> block) {
                      file.write_at(at, block);
                      if (block.size() == block_bytes) file.start_sync(at, block.size());
                  });
    }
}

} // namespace

void write_parts(File& file, const std::vector<WrittenPart>& parts, bool direct,
                 const std::function<void()>& meanwhile) {
    const auto size = [](const WrittenPart& part) { return part.bytes.size(); };
    if (sum_of(parts, size) < threaded_from) {
        meanwhile();
        write_all(file, parts, direct);
        return;
    }
    std::exception_ptr error;
    {
        std::jthread writer([&] {
            try {
                write_all(file, parts, direct);
            } catch (...) {
                error = std::current_exception();
            }
        });
        meanwhile();
    }
    if (error) std::rethrow_exception(error);
}

} // namespace ranktune::storage
