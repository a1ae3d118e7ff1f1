// SPDX-License-Identifier: Apache-2.0
#include "data/staging/piece_copy.hpp"

#include <algorithm>
#include <system_error>
#include <thread>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::data {
namespace {

/// The other thread is woken for so many blocks at once: a wake-up costs a good part of what a block does.
constexpr std::uint64_t blocks_a_wake = 4;

} // namespace

std::uint64_t PieceCopy::run(storage::File& from, const std::string& path, storage::File& to, const Piece& piece) {
    read_ = written_ = 0;
    stop_ = false;
    error_ = nullptr;
    if (piece.bytes <= copy_block_bytes) {
        read(from, path, piece);
        write(to, piece);
        return digest_;
    }
    {
        const std::jthread writer([&] {
            try {
                write(to, piece);
            } catch (...) {
                const std::scoped_lock lock(mutex_);
                error_ = std::current_exception();
                stop_ = true;
                changed_.notify_all();
            }
        });
        try {
            read(from, path, piece);
        } catch (...) {
            const std::scoped_lock lock(mutex_);
            stop_ = true;
            changed_.notify_all();
            throw;
        }
    }
    if (error_) std::rethrow_exception(error_);
    return digest_;
}

void PieceCopy::read(storage::File& from, const std::string& path, const Piece& piece) {
    base::Digest digest;
    for (std::uint64_t done = 0; done < piece.bytes; done += copy_block_bytes) {
        const std::uint64_t number = done / copy_block_bytes;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stop_ || number < written_ + blocks_.size(); });
            if (stop_) return;
        }
        std::vector<std::byte>& block = blocks_[number % blocks_.size()];
        block.resize(std::min(copy_block_bytes, piece.bytes - done));
        if (from.read_at(piece.offset + done, block) != block.size())
            throw base::IoError("became shorter while it was copied:", path, std::make_error_code(std::errc::io_error));
        digest.add(block);
        const std::scoped_lock lock(mutex_);
        if (++read_ % blocks_a_wake == 0 || done + copy_block_bytes >= piece.bytes) changed_.notify_all();
    }
    digest_ = digest.value();
}

void PieceCopy::write(storage::File& to, const Piece& piece) {
    for (std::uint64_t done = 0; done < piece.bytes; done += copy_block_bytes) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stop_ || written_ < read_; });
            if (stop_) return;
        }
        to.write_at(piece.offset + done, blocks_[written_ % blocks_.size()]);
        const std::scoped_lock lock(mutex_);
        if (++written_ % blocks_a_wake == 0) changed_.notify_all();
    }
}

} // namespace ranktune::data
