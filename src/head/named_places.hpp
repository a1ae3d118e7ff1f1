// SPDX-License-Identifier: Apache-2.0
#pragma once
// NamedPlaces: which attempts name which places for their checkpoints. Two attempts that overlap in time and name the
// same place, or one inside the other's, may have got each other's state.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/wire/protocol.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::head {

/// A value: no clock, no files. What attempts of one start of the head name; after another start no program of the one
/// before runs any more. Costs per call grow with the logarithm of the places known.
class NamedPlaces {
  public:
    void began(const comm::AttemptKey& key);
    /// No process of the attempt runs any more.
    void over(const comm::AttemptKey& key);
    /// A checkpoint of this attempt is about to be committed. False: it lies at a contested place, and must not be.
    [[nodiscard]] bool may_commit(const comm::AttemptKey& key, const std::string& checkpoint);

    struct Clash {
        std::vector<comm::AttemptKey> others; ///< attempts of other trials that name the same place; empty: none
        std::string place;                    ///< that of the first one of them
        /// Committed while this attempt ran: each may be the state of either.
        std::vector<std::string> checkpoints;
    };
    /// `path`: absolute, without links; `host` as in PlaceNamed.
    [[nodiscard]] Clash named(const comm::AttemptKey& key, const std::string& host, const std::string& path);

  private:
    /// Older names of an attempt are forgotten: what lies there is not used any more.
    static constexpr std::size_t most_names = 64;

    /// Times count what happened.
    struct Attempt {
        std::uint64_t began = 0;
        std::optional<std::uint64_t> over;
        bool contested = false;
        std::deque<std::string> paths;
        std::vector<std::pair<std::uint64_t, std::string>> checkpoints; ///< when, and where
    };
    struct Less {
        bool operator()(const comm::AttemptKey& a, const comm::AttemptKey& b) const {
            return std::tie(a.trial, a.attempt, a.incarnation) < std::tie(b.trial, b.attempt, b.incarnation);
        }
    };
    struct Name {
        comm::AttemptKey key;
        std::string host;
    };

    void look_at(const std::string& path, const comm::AttemptKey& key, const std::string& host, Clash& clash);
    void forget_path(const comm::AttemptKey& key, const std::string& path);
    void forget_old();

    std::map<comm::AttemptKey, Attempt, Less> attempts_; ///< running, or over while one that still runs did
    std::map<std::string, std::vector<Name>> names_;     ///< by path
    std::set<std::uint64_t> running_;                    ///< when they began
    std::deque<comm::AttemptKey> ended_;                 ///< in order
    std::uint64_t time_ = 0;
};

} // namespace ranktune::head
