// SPDX-License-Identifier: Apache-2.0
#include "storage/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "ranktune/base/error.hpp"
#include "storage/error_kinds.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::storage {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
    throw base::IoError(what, path, std::error_code(error, std::generic_category()));
}

std::string parent_of(const std::string& path) {
    const auto slash = path.find_last_of('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

class NotAFile final : public std::error_category {
  public:
    [[nodiscard]] const char* name() const noexcept override { return "file"; }
    [[nodiscard]] std::string message(int) const override {
        return "a FIFO, a socket or a device lies there, not a file; move it away";
    }
};

void refuse_other_than_files(int fd, const std::string& path) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) fail("cannot look at", path, errno);
    if (S_ISDIR(info.st_mode)) fail("cannot open", path, EISDIR);
    if (!S_ISREG(info.st_mode)) throw base::IoError("cannot open", path, not_a_file());
}

FileIdentity identity_of(const struct stat& info) { return {info.st_dev, info.st_ino}; }

class PosixFile final : public File {
  public:
    PosixFile(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

    void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
        while (!bytes.empty()) {
            const ssize_t done = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) fail("cannot write", path_, done < 0 ? errno : EIO);
            offset += static_cast<std::uint64_t>(done);
            bytes = bytes.subspan(static_cast<std::size_t>(done));
        }
    }

    void write_shared(std::uint64_t offset, std::span<const std::byte> bytes) override {
        // Clients of NFS write whole pages, as they know them, unless they hold a lock.
        const bool locked = lock_pages(F_WRLCK, offset, bytes.size());
        try {
            File::write_shared(offset, bytes);
        } catch (...) {
            if (locked) static_cast<void>(lock_pages(F_UNLCK, offset, bytes.size()));
            throw;
        }
        if (locked) static_cast<void>(lock_pages(F_UNLCK, offset, bytes.size()));
    }

    std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
        std::size_t total = 0;
        while (total < bytes.size()) {
            const auto rest = bytes.subspan(total);
            const ssize_t done = ::pread(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(offset + total));
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) fail("cannot read", path_, errno);
            if (done == 0) break;
            total += static_cast<std::size_t>(done);
        }
        return total;
    }

    std::uint64_t copy_to(File& to, std::uint64_t offset, std::uint64_t bytes) override {
        auto* const copy = dynamic_cast<PosixFile*>(&to);
        if (copy == nullptr) return File::copy_to(to, offset, bytes);
        // The kernel copies once, which takes half the CPU time of reading and writing.
        if (::lseek(copy->fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
            fail("cannot write", copy->path_, errno);
        std::uint64_t total = 0;
        while (total < bytes) {
            auto from = static_cast<off_t>(offset + total);
            const ssize_t done = ::sendfile(copy->fd_.get(), fd_.get(), &from, bytes - total);
            if (done == 0) break;
            if (done > 0)
                total += static_cast<std::uint64_t>(done);
            else if (errno == EINVAL || errno == ENOSYS) // a file system that does not support it
                return total + File::copy_to(to, offset + total, bytes - total);
            else if (errno != EINTR)
                fail("cannot copy '" + path_ + "' to", copy->path_, errno);
        }
        return total;
    }

    void sync() override {
        if (::fdatasync(fd_.get()) != 0) fail("cannot sync", path_, errno);
    }

    [[nodiscard]] std::uint64_t size() const override {
        struct stat info {};
        if (::fstat(fd_.get(), &info) != 0) fail("cannot read the size of", path_, errno);
        return static_cast<std::uint64_t>(info.st_size);
    }

    [[nodiscard]] FileIdentity identity() const override {
        struct stat info {};
        if (::fstat(fd_.get(), &info) != 0) fail("cannot look at", path_, errno);
        return identity_of(info);
    }

    bool reserve(std::uint64_t bytes) override {
        // fallocate(2) and not posix_fallocate(3): where the file system cannot, the libc form writes zeros instead.
        int rc = 0;
        do rc = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
        while (rc != 0 && errno == EINTR);
        if (rc == 0) return true;
        if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return false;
        fail("cannot reserve space for", path_, errno);
    }

    void truncate(std::uint64_t size) override {
        if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) fail("cannot set the size of", path_, errno);
    }

    bool set_direct(bool on) override {
        const int flags = ::fcntl(fd_.get(), F_GETFL);
        return flags >= 0 && ::fcntl(fd_.get(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
    }

    void start_sync(std::uint64_t offset, std::uint64_t bytes) override {
        // The next sync reports any write-back error.
        static_cast<void>(
            ::sync_file_range(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE));
    }

    [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const override {
        const off_t found = ::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_DATA);
        if (found >= 0) return static_cast<std::uint64_t>(found);
        return errno == ENXIO ? std::max(size(), offset) : offset; // no data after it, or the file system cannot tell
    }

  private:
    /// False: the file system has no locks at all.
    bool lock_pages(int type, std::uint64_t offset, std::uint64_t bytes) {
        constexpr std::uint64_t page = 4096;
        struct flock pages {};
        pages.l_type = static_cast<short>(type);
        pages.l_whence = SEEK_SET;
        pages.l_start = static_cast<off_t>(offset / page * page);
        pages.l_len = static_cast<off_t>((offset + bytes + page - 1) / page * page) - pages.l_start;
        int rc = 0;
        do rc = ::fcntl(fd_.get(), F_OFD_SETLKW, &pages);
        while (rc != 0 && errno == EINTR);
        if (rc == 0) return true;
        if (errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL) return false;
        fail("cannot lock", path_, errno);
    }

    FileDescriptor fd_;
    std::string path_;
};

/// True when both names lead to one file that has several names: the link exists, whatever link(2) returned.
bool is_linked(const std::string& from, const std::string& to) {
    struct stat a {};
    struct stat b {};
    if (::stat(from.c_str(), &a) != 0 || ::stat(to.c_str(), &b) != 0) return false;
    return a.st_nlink > 1 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class PosixFileSystem final : public FileSystem {
  public:
    [[nodiscard]] std::unique_ptr<File> open(const std::string& path, Open how) override {
        int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY; // O_NONBLOCK: opening a FIFO would block for ever
        switch (how) {
            case Open::read:
                flags |= O_RDONLY;
                break;
            case Open::read_write:
                flags |= O_RDWR;
                break;
            case Open::create_new:
            case Open::create_private:
                flags |= O_RDWR | O_CREAT | O_EXCL;
                break;
        }
        FileDescriptor fd(::open(path.c_str(), flags, how == Open::create_private ? 0600 : 0644));
        if (!fd && errno == ENXIO) throw base::IoError("cannot open", path, not_a_file()); // a socket, among others
        if (!fd) fail((flags & O_CREAT) != 0 ? "cannot create" : "cannot open", path, errno);
        refuse_other_than_files(fd.get(), path);
        return std::make_unique<PosixFile>(std::move(fd), path);
    }

    void make_directories(const std::string& path) override {
        if (is_directory(path)) return;
        const std::string parent = parent_of(path);
        if (parent != path) make_directories(parent);
        if (::mkdir(path.c_str(), 0755) != 0) {
            if (errno == EEXIST && is_directory(path)) return;
            fail("cannot create the directory", path, errno);
        }
        // A new directory is safe only when its entry in the parent is synced. A parent that may not be opened belongs
        // to the administrator (a scratch root without read permission) and is skipped.
        try {
            sync_directory(parent);
        } catch (const base::IoError& error) {
            if (error.code() != std::errc::permission_denied) throw;
        }
    }

    bool link(const std::string& from, const std::string& to) override {
        if (::link(from.c_str(), to.c_str()) == 0) return true;
        const int error = errno;
        if (is_linked(from, to)) return true; // NFS: done, but the answer was lost or repeated
        if (error == EEXIST) return false;
        if (error != EPERM && error != EOPNOTSUPP && error != ENOSYS) fail("cannot publish (link)", to, error);
        // A file system without hard links: an exclusive rename is as good.
        if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
        if (errno == EEXIST) return false;
        fail("cannot publish (this file system has neither hard links nor exclusive rename)", to, error);
    }

    void rename(const std::string& from, const std::string& to) override {
        if (::rename(from.c_str(), to.c_str()) != 0) fail("cannot rename to", to, errno);
    }

    void remove(const std::string& path) override {
        if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
        const int error = errno;
        // A read-only file system reports EROFS even when the file does not exist.
        if (error != EROFS || kind(path) != Kind::missing) fail("cannot remove", path, error);
    }

    void remove_if_empty(const std::string& directory) override { static_cast<void>(::rmdir(directory.c_str())); }

    void sync_directory(const std::string& path) override {
        const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd) fail("cannot open the directory", path, errno);
        // Some file systems cannot sync directories: their entries are safe already, or nothing can make them safe.
        if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EOPNOTSUPP) {
            fail("cannot sync the directory", path, errno);
        }
    }

    void set_read_only(const std::string& path) override {
        constexpr unsigned writing = 0222;
        if (::chmod(path.c_str(), mode(path) & ~writing) != 0) fail("cannot make read-only", path, errno);
    }

    [[nodiscard]] unsigned mode(const std::string& path) const override {
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0) fail("cannot look at", path, errno);
        return info.st_mode & 0777U;
    }

    void set_mode(const std::string& path, unsigned mode) override {
        if (::chmod(path.c_str(), mode) != 0) fail("cannot set the permissions of", path, errno);
    }

    [[nodiscard]] bool exists(const std::string& path) const override {
        struct stat info {};
        return ::stat(path.c_str(), &info) == 0;
    }

    [[nodiscard]] bool is_own(const std::string& path) const override {
        struct stat info {};
        return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid();
    }

    [[nodiscard]] Kind kind(const std::string& path) const override {
        struct stat info {};
        if (::lstat(path.c_str(), &info) != 0) {
            if (errno == ENOENT || errno == ENOTDIR) return Kind::missing;
            fail("cannot look at", path, errno);
        }
        if (S_ISREG(info.st_mode)) return Kind::file;
        if (S_ISDIR(info.st_mode)) return Kind::directory;
        return S_ISLNK(info.st_mode) ? Kind::link : Kind::other;
    }

    [[nodiscard]] std::optional<FileIdentity> identity(const std::string& path) const override {
        struct stat info {};
        if (::stat(path.c_str(), &info) == 0) return identity_of(info);
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        fail("cannot look at", path, errno);
    }

    [[nodiscard]] std::string link_text(const std::string& path) const override {
        char text[4096];
        const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
        if (size < 0) fail("cannot read the link", path, errno);
        return {text, static_cast<std::size_t>(size)};
    }

    void make_link(const std::string& text, const std::string& path) override {
        if (::symlink(text.c_str(), path.c_str()) != 0) fail("cannot create the link", path, errno);
    }

    [[nodiscard]] std::string resolve(const std::string& path) const override {
        struct Free {
            void operator()(char* text) const noexcept { ::free(text); }
        };
        const std::unique_ptr<char, Free> found(::realpath(path.c_str(), nullptr));
        if (!found) fail("cannot follow", path, errno);
        return found.get();
    }

    [[nodiscard]] std::vector<std::string> list(const std::string& path) const override {
        struct CloseDirectory {
            void operator()(DIR* directory) const noexcept { ::closedir(directory); }
        };
        const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
        if (!directory) {
            if (errno == ENOENT || errno == ENOTDIR) return {};
            fail("cannot list", path, errno);
        }
        std::vector<std::string> names;
        errno = 0;
        while (const dirent* entry = ::readdir(directory.get())) {
            const std::string name = entry->d_name;
            if (name != "." && name != "..") names.push_back(name);
        }
        if (errno != 0) fail("cannot list", path, errno);
        std::sort(names.begin(), names.end());
        return names;
    }

  private:
    static bool is_directory(const std::string& path) {
        struct stat info {};
        return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    }
};

template <std::size_t size>
bool is_one_of(const std::error_code& code, const std::array<int, size>& errors) {
    const bool is_errno = code.category() == std::generic_category() || code.category() == std::system_category();
    return is_errno && std::find(errors.begin(), errors.end(), code.value()) != errors.end();
}

/// Gives `take` offset and bytes of one block after the other, until the file's end at the latest; returns how many
/// bytes.
template <class Take>
std::uint64_t read_blocks(File& file, std::uint64_t offset, std::uint64_t bytes, Take&& take) {
    std::vector<std::byte> block(std::min<std::uint64_t>(bytes, std::uint64_t{256} << 10U));
    std::uint64_t total = 0;
    while (total < bytes) {
        const auto wanted = std::span(block).first(std::min<std::uint64_t>(block.size(), bytes - total));
        const std::size_t got = file.read_at(offset + total, wanted);
        take(offset + total, wanted.first(got));
        total += got;
        if (got < wanted.size()) break;
    }
    return total;
}

} // namespace

std::uint64_t File::copy_to(File& to, std::uint64_t offset, std::uint64_t bytes) {
    return read_blocks(*this, offset, bytes, [&](std::uint64_t at, auto block) { to.write_at(at, block); });
}

std::string FileSystem::link_text(const std::string& path) const { fail("cannot read the link", path, EINVAL); }

void FileSystem::make_link(const std::string&, const std::string& path) {
    fail("cannot create the link", path, EOPNOTSUPP);
}

void FileSystem::publish(const std::string& path, std::span<const std::byte> bytes, bool sync) {
    write_whole(
        path, [bytes](File& file) { file.write_at(0, bytes); }, sync);
}

void FileSystem::write_whole(const std::string& path, const std::function<void(File&)>& write, bool sync) {
    const std::string aside = path + ".tmp";
    remove(aside); // left by an earlier process
    try {
        const auto file = open(aside, Open::create_new);
        write(*file);
        if (sync) file->sync();
        rename(aside, path);
    } catch (...) {
        try {
            remove(aside);
        } catch (const base::IoError&) { // the first error says more
        }
        throw;
    }
    if (sync) sync_directory(parent_of(path));
}

void FileSystem::make_below(const std::string& there, const std::string& folder) {
    if (!identity(there)) fail("cannot create '" + folder + "' in", there, ENOENT);
    make_directories(there + "/" + folder);
}

void FileSystem::remove_all(const std::string& path) {
    if (kind(path) != Kind::directory) return remove(path);
    for (const std::string& name : list(path)) remove_all(path + "/" + name);
    remove_if_empty(path);
}

std::string free_name(const FileSystem& files, const std::string& path) {
    for (std::uint32_t number = 1;; ++number) {
        std::string name = path + "~" + std::to_string(number);
        if (!files.exists(name)) return name;
    }
}

bool cannot_be_written(const std::error_code& code) {
    constexpr std::array refusals{ENOSPC, EDQUOT, EROFS, EFBIG};
    return is_one_of(code, refusals);
}

bool is_of_storage(const std::error_code& code) {
    constexpr std::array troubles{EIO, ESTALE};
    return cannot_be_written(code) || is_one_of(code, troubles);
}

bool names_refusal(std::string_view text, bool saving) {
    constexpr std::string_view refusals[] = {
        "no space left on device", "disk quota exceeded", "read-only file system",
        "file too large",          "disk is full",        "pytorchstreamwriter failed writing"};
    constexpr std::string_view troubles[] = {"input/output error", "stale file handle"};
    std::string small(text);
    for (char& c : small)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    // NumPy: "600000 requested and 131072 written"
    const auto asked = small.find(" requested and ");
    if (asked != std::string::npos && small.find(" written", asked) != std::string::npos) return true;
    const auto is_in = [&](std::string_view words) { return small.find(words) != std::string::npos; };
    return std::ranges::any_of(refusals, is_in) || (saving && std::ranges::any_of(troubles, is_in));
}

std::optional<std::string> why_full(FileSystem& files, const std::string& folder) {
    constexpr std::array full{ENOSPC, EDQUOT};
    constexpr std::size_t enough = std::size_t{64} << 10U;
    const std::string path = folder + "/.room-" + std::to_string(::getpid());
    std::optional<std::string> why;
    try {
        const auto file = files.open(path, FileSystem::Open::create_private);
        file->write_at(0, std::vector<std::byte>(enough, std::byte{1}));
        file->sync();
    } catch (const base::IoError& error) {
        if (is_one_of(error.code(), full)) why = error.what();
    }
    try {
        files.remove(path);
    } catch (const base::IoError&) { // it was not made
    }
    return why;
}

bool may_pass(const base::IoError& error) {
    constexpr std::array permissions{EACCES, EPERM};
    return is_of_storage(error.code()) || is_one_of(error.code(), permissions);
}

std::string read_text(FileSystem& files, const std::string& path, std::uint64_t limit) {
    const auto file = files.open(path, FileSystem::Open::read);
    std::string text(static_cast<std::size_t>(std::min(file->size(), limit)), '\0');
    text.resize(file->read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
}

void add_bytes(base::Digest& digest, File& file, std::uint64_t offset, std::uint64_t bytes) {
    read_blocks(file, offset, bytes, [&](std::uint64_t, auto block) { digest.add(block); });
}

std::string content_text(FileSystem& files, const std::string& path) {
    const auto file = files.open(path, FileSystem::Open::read);
    const std::uint64_t size = file->size();
    const bool whole = size <= content_whole_bytes;
    base::Digest digest;
    if (whole) add_bytes(digest, *file, 0, size);
    for (std::uint64_t i = 0; !whole && i < content_blocks; ++i) { // the last block ends at the file's end
        const std::uint64_t last = size - content_block_bytes;
        const std::uint64_t from = i + 1 == content_blocks ? last : last / (content_blocks - 1) * i;
        add_bytes(digest, *file, from, content_block_bytes);
    }
    char text[96];
    std::snprintf(text, sizeof text, "%llu bytes, XXH64%s %016llx", static_cast<unsigned long long>(size),
                  whole ? "" : " of 64 MiB", static_cast<unsigned long long>(digest.value()));
    return text;
}

void overwrite(FileSystem& files, const std::string& path, const std::string& text) {
    const auto file = files.open(path, FileSystem::Open::read_write);
    file->write_at(0, std::as_bytes(std::span(text)));
    file->truncate(text.size());
    file->sync();
}

std::error_code not_a_file() {
    static const NotAFile category;
    return {10'000, category}; // not an errno value
}

FileDescriptor open_own_file(const std::string& path, int flags) {
    FileDescriptor fd(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644));
    if (!fd && errno == ENXIO) throw base::IoError("cannot open", path, not_a_file());
    if (!fd && errno == ELOOP) fail("a symbolic link is not followed here; remove it:", path, ELOOP);
    if (!fd) fail("cannot open", path, errno);
    refuse_other_than_files(fd.get(), path);
    return fd;
}

FileSystem& posix_file_system() {
    static PosixFileSystem files;
    return files;
}

} // namespace ranktune::storage
