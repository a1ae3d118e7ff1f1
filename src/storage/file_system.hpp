// SPDX-License-Identifier: Apache-2.0
#pragma once
// The file-system seam: every byte and every sync of journal, checkpoints and results goes through here, so that
// crashes and power cuts can be replayed in tests.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::storage {

/// Identifies a file or folder independently of its name.
struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// An open file. Move-only by pointer; closing never throws. All calls throw base::IoError.
class File {
  public:
    virtual ~File() = default;
    /// Writes all bytes at `offset` (retries short writes and EINTR).
    virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
    /// The same, of pages whose other bytes another node may write at the same time; synced when it returns.
    virtual void write_shared(std::uint64_t offset, std::span<const std::byte> bytes) {
        write_at(offset, bytes);
        sync();
    }
    /// Reads up to bytes.size() bytes; returns how many (fewer only at the end of the file).
    virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) = 0;
    /// Copies `bytes` from here to the same offset of `to`; returns how many (fewer only at the end of this file). An
    /// error of reading may name `to`.
    virtual std::uint64_t copy_to(File& to, std::uint64_t offset, std::uint64_t bytes);
    /// fdatasync. A failed sync is never retried on the same file: the kernel may have dropped the pages.
    virtual void sync() = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    [[nodiscard]] virtual FileIdentity identity() const = 0;
    /// Reserves space without changing the size where the file system can; false where it cannot (the file stays
    /// sparse).
    virtual bool reserve(std::uint64_t bytes) = 0;
    virtual void truncate(std::uint64_t size) = 0;
    /// On: later writes bypass the page cache; their offset, size and memory must be multiples of 4096. Off: writes go
    /// through the page cache again. Returns false when this file does not support it.
    virtual bool set_direct(bool /*on*/) { return false; }
    /// A hint to start writing these bytes to the disk in the background.
    virtual void start_sync(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
    /// The first offset >= `offset` that may hold data: everything between reads as zeros. A hint that lets readers
    /// skip holes and reserved space.
    [[nodiscard]] virtual std::uint64_t next_data(std::uint64_t offset) const { return offset; }
};

class FileSystem {
  public:
    virtual ~FileSystem() = default;
    /// create_new and create_private fail when the file exists; only its owner may read a private file.
    enum class Open { read, read_write, create_new, create_private };
    /// Never blocks on a FIFO or a device: refuses anything but a regular file with `not_a_file()`.
    [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path, Open how) = 0;
    virtual void make_directories(const std::string& path) = 0;
    /// link(2): publishes `from` as `to`; returns false when `to` exists (also when NFS answered with an error but the
    /// link is there).
    virtual bool link(const std::string& from, const std::string& to) = 0;
    virtual void rename(const std::string& from, const std::string& to) = 0;
    virtual void remove(const std::string& path) = 0; ///< no error when nothing is there
    /// Removes an empty directory; does nothing when it is not empty or cannot be removed. A file system without real
    /// directories need not override this.
    virtual void remove_if_empty(const std::string& /*directory*/) {}
    virtual void sync_directory(const std::string& path) = 0;
    /// Removes all write permissions and adds none.
    virtual void set_read_only(const std::string& path) = 0;
    /// Permission bits of a file or folder (0644); links are followed. A file system without permissions need not
    /// override these two.
    [[nodiscard]] virtual unsigned mode(const std::string& /*path*/) const { return 0644; }
    virtual void set_mode(const std::string& /*path*/, unsigned /*mode*/) {}
    /// Whether this user owns what is at `path`; a symbolic link is not followed. A file system without owners need not
    /// override it.
    [[nodiscard]] virtual bool is_own(const std::string& /*path*/) const { return true; }
    [[nodiscard]] virtual bool exists(const std::string& path) const = 0;
    enum class Kind { missing, file, directory, link, other };
    /// What is at `path`; a symbolic link is not followed.
    [[nodiscard]] virtual Kind kind(const std::string& path) const = 0;
    /// Identity of what `path` leads to, links followed; nothing when nothing is there.
    [[nodiscard]] virtual std::optional<FileIdentity> identity(const std::string& path) const = 0;
    /// The text of a symbolic link. A file system without links need not override this and the next two.
    [[nodiscard]] virtual std::string link_text(const std::string& path) const;
    virtual void make_link(const std::string& text, const std::string& path);
    /// The absolute path with every link followed. Throws base::IoError when nothing is there.
    [[nodiscard]] virtual std::string resolve(const std::string& path) const { return path; }
    /// Names (not paths) in a directory, sorted; empty when there is no such directory.
    [[nodiscard]] virtual std::vector<std::string> list(const std::string& path) const = 0;

    /// Writes a file whole: temporary name, sync, rename, directory sync. Throws base::IoError; an error leaves no
    /// temporary file and keeps what was under the name before.
    void publish(const std::string& path, std::span<const std::byte> bytes, bool sync = true);
    /// The same with a function that writes the new, empty file; rethrows what the function throws.
    void write_whole(const std::string& path, const std::function<void(File&)>& write, bool sync = true);
    /// Makes a folder below another one, which must exist: a study directory that somebody removed or moved away is not
    /// created again. Throws base::IoError.
    void make_below(const std::string& there, const std::string& folder);
    /// Removes a file, or a folder with everything in it, file by file; links are not followed. No error when nothing
    /// is there.
    void remove_all(const std::string& path);
};

/// `path~N`, N being the first number whose name is free.
[[nodiscard]] std::string free_name(const FileSystem& files, const std::string& path);

/// True for errors that end when somebody makes room, mends permissions or brings the file system back: no space,
/// quota, read-only, not permitted, input/output error, stale handle.
[[nodiscard]] bool may_pass(const base::IoError& error);

/// The first `limit` bytes of a file. Throws base::IoError.
[[nodiscard]] std::string read_text(FileSystem& files, const std::string& path,
                                    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// Adds `bytes` of a file at `offset` to a digest (fewer only at the end of the file). Throws base::IoError.
void add_bytes(base::Digest& digest, File& file, std::uint64_t offset, std::uint64_t bytes);

/// `content_text` reads a file up to this size whole; a larger one is sampled in `content_blocks` evenly spaced blocks.
inline constexpr std::uint64_t content_whole_bytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t content_block_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t content_blocks = 64;

/// Fingerprint of a file's content, to recognise the file under any path: "1797693 bytes, XXH64 0123456789abcdef". Of a
/// sampled file ("XXH64 of 64 MiB") it misses changes between the blocks that keep the size. Throws base::IoError.
[[nodiscard]] std::string content_text(FileSystem& files, const std::string& path);

/// Overwrites an existing file in place, which needs no free space unless the file grows. Not atomic: a crash may leave
/// a partial file. Throws base::IoError.
void overwrite(FileSystem& files, const std::string& path, const std::string& text);

/// Code of a base::IoError: a FIFO, a socket or a device lies where a file is wanted.
[[nodiscard]] std::error_code not_a_file();

/// Opens one of ranktune's own files by open(2) with these flags. Refuses a symbolic link as the last path component,
/// and anything but a regular file with `not_a_file()`; never blocks. Throws base::IoError.
[[nodiscard]] FileDescriptor open_own_file(const std::string& path, int flags);

/// The file system of this machine.
[[nodiscard]] FileSystem& posix_file_system();

} // namespace ranktune::storage
