// SPDX-License-Identifier: Apache-2.0
#pragma once
// A file system that calls a hook of the test before every operation; the hook may delay the operation or make it fail.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/file_system.hpp"

namespace ranktune::test {

/// Calls the hook, on the calling thread, before each operation of `below`; the operation throws what the hook throws.
class HookedFileSystem final : public storage::FileSystem {
  public:
    enum class Call {
        open,
        create,
        read,
        write,
        write_shared,
        sync,
        reserve,
        truncate,
        make,
        link,
        rename,
        remove,
        look
    };
    using Hook = std::function<void(Call, const std::string& path)>;

    HookedFileSystem(storage::FileSystem& below, Hook hook) : below_(below), hook_(std::move(hook)) {}

    [[nodiscard]] std::unique_ptr<storage::File> open(const std::string& path, Open how) override {
        hook_(how == Open::create_new ? Call::create : Call::open, path);
        return std::make_unique<OpenFile>(below_.open(path, how), path, hook_);
    }
    void make_directories(const std::string& path) override {
        hook_(Call::make, path);
        below_.make_directories(path);
    }
    bool link(const std::string& from, const std::string& to) override {
        hook_(Call::link, to);
        return below_.link(from, to);
    }
    void rename(const std::string& from, const std::string& to) override {
        hook_(Call::rename, to);
        below_.rename(from, to);
    }
    void remove(const std::string& path) override {
        hook_(Call::remove, path);
        below_.remove(path);
    }
    void remove_if_empty(const std::string& directory) override { below_.remove_if_empty(directory); }
    void sync_directory(const std::string& path) override {
        hook_(Call::sync, path);
        below_.sync_directory(path);
    }
    void set_read_only(const std::string& path) override {
        hook_(Call::make, path);
        below_.set_read_only(path);
    }
    [[nodiscard]] bool exists(const std::string& path) const override {
        hook_(Call::look, path);
        return below_.exists(path);
    }
    [[nodiscard]] Kind kind(const std::string& path) const override {
        hook_(Call::look, path);
        return below_.kind(path);
    }
    [[nodiscard]] std::optional<storage::FileIdentity> identity(const std::string& path) const override {
        hook_(Call::look, path);
        return below_.identity(path);
    }
    [[nodiscard]] std::string link_text(const std::string& path) const override { return below_.link_text(path); }
    void make_link(const std::string& text, const std::string& path) override { below_.make_link(text, path); }
    [[nodiscard]] std::string resolve(const std::string& path) const override { return below_.resolve(path); }
    [[nodiscard]] std::vector<std::string> list(const std::string& path) const override {
        hook_(Call::look, path);
        return below_.list(path);
    }

  private:
    class OpenFile final : public storage::File {
      public:
        OpenFile(std::unique_ptr<storage::File> below, std::string path, Hook hook)
            : below_(std::move(below)), path_(std::move(path)), hook_(std::move(hook)) {}

        void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
            hook_(Call::write, path_);
            below_->write_at(offset, bytes);
        }
        void write_shared(std::uint64_t offset, std::span<const std::byte> bytes) override {
            hook_(Call::write_shared, path_);
            below_->write_shared(offset, bytes);
        }
        std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
            hook_(Call::read, path_);
            return below_->read_at(offset, bytes);
        }
        void sync() override {
            hook_(Call::sync, path_);
            below_->sync();
        }
        [[nodiscard]] std::uint64_t size() const override { return below_->size(); }
        [[nodiscard]] storage::FileIdentity identity() const override { return below_->identity(); }
        bool reserve(std::uint64_t bytes) override {
            hook_(Call::reserve, path_);
            return below_->reserve(bytes);
        }
        void truncate(std::uint64_t size) override {
            hook_(Call::truncate, path_);
            below_->truncate(size);
        }
        bool set_direct(bool on) override { return below_->set_direct(on); }
        void start_sync(std::uint64_t offset, std::uint64_t bytes) override { below_->start_sync(offset, bytes); }
        [[nodiscard]] std::uint64_t next_data(std::uint64_t offset) const override { return below_->next_data(offset); }

      private:
        std::unique_ptr<storage::File> below_;
        std::string path_;
        Hook hook_;
    };

    storage::FileSystem& below_;
    Hook hook_;
};

} // namespace ranktune::test
