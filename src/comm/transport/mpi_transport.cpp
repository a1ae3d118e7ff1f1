// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mpi_transport.hpp"

#include <mpi.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <list>
#include <utility>
#include <vector>

#include "comm/kept.hpp"
#include "comm/mpi/communicator.hpp"

namespace ranktune::comm {
namespace {

constexpr int message_tag = 1;

/// A pending operation and the bytes MPI reads or writes. Its address must not change, because MPI holds it.
struct Transfer {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = 0;
    bool failed = false;

    /// Drives progress. An error ends the transfer without success.
    bool done() {
        if (request == MPI_REQUEST_NULL) return true;
        int flag = 0;
        if (MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            failed = true;
            return true;
        }
        return flag != 0;
    }
};

class MpiTransport final : public Transport {
  public:
    explicit MpiTransport(mpi::Communicator world)
        : world_(std::move(world)),
          rank_(static_cast<std::uint32_t>(world_.rank())),
          size_(static_cast<std::uint32_t>(world_.size())) {}

    ~MpiTransport() override {
        if (sending_.empty() && receiving_.empty()) return;
        // MPI still reads and writes these buffers; a communicator in use must not be freed.
        world_.leak();
        keep_to_exit(std::make_shared<std::list<Transfer>>(std::move(sending_)));
        keep_to_exit(std::make_shared<std::list<Transfer>>(std::move(receiving_)));
    }

    base::Rank rank() const override { return base::Rank{rank_}; }
    std::uint32_t size() const override { return size_; }

    void send(base::Rank to, std::span<const std::byte> bytes) override {
        assert(to.value() < size_);
        if (bytes.size() > INT_MAX) throw base::Error("a message of 2 GiB or more cannot be sent");
        auto& transfer = sending_.emplace_back();
        transfer.bytes.assign(bytes.begin(), bytes.end());
        transfer.peer = static_cast<int>(to.value());
        const int code = MPI_Isend(transfer.bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, transfer.peer,
                                   message_tag, world_.get(), &transfer.request);
        if (code != MPI_SUCCESS) sending_.pop_back();
    }

    std::optional<Packet> poll() override {
        drive_sends();
        start_receive();
        return take_received();
    }

    bool flushed() override {
        drive_sends();
        return sending_.empty();
    }

    bool is_quiet() override { return flushed() && receiving_.empty(); }

  private:
    /// Sends to a dead rank stay for ever, so all sends are tested. Usually there are few.
    void drive_sends() {
        for (auto it = sending_.begin(); it != sending_.end();) it = it->done() ? sending_.erase(it) : std::next(it);
    }

    void start_receive() {
        auto found = world_.match(MPI_ANY_SOURCE, message_tag);
        // Open MPI looks first, and then fetches what has come, or some of it.
        if (!found) found = world_.match(MPI_ANY_SOURCE, message_tag);
        if (!found) return;
        auto& transfer = receiving_.emplace_back();
        transfer.bytes.resize(static_cast<std::size_t>(found->bytes));
        transfer.peer = found->source;
        const int code = MPI_Imrecv(transfer.bytes.data(), found->bytes, MPI_BYTE, &found->message, &transfer.request);
        if (code != MPI_SUCCESS) receiving_.pop_back();
    }

    /// The first complete message without an earlier pending one of the same rank. The list is nearly always empty or
    /// has one entry: only a large message of a slow or dead sender stays in it.
    std::optional<Packet> take_received() {
        stuck_.clear();
        for (auto it = receiving_.begin(); it != receiving_.end();) {
            if (std::find(stuck_.begin(), stuck_.end(), it->peer) != stuck_.end()) {
                ++it;
            } else if (!it->done()) {
                stuck_.push_back(it->peer);
                ++it;
            } else if (it->failed) {
                it = receiving_.erase(it);
            } else {
                Packet message{base::Rank{static_cast<std::uint32_t>(it->peer)}, std::move(it->bytes)};
                receiving_.erase(it);
                return message;
            }
        }
        return std::nullopt;
    }

    mpi::Communicator world_;
    std::uint32_t rank_;
    std::uint32_t size_;
    std::list<Transfer> sending_;
    std::list<Transfer> receiving_; ///< in the order of matching
    std::vector<int> stuck_;
};

} // namespace

std::unique_ptr<Transport> make_mpi_transport(const mpi::Environment&) {
    return std::make_unique<MpiTransport>(mpi::Communicator::world().duplicate());
}

} // namespace ranktune::comm
