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

#include "ranktune/base/error.hpp"
#include "storage/file_descriptor.hpp"

namespace ranktune::storage {

/// Which file or folder it is, whatever it is called now.
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
    /// Reads up to bytes.size(); returns how many (less only at the end of the file).
    virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) = 0;
    /// fdatasync. A failed sync is never retried on the same file: the kernel may have dropped the pages.
    virtual void sync() = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    [[nodiscard]] virtual FileIdentity identity() const = 0;
    /// Reserves space without changing the size where the file system can; false where it cannot (the file stays
    /// sparse).
    virtual bool reserve(std::uint64_t bytes) = 0;
    virtual void truncate(std::uint64_t size) = 0;
    /// From here on writes go past the page cache, and their offset, size and memory are multiples of 4096; or as
    /// before. Returns false when this file cannot.
    virtual bool set_direct(bool /*on*/) { return false; }
    /// A hint: these bytes were written, and may go to the disk while the caller does something else.
    virtual void start_sync(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
    /// The first offset >= `offset` that may hold data: holes and reserved space before it read as zeros. A hint that
    /// saves reading them.
    [[nodiscard]] virtual std::uint64_t next_data(std::uint64_t offset) const { return offset; }
};

class FileSystem {
  public:
    virtual ~FileSystem() = default;
    /// create_new and create_private fail when the file exists; what is private only its owner may read.
    enum class Open { read, read_write, create_new, create_private };
    /// Never waits for somebody at the other end: what is no file (a FIFO, a device) is refused with `not_a_file()`.
    [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path, Open how) = 0;
    virtual void make_directories(const std::string& path) = 0;
    /// link(2): publishes `from` as `to`; returns false when `to` exists (also when NFS answered with an error but the
    /// link is there).
    virtual bool link(const std::string& from, const std::string& to) = 0;
    virtual void rename(const std::string& from, const std::string& to) = 0;
    virtual void remove(const std::string& path) = 0; ///< no error when it is not there
    /// Tidiness only: removes a directory that holds nothing; does nothing when it holds something or cannot go. A file
    /// system without real directories need not care.
    virtual void remove_if_empty(const std::string& /*directory*/) {}
    virtual void sync_directory(const std::string& path) = 0;
    /// Takes away all permissions to write, and adds none.
    virtual void set_read_only(const std::string& path) = 0;
    /// Who may read, write and execute a file or folder (0644); links are followed. A file system without permissions
    /// need not care about these two.
    [[nodiscard]] virtual unsigned mode(const std::string& /*path*/) const { return 0644; }
    virtual void set_mode(const std::string& /*path*/, unsigned /*mode*/) {}
    [[nodiscard]] virtual bool exists(const std::string& path) const = 0;
    enum class Kind { missing, file, directory, link, other };
    /// What is there; of a symbolic link, the link itself.
    [[nodiscard]] virtual Kind kind(const std::string& path) const = 0;
    /// Of what the name leads to, links followed; nothing when nothing is there.
    [[nodiscard]] virtual std::optional<FileIdentity> identity(const std::string& path) const = 0;
    /// The text of a symbolic link. A file system without links need not care about this and the next two.
    [[nodiscard]] virtual std::string link_text(const std::string& path) const;
    virtual void make_link(const std::string& text, const std::string& path);
    /// The absolute path of what is there, every link on the way followed. Throws base::IoError when it is not there.
    [[nodiscard]] virtual std::string resolve(const std::string& path) const { return path; }
    /// Names (not paths) in a directory, sorted; empty when it is not there.
    [[nodiscard]] virtual std::vector<std::string> list(const std::string& path) const = 0;

    /// Writes a file whole: temporary name, sync, rename, directory sync. Throws base::IoError and leaves nothing
    /// behind; what was under the name stays.
    void publish(const std::string& path, std::span<const std::byte> bytes, bool sync = true);
    /// The same with a function that writes the new, empty file. What it throws is passed on.
    void write_whole(const std::string& path, const std::function<void(File&)>& write, bool sync = true);
    /// Makes a folder below another one that has to be there: who removed that, or moved it away, does not get it back.
    /// Throws base::IoError.
    void make_below(const std::string& there, const std::string& folder);
    /// Removes a file, or a folder with everything in it, file by file; links are not followed. No error when nothing
    /// is there.
    void remove_all(const std::string& path);
};

/// `path~N`, N being the first number whose name is free.
[[nodiscard]] std::string free_name(const FileSystem& files, const std::string& path);

/// Trouble that ends when somebody makes room, mends permissions or brings the file system back: no space, quota,
/// read-only, not permitted, input/output error, stale handle.
[[nodiscard]] bool may_pass(const base::IoError& error);

/// The first `limit` bytes of a file. Throws base::IoError.
[[nodiscard]] std::string read_text(FileSystem& files, const std::string& path,
                                    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

/// Writes `text` over a file that is there, in place: it takes no room that the file does not have. Not whole after a
/// crash in between. Throws base::IoError.
void overwrite(FileSystem& files, const std::string& path, const std::string& text);

/// Of a base::IoError: a FIFO, a socket or a device lies where a file is wanted.
[[nodiscard]] std::error_code not_a_file();

/// Opens a file of ours by open(2) with these flags: of its last name no symbolic link is followed, and what is no file
/// is refused with `not_a_file()`, at once. Throws base::IoError.
[[nodiscard]] FileDescriptor open_own_file(const std::string& path, int flags);

/// The real one.
[[nodiscard]] FileSystem& posix_file_system();

} // namespace ranktune::storage
