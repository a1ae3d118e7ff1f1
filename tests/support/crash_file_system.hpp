// SPDX-License-Identifier: Apache-2.0
#pragma once
// An in-memory file system that logs every operation, so that a test can ask what a crash or a power failure after any
// of them would leave, and that fails on demand.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "storage/file_system.hpp"

namespace ranktune::test {

/// The model of what survives:
/// - death of all processes: every operation up to that point, and part of a write in progress;
/// - power failure: of each file, everything written before its last successful sync; each 512-byte sector, and the
///   size, as of any time since then; of each directory, the entries as of any time since its last sync. Directories
///   themselves survive;
/// - a failed sync: its data are lost in the next power failure, whatever later syncs return.
class CrashFileSystem final : public storage::FileSystem {
  public:
    enum class Kind { create, write, truncate, sync, link, rename, remove, sync_directory };
    /// Called before every operation, which fails with the returned errno unless that is 0.
    using Fault = std::function<int(Kind, const std::string& path)>;

    CrashFileSystem() = default;

    void set_fault(Fault fault) {
        const std::lock_guard lock(mutex_);
        fault_ = std::move(fault);
    }
    /// Whether reserve() is supported.
    void set_reserves(bool reserves) { reserves_ = reserves; }
    [[nodiscard]] std::size_t operations() const {
        const std::lock_guard lock(mutex_);
        return log_.size();
    }

    /// One logged operation, to choose where to cut.
    struct Seen {
        Kind kind = Kind::write;
        std::uint32_t inode = 0;
        std::string path; ///< under which the file was opened, or of the entry
    };
    [[nodiscard]] Seen operation(std::size_t index) const {
        const std::lock_guard lock(mutex_);
        const Operation& o = log_.at(index);
        return {o.kind, o.inode, o.path};
    }
    /// Whether the file had been published with link() before operation `index`.
    [[nodiscard]] bool linked_before(std::uint32_t inode, std::size_t index) const {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, there] : initial_.names)
            if (there == inode) return true;
        return std::any_of(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(index),
                           [&](const Operation& o) { return o.kind == Kind::link && o.inode == inode; });
    }
    /// Paths of all files in and below a directory.
    [[nodiscard]] std::vector<std::string> list_below(const std::string& directory) const {
        const std::lock_guard lock(mutex_);
        std::vector<std::string> paths;
        for (const auto& [name, inode] : now_.names)
            if (name.starts_with(directory + "/")) paths.push_back(name);
        return paths;
    }

    /// The files when every process dies after the first `count` operations and, if the next one is a write, `torn`
    /// bytes of it.
    [[nodiscard]] std::unique_ptr<CrashFileSystem> after_kill(std::size_t count, std::size_t torn = 0) const;
    /// Files that may be left when the power fails after the first `count` operations; `rng` chooses among them.
    [[nodiscard]] std::unique_ptr<CrashFileSystem> after_power_cut(std::size_t count, base::RngStream& rng) const;

    // ---- FileSystem ----
    [[nodiscard]] std::unique_ptr<storage::File> open(const std::string& path, Open how) override;
    void make_directories(const std::string& path) override {
        const std::lock_guard lock(mutex_);
        for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
            directories_.insert(path.substr(0, at));
        }
        directories_.insert(path);
    }
    bool link(const std::string& from, const std::string& to) override;
    void rename(const std::string& from, const std::string& to) override;
    void remove(const std::string& path) override;
    void sync_directory(const std::string& path) override {
        const std::lock_guard lock(mutex_);
        refuse(Kind::sync_directory, path);
        record({Kind::sync_directory, 0, 0, {}, path, {}});
    }
    void set_read_only(const std::string& path) override {
        const std::lock_guard lock(mutex_);
        read_only_.insert(inode_at(path));
    }
    [[nodiscard]] bool exists(const std::string& path) const override {
        const std::lock_guard lock(mutex_);
        return now_.names.count(path) != 0 || directories_.count(path) != 0;
    }
    [[nodiscard]] storage::FileSystem::Kind kind(const std::string& path) const override;
    /// Device 0: files, by inode. Device 1: directories, by a hash of the path.
    [[nodiscard]] std::optional<storage::FileIdentity> identity(const std::string& path) const override {
        const std::lock_guard lock(mutex_);
        if (const auto found = now_.names.find(path); found != now_.names.end())
            return storage::FileIdentity{0, found->second};
        if (directories_.count(path) != 0) return storage::FileIdentity{1, std::hash<std::string>{}(path)};
        return std::nullopt;
    }
    [[nodiscard]] std::vector<std::string> list(const std::string& path) const override;
    [[nodiscard]] bool is_read_only(const std::string& path) const {
        const std::lock_guard lock(mutex_);
        return read_only_.count(inode_at(path)) != 0;
    }

  private:
    using Bytes = std::vector<std::byte>;
    using Inode = std::uint32_t;
    static constexpr std::size_t sector = 512;

    struct Operation {
        Kind kind = Kind::write;
        Inode inode = 0;
        std::uint64_t offset = 0; ///< of a write; the size of a truncate
        Bytes bytes;
        std::string path; ///< of the entry that appears (link, rename) or concerned
        std::string from; ///< of a rename
        bool lost = false;
    };
    struct State {
        std::map<std::string, Inode> names;
        std::map<Inode, Bytes> data;
    };
    class OpenFile;

    static std::string parent_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }
    static void apply_data(const Operation& operation, Bytes& data, std::size_t limit = SIZE_MAX);
    static void apply_name(const Operation& operation, std::map<std::string, Inode>& names);
    static bool is_data(const Operation& o) { return o.kind == Kind::write || o.kind == Kind::truncate; }

    /// The functions below are called with the mutex held.
    void refuse(Kind kind, const std::string& path) const {
        if (!fault_) return;
        if (const int error = fault_(kind, path); error != 0) fail("injected", path, error);
    }
    [[noreturn]] static void fail(const std::string& what, const std::string& path, int error) {
        throw base::IoError(what, path, {error, std::generic_category()});
    }
    [[nodiscard]] Inode inode_at(const std::string& path) const {
        const auto found = now_.names.find(path);
        if (found == now_.names.end()) fail("cannot find", path, ENOENT);
        return found->second;
    }
    void record(Operation operation) {
        if (is_data(operation)) {
            apply_data(operation, now_.data[operation.inode]);
        } else {
            apply_name(operation, now_.names);
        }
        log_.push_back(std::move(operation));
    }
    [[nodiscard]] std::map<std::string, Inode> surviving_names(std::size_t count, base::RngStream& rng) const;
    [[nodiscard]] Bytes surviving_bytes(Inode inode, std::size_t count, base::RngStream& rng) const;
    [[nodiscard]] std::unique_ptr<CrashFileSystem> boot(State state) const;

    mutable std::mutex mutex_;
    State initial_;
    State now_;
    std::vector<Operation> log_;
    std::set<std::string> directories_;
    std::set<Inode> read_only_;
    Inode next_inode_ = 1;
    Fault fault_;
    bool reserves_ = true;
};

class CrashFileSystem::OpenFile final : public storage::File {
  public:
    OpenFile(CrashFileSystem& files, Inode inode, std::string path)
        : files_(files), inode_(inode), path_(std::move(path)) {}

    void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
        const std::lock_guard lock(files_.mutex_);
        try {
            files_.refuse(Kind::write, path_);
        } catch (const base::IoError&) { // like a full disk: the first half is written
            const auto part = bytes.first(bytes.size() / 2);
            files_.record({Kind::write, inode_, offset, {part.begin(), part.end()}, path_, {}});
            throw;
        }
        files_.record({Kind::write, inode_, offset, {bytes.begin(), bytes.end()}, path_, {}});
    }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
        const std::lock_guard lock(files_.mutex_);
        const Bytes& data = files_.now_.data[inode_];
        if (offset >= data.size()) return 0;
        const std::size_t size = std::min<std::size_t>(bytes.size(), data.size() - offset);
        std::memcpy(bytes.data(), data.data() + offset, size);
        return size;
    }
    void sync() override {
        const std::lock_guard lock(files_.mutex_);
        try {
            files_.refuse(Kind::sync, path_);
        } catch (const base::IoError&) { // the kernel drops the pages
            for (auto at = files_.log_.rbegin(); at != files_.log_.rend(); ++at) {
                if (at->inode != inode_) continue;
                if (at->kind == Kind::sync) break;
                if (is_data(*at)) at->lost = true;
            }
            throw;
        }
        files_.record({Kind::sync, inode_, 0, {}, path_, {}});
    }
    [[nodiscard]] std::uint64_t size() const override {
        const std::lock_guard lock(files_.mutex_);
        return files_.now_.data[inode_].size();
    }
    [[nodiscard]] storage::FileIdentity identity() const override { return {0, inode_}; }
    bool reserve(std::uint64_t) override { return files_.reserves_; }
    void truncate(std::uint64_t size) override {
        const std::lock_guard lock(files_.mutex_);
        files_.refuse(Kind::truncate, path_);
        files_.record({Kind::truncate, inode_, size, {}, path_, {}});
    }

  private:
    CrashFileSystem& files_;
    Inode inode_;
    std::string path_;
};

inline void CrashFileSystem::apply_data(const Operation& operation, Bytes& data, std::size_t limit) {
    if (operation.kind == Kind::truncate) {
        data.resize(operation.offset);
        return;
    }
    const std::size_t size = std::min(operation.bytes.size(), limit);
    if (data.size() < operation.offset + size) data.resize(operation.offset + size);
    std::copy_n(operation.bytes.begin(), size, data.begin() + static_cast<std::ptrdiff_t>(operation.offset));
}

inline void CrashFileSystem::apply_name(const Operation& operation, std::map<std::string, Inode>& names) {
    switch (operation.kind) {
        case Kind::create:
        case Kind::link:
            names[operation.path] = operation.inode;
            break;
        case Kind::rename:
            names.erase(operation.from);
            names[operation.path] = operation.inode;
            break;
        case Kind::remove:
            names.erase(operation.path);
            break;
        default:
            break;
    }
}

inline std::unique_ptr<storage::File> CrashFileSystem::open(const std::string& path, Open how) {
    const std::lock_guard lock(mutex_);
    const auto found = now_.names.find(path);
    if (how == Open::read || how == Open::read_write) {
        if (found == now_.names.end()) fail("cannot open", path, ENOENT);
        return std::make_unique<OpenFile>(*this, found->second, path);
    }
    if (found != now_.names.end()) fail("cannot create", path, EEXIST);
    if (directories_.count(parent_of(path)) == 0) fail("cannot create", path, ENOENT);
    refuse(Kind::create, path);
    const Inode inode = next_inode_++;
    now_.data[inode];
    record({Kind::create, inode, 0, {}, path, {}});
    return std::make_unique<OpenFile>(*this, inode, path);
}

inline bool CrashFileSystem::link(const std::string& from, const std::string& to) {
    const std::lock_guard lock(mutex_);
    refuse(Kind::link, to);
    const Inode inode = inode_at(from);
    if (now_.names.count(to) != 0) return false;
    record({Kind::link, inode, 0, {}, to, {}});
    return true;
}

inline void CrashFileSystem::rename(const std::string& from, const std::string& to) {
    const std::lock_guard lock(mutex_);
    refuse(Kind::rename, to);
    record({Kind::rename, inode_at(from), 0, {}, to, from});
}

inline void CrashFileSystem::remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    refuse(Kind::remove, path);
    if (now_.names.count(path) != 0) record({Kind::remove, inode_at(path), 0, {}, path, {}});
}

inline storage::FileSystem::Kind CrashFileSystem::kind(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    if (now_.names.count(path) != 0) return FileSystem::Kind::file;
    return directories_.count(path) != 0 ? FileSystem::Kind::directory : FileSystem::Kind::missing;
}

inline std::vector<std::string> CrashFileSystem::list(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, inode] : now_.names) {
        if (parent_of(name) == path) names.push_back(name.substr(path.size() + 1));
    }
    for (const std::string& name : directories_) {
        if (parent_of(name) == path && name != path) names.push_back(name.substr(path.size() + 1));
    }
    std::sort(names.begin(), names.end());
    return names;
}

inline std::unique_ptr<CrashFileSystem> CrashFileSystem::boot(State state) const {
    auto files = std::make_unique<CrashFileSystem>();
    files->initial_ = state;
    files->now_ = std::move(state);
    files->directories_ = directories_;
    files->next_inode_ = next_inode_;
    files->reserves_ = reserves_;
    return files;
}

inline std::unique_ptr<CrashFileSystem> CrashFileSystem::after_kill(std::size_t count, std::size_t torn) const {
    const std::lock_guard lock(mutex_);
    State state = initial_;
    for (std::size_t i = 0; i < count; ++i) {
        if (is_data(log_[i])) {
            apply_data(log_[i], state.data[log_[i].inode]);
        } else {
            apply_name(log_[i], state.names);
        }
    }
    if (count < log_.size() && torn > 0 && log_[count].kind == Kind::write) {
        apply_data(log_[count], state.data[log_[count].inode], torn);
    }
    return boot(std::move(state));
}

inline std::map<std::string, CrashFileSystem::Inode> CrashFileSystem::surviving_names(std::size_t count,
                                                                                      base::RngStream& rng) const {
    std::map<std::string, Inode> names = initial_.names;
    for (const std::string& directory : directories_) {
        std::vector<std::size_t> entries;
        std::size_t safe = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const Operation& o = log_[i];
            if (o.kind == Kind::sync_directory && o.path == directory) safe = entries.size();
            if (is_data(o) || o.kind == Kind::sync || o.kind == Kind::sync_directory) continue;
            if (parent_of(o.path) == directory) entries.push_back(i);
        }
        const std::size_t kept = safe + rng.below(entries.size() - safe + 1);
        for (std::size_t i = 0; i < kept; ++i) apply_name(log_[entries[i]], names);
    }
    return names;
}

inline CrashFileSystem::Bytes CrashFileSystem::surviving_bytes(Inode inode, std::size_t count,
                                                               base::RngStream& rng) const {
    // Versions of the file since its last good sync: each sector, and the size, come from one of them.
    const auto first = initial_.data.find(inode);
    std::vector<Bytes> versions = {first == initial_.data.end() ? Bytes{} : first->second};
    for (std::size_t i = 0; i < count; ++i) {
        const Operation& o = log_[i];
        if (o.inode != inode) continue;
        if (o.kind == Kind::sync) versions.erase(versions.begin(), versions.end() - 1);
        if (!is_data(o) || o.lost) continue;
        versions.push_back(versions.back());
        apply_data(o, versions.back());
    }
    // Everything old, everything new, or a mixture.
    const std::uint64_t mood = rng.below(4);
    const auto pick = [&]() -> const Bytes& {
        if (mood == 0) return versions.front();
        if (mood == 1) return versions.back();
        return versions[rng.below(versions.size())];
    };
    Bytes result(pick().size());
    for (std::size_t at = 0; at < result.size(); at += sector) {
        const Bytes& version = pick();
        if (at >= version.size()) continue;
        const std::size_t size = std::min({sector, result.size() - at, version.size() - at});
        std::memcpy(result.data() + at, version.data() + at, size);
    }
    return result;
}

inline std::unique_ptr<CrashFileSystem> CrashFileSystem::after_power_cut(std::size_t count,
                                                                         base::RngStream& rng) const {
    const std::lock_guard lock(mutex_);
    State state;
    state.names = surviving_names(count, rng);
    std::set<Inode> alive;
    for (const auto& [name, inode] : state.names) alive.insert(inode);
    for (const Inode inode : alive) state.data[inode] = surviving_bytes(inode, count, rng);
    return boot(std::move(state));
}

} // namespace ranktune::test
