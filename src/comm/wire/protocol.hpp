// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages between the head and the workers, and among the ranks of a group, with their codec.
//
// Who sends what (leader: the first rank of an attempt; member: any of its ranks, including the leader):
//
//   worker -> head    Hello, Heartbeat, Staging, StopAsked, RankEnded, RankWaits, Bye
//   leader -> head    PlaceNamed, ReportArrived, CheckpointSaved, CheckpointMissed, GroupOver (all living ranks of the
//   attempt are free)
//   head   -> worker  Welcome, Stage, StartTrial, Abandon, Alive, EndRank, Leave
//   worker -> worker  RankEnded (of the head)
//   head   -> leader  Decide, Interrupt, PlaceContested, ReportsTaken
//   member -> leader  Ready, MemberOver
//   leader -> member  Go
//
// Flow control: reports that arrive faster than the head takes them would pile up in the head's MPI without bound. A
// leader is therefore at most `report_window` reports ahead of the last ReportsTaken; beyond that the trial waits. All
// other messages are answers, or follow a report or a timer.
//
// One attempt: StartTrial to all members -> Ready to the leader -> Go to all members -> training -> MemberOver to the
// leader -> GroupOver to the head. After Abandon (a rank of the attempt is dead; it lists the living ones) every living
// member answers as always, MemberOver to the leader, and the leader GroupOver to the head. When the leader is dead
// nobody answers: the head already counts the members as free, and a member sends its Ready for the next attempt only
// when no user code of the old one runs any more.
//
// Everything about an attempt carries (trial, attempt, incarnation). Receivers drop and count messages of other
// attempts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "ranktune/base/ids.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/command.hpp"
#include "ranktune/study/event.hpp"
#include "ranktune/study/schema.hpp"

namespace ranktune::comm {

/// Exit code of a worker whose head was silent for run.heartbeat_timeout. It is above that of a resumable study,
/// because srun returns the highest code of its tasks: the starter of the step learns that this end was not requested.
inline constexpr int head_lost_code = 76;

/// Version of the messages below: both sides must have the same one (checked in Hello, whose layout never changes).
inline constexpr std::uint16_t protocol_version = 17;

/// Limit of reports of an attempt that the head has not taken yet.
inline constexpr std::uint64_t report_window = 256;
/// The head sends ReportsTaken after so many reports.
inline constexpr std::uint64_t report_window_step = report_window / 4;

/// What identifies an attempt on the wire.
struct AttemptKey {
    base::TrialId trial;
    base::AttemptId attempt; ///< zero: no attempt
    base::Incarnation incarnation;
    static void fields(auto&& each, auto& r) { each(r.trial, r.attempt, r.incarnation); }
    friend bool operator==(const AttemptKey&, const AttemptKey&) = default;
};
/// The key of any message or command that names an attempt.
template <class T>
[[nodiscard]] AttemptKey key_of(const T& about) {
    return {about.trial, about.attempt, about.incarnation};
}

/// First message of a worker. The head answers with Welcome or, when the versions differ, with Leave.
struct Hello {
    std::uint16_t protocol = protocol_version;
    std::string version; ///< of the program
    std::string host;
    std::uint32_t gpus = 0;   ///< devices granted to this rank
    std::string device = {};  ///< their UUIDs (study::RankInfo::device); empty: not known
    std::uint32_t nvlink = 0; ///< GPUs of the host with the same number reach each other over NVLink; 0: not known
    std::string nvlink_fabric = {}; ///< likewise for GPUs of several hosts; empty: none
    friend bool operator==(const Hello&, const Hello&) = default;
};
/// Every heartbeat interval, from every rank.
struct Heartbeat {
    AttemptKey key;             ///< what this rank works on; attempt zero: idle
    std::uint64_t progress = 0; ///< Runner::progress since this attempt started here; 0: no user code ran yet
    static void fields(auto&& each, auto& r) { each(r.key, r.progress); }
    friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};
/// This worker received a signal that asks for an early, resumable end of the study.
struct StopAsked {
    study::Asker by = study::Asker::none;
    static void fields(auto&& each, auto& r) { each(r.by); }
    friend bool operator==(const StopAsked&, const StopAsked&) = default;
};
/// All living ranks of an attempt are free. The times are the leader's, so that message delays do not count as
/// training.
struct GroupOver {
    study::AttemptOver over;
    double starting_s = 0.0; ///< from StartTrial to the first progress of user code
    double training_s = 0.0; ///< from then until user code on the leader ended
    /// Parameters and options that the trainable never read (RunnerEnded).
    std::vector<std::string> unread = {};
    static void fields(auto&& each, auto& r) { each(r.over, r.starting_s, r.training_s, r.unread); }
};
/// Last message of a worker: the answer to Leave, or (with a reason) the notice that it ends by itself.
struct Bye {
    std::string why;          ///< empty: as requested by Leave
    AttemptKey hung = {};     ///< the attempt whose user code is at fault; attempt zero: none
    bool head_silent = false; ///< it judged the head dead; a head that reads this was only blocked
    static void fields(auto&& each, auto& r) { each(r.why, r.hung, r.head_silent); }
    friend bool operator==(const Bye&, const Bye&) = default;
};

struct Welcome {
    base::Incarnation incarnation;
    std::string study;     ///< the resolved study file (TOML)
    std::string directory; ///< of the study, absolute
    base::Duration heartbeat_interval{};
    base::Duration head_timeout{}; ///< silence of the head after which a worker ends by itself
    base::Duration abort_grace{};  ///< how long user code may take to return after Abandon or Leave
    /// How long user code may make no progress (Runner::progress) before it counts as hung; 0: no limit, or the runner
    /// checks this itself.
    base::Duration progress_timeout{};
    static void fields(auto&& each, auto& r) {
        each(r.incarnation, r.study, r.directory, r.heartbeat_interval, r.head_timeout, r.abort_grace,
             r.progress_timeout);
    }
    friend bool operator==(const Welcome&, const Welcome&) = default;
};
/// Sign of life of the head when there is nothing else to send.
struct Alive {
    static void fields(auto&& each, auto& /*r*/) { each(); }
    friend bool operator==(const Alive&, const Alive&) = default;
};
/// End the process, after Bye.
struct Leave {
    study::StudyOutcome outcome = study::StudyOutcome::ok;
    bool clean = true; ///< every rank lives: MPI may be finalised
    std::string message;
    static void fields(auto&& each, auto& r) { each(r.outcome, r.clean, r.message); }
    friend bool operator==(const Leave&, const Leave&) = default;
};

/// The process of a rank on the sender's node has ended. About the head: to all workers, which cannot see it.
struct RankEnded {
    base::Rank rank;
    static void fields(auto&& each, auto& r) { each(r.rank); }
    friend bool operator==(const RankEnded&, const RankEnded&) = default;
};
/// Kill the process of a silent rank on the receiver's node: it may be alive, and must not go on. The answer is
/// RankEnded, or RankWaits.
struct EndRank {
    base::Rank rank;
    bool at_once = false; ///< even if it may only be slow
    static void fields(auto&& each, auto& r) { each(r.rank, r.at_once); }
    friend bool operator==(const EndRank&, const EndRank&) = default;
};
/// It was not killed: it runs, or waits for a core (process::Killing::waits).
struct RankWaits {
    base::Rank rank;
    static void fields(auto&& each, auto& r) { each(r.rank); }
    friend bool operator==(const RankWaits&, const RankWaits&) = default;
};

/// This member has the roster and runs no user code of an earlier attempt.
struct Ready {
    AttemptKey key;
    static void fields(auto&& each, auto& r) { each(r.key); }
    friend bool operator==(const Ready&, const Ready&) = default;
};
/// All members are ready: form the group.
struct Go {
    AttemptKey key;
    static void fields(auto&& each, auto& r) { each(r.key); }
    friend bool operator==(const Go&, const Go&) = default;
};
/// User code of this attempt has ended on this member.
struct MemberOver {
    AttemptKey key;
    study::AttemptOutcome outcome = study::AttemptOutcome::finished;
    study::Failure failure;
    static void fields(auto&& each, auto& r) { each(r.key, r.outcome, r.failure); }
    friend bool operator==(const MemberOver&, const MemberOver&) = default;
};

/// A checkpoint could not be written; the trial continues. For the log only: the head decides nothing by it.
struct CheckpointMissed {
    AttemptKey key;
    std::string why;
    static void fields(auto&& each, auto& r) { each(r.key, r.why); }
    friend bool operator==(const CheckpointMissed&, const CheckpointMissed&) = default;
};

/// A program names a place for its checkpoint (worker::NamedPlace). Sent before its report.
struct PlaceNamed {
    AttemptKey key;
    std::string host; ///< empty: other nodes may see the place
    std::string path;
    static void fields(auto&& each, auto& r) { each(r.key, r.host, r.path); }
    friend bool operator==(const PlaceNamed&, const PlaceNamed&) = default;
};
/// Another running attempt has named the same place: whatever lies there belongs to neither.
struct PlaceContested {
    AttemptKey key;
    static void fields(auto&& each, auto& r) { each(r.key); }
    friend bool operator==(const PlaceContested&, const PlaceContested&) = default;
};

/// [before] has written the files of [data]: from now on they may be copied. Without [before], Welcome says so.
struct Stage {
    static void fields(auto&& each, auto& /*r*/) { each(); }
    friend bool operator==(const Stage&, const Stage&) = default;
};
/// What this rank has copied of [data] (data::StagingFigures), while it does and at the end.
struct Staging {
    std::uint64_t bytes = 0;
    std::uint64_t copied = 0;
    std::uint64_t read = 0;
    bool over = false;
    std::string problem = {};
    static void fields(auto&& each, auto& r) { each(r.bytes, r.copied, r.read, r.over, r.problem); }
    friend bool operator==(const Staging&, const Staging&) = default;
};

/// The head has taken so many reports of this attempt since it began, repeated ones included.
struct ReportsTaken {
    AttemptKey key;
    std::uint64_t reports = 0;
    static void fields(auto&& each, auto& r) { each(r.key, r.reports); }
    friend bool operator==(const ReportsTaken&, const ReportsTaken&) = default;
};

/// The index of an alternative is its number on the wire.
using Message = std::variant<Hello, Heartbeat, StopAsked, study::ReportArrived, study::CheckpointSaved, GroupOver, Bye,
                             Welcome, study::StartTrial, study::Decide, study::Interrupt, study::Abandon, Alive, Leave,
                             Ready, Go, MemberOver, CheckpointMissed, ReportsTaken, PlaceNamed, PlaceContested,
                             RankEnded, EndRank, RankWaits, Staging, Stage>;

/// Position of T in the variant.
template <class T, std::size_t I = 0>
constexpr std::uint8_t kind_of() {
    if constexpr (std::is_same_v<T, std::variant_alternative_t<I, Message>>)
        return static_cast<std::uint8_t>(I);
    else
        return kind_of<T, I + 1>();
}

// Hello has a form that never changes, so that an older head can name the newer version.
void put(study::Encoder& out, const Hello& hello);
void get(study::Decoder& in, Hello& hello);

/// Replaces the contents of `out` (whose capacity is reused) by the encoded message.
template <class T>
void encode_message(const T& message, study::Bytes& out) {
    out.clear();
    study::Encoder encoder(out);
    encoder.u8(kind_of<T>());
    put(encoder, message);
}
/// Decodes into `into`, reusing its memory where the kind is the same. Throws base::FormatError for an unknown kind,
/// truncated bytes or trailing bytes.
void decode_message(std::span<const std::byte> bytes, Message& into);

} // namespace ranktune::comm
