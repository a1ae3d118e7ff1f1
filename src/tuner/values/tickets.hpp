// SPDX-License-Identifier: Apache-2.0
#pragma once
// Suggestions that are prepared ahead.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"

namespace ranktune::tuner {

struct Ticket {
    std::uint64_t number = 0;
    std::uint64_t seen = 0; ///< lines of the table of observations that it may see
    bool answered = false;
    std::optional<space::Configuration> configuration; ///< answered; none: it failed
    static void fields(auto&& each, auto& r) { each(r.number, r.seen, r.answered, r.configuration); }
};

/// The tickets that no trial has taken, oldest first.
class Tickets {
  public:
    [[nodiscard]] const std::vector<Ticket>& open() const { return open_; }
    /// The number of the next ticket, and how many have been opened.
    [[nodiscard]] std::uint64_t next() const { return next_; }
    /// The ticket with this number, while it has no answer; null: there is none.
    [[nodiscard]] const Ticket* unanswered(std::uint64_t number) const;
    /// Null: none is open.
    [[nodiscard]] const Ticket* oldest() const { return open_.empty() ? nullptr : &open_.front(); }
    /// The oldest with a configuration; null: none has one yet.
    [[nodiscard]] const Ticket* oldest_ready() const;
    /// Tickets that failed in a row since the start of this incarnation, up to now.
    [[nodiscard]] std::uint32_t failures() const { return failures_; }
    /// Why the last one failed that did; empty: none has.
    [[nodiscard]] const std::string& why() const { return why_; }
    /// Throws std::logic_error.
    void check_invariants() const;

    // ---- mutators; each throws base::FormatError for what contradicts the state
    /// A new incarnation: what failed before may work.
    void begin() { failures_ = 0; }
    void add(std::uint64_t number, std::uint64_t seen);
    /// A ticket that failed is dropped, unless a trial waits for it (`keeps_failed`).
    void answer(std::uint64_t number, const std::optional<space::Configuration>& configuration, bool keeps_failed,
                const std::string& why = {});
    /// A trial takes its configuration.
    void take(std::uint64_t number);
    /// Drops the oldest ticket, if any: a trial took another configuration in its place.
    void drop_oldest();
    /// Drops all: they are of another space.
    void drop_all() { open_.clear(); }

    static void fields(auto&& each, auto& r) { each(r.next_, r.open_, r.failures_, r.why_); }

  private:
    std::uint64_t next_ = 0;
    std::vector<Ticket> open_;
    std::uint32_t failures_ = 0;
    std::string why_;
};

} // namespace ranktune::tuner
