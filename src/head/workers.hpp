// SPDX-License-Identifier: Apache-2.0
#pragma once
// Workers: the processes of the worker ranks as the head knows them: who has said Hello, who lives, who has been silent
// for too long; and the messages to them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "process/process_watch.hpp"
#include "ranktune/base/log.hpp"
#include "ranktune/study/codec.hpp"

namespace ranktune::head {

struct Worker {
    study::RankInfo info;
    bool hello = false;
    bool alive = true; ///< not given up
    bool bye = false;
    bool told_to_leave = false;
    std::optional<base::StudyTime> ended;  ///< when its process ended; its last messages may still arrive
    std::optional<base::StudyTime> fenced; ///< when its process was to be killed, because it is silent
    bool spared = false;                   ///< silent, but it may only be slow: it has another time-out
    base::StudyTime heard;
    base::StudyTime spoken_to;
    comm::AttemptKey reporting; ///< the attempt of its last report
    std::uint64_t reports = 0;  ///< taken from that attempt
    comm::Staging staging;
};

/// Part of HeadMachine, which owns it and tells the core who is gone. `now` never decreases. References must outlive
/// it.
class Workers {
  public:
    struct Limits {
        base::Duration hello;    ///< for all workers to say Hello
        base::Duration interval; ///< between heartbeats
        base::Duration silence;  ///< after which a rank counts as gone
    };
    /// Kills the process of a silent rank, if it is on this node: HeadDuties::end_rank.
    using Kill = std::function<process::Killing(base::Rank, bool at_once)>;
    struct Lost {
        base::Rank rank;
        std::string why;
    };

    /// Ranks 1 .. `count`.
    Workers(std::uint32_t count, Limits limits, comm::Outbox& outbox, Kill kill, base::LogSink& log,
            base::StudyTime now);

    [[nodiscard]] bool has(base::Rank rank) const { return rank.value() > 0 && rank.value() < all_.size(); }
    /// Requires has(rank).
    [[nodiscard]] Worker& operator[](base::Rank rank) { return all_[rank.value()]; }
    [[nodiscard]] auto begin() const { return all_.begin() + 1; } ///< in the order of ranks
    [[nodiscard]] auto end() const { return all_.end(); }
    /// It has said Hello.
    void on_hello(base::Rank rank);
    [[nodiscard]] bool all_here() const { return greeted_ + 1 == all_.size(); }
    /// Ranks that count as gone, ascending.
    [[nodiscard]] std::vector<base::Rank> gone() const;

    template <class T>
    void send(base::Rank to, const T& what, base::StudyTime now) {
        comm::encode_message(what, buffer_);
        send_buffer(to, now);
    }
    /// To those that are not given up.
    template <class T>
    void send(const std::vector<base::Rank>& to, const T& what, base::StudyTime now) {
        comm::encode_message(what, buffer_);
        for (const base::Rank rank : to)
            if (all_[rank.value()].alive) send_buffer(rank, now);
    }
    /// Counts a report, whatever becomes of it: its leader may send another one.
    void take_note(base::Rank leader, const comm::AttemptKey& key, base::StudyTime now);

    /// The process of a rank has ended.
    void on_ended(base::Rank rank, base::StudyTime now);
    /// The process of a silent rank was not killed: it is starved, too. Once.
    void spare(Worker& worker);
    /// The worker has left because the head was silent.
    void on_deserted(base::StudyTime now);
    /// Why workers left after this head was silent for too long; empty: none did.
    [[nodiscard]] std::string desertion() const;

    /// For every round. True: it is time for a `scan`.
    [[nodiscard]] bool watch(base::StudyTime now);
    /// Why the study cannot begin: not all have said Hello in time. Empty: they have, or there is time left.
    [[nodiscard]] std::string missing(base::StudyTime now) const;
    /// Kills what is silent, and sends to those that this side has been silent to. Returns whom to give up.
    [[nodiscard]] std::vector<Lost> scan(base::StudyTime now);
    /// Those to be given up because their processes have ended: their last messages have been read.
    [[nodiscard]] std::vector<Lost> ended(base::StudyTime now);
    /// When `watch` or `ended` have something to do next.
    [[nodiscard]] base::StudyTime wake_at() const;

  private:
    void send_buffer(base::Rank to, base::StudyTime now);
    /// How long it may be silent.
    [[nodiscard]] base::Duration patience(const Worker& worker) const {
        return limits_.silence * (worker.spared ? 2 : 1);
    }
    [[nodiscard]] std::string silence(const Worker& worker) const;
    void fence(Worker& worker, base::StudyTime now);
    [[nodiscard]] bool is_lost(Worker& worker, base::StudyTime now);

    Limits limits_;
    comm::Outbox& outbox_;
    Kill kill_;
    base::LogSink& log_;
    std::vector<Worker> all_;       ///< position is the rank; 0 unused
    std::vector<base::Rank> ended_; ///< alive so far, but their processes have ended
    std::size_t greeted_ = 0;
    bool deserted_ = false;
    base::Duration longest_gap_{}; ///< between two rounds
    base::StudyTime hello_until_;
    base::StudyTime last_round_;
    base::StudyTime next_scan_;
    study::Bytes buffer_;
};

} // namespace ranktune::head
