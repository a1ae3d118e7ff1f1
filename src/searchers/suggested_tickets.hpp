// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tickets that no trial has taken yet, so that suggestions prepared ahead keep away from each other.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::searchers {

/// Which suggestion is asked for: the number of its ticket, and its place among all suggestions of the study, those of
/// tickets in the order in which they were opened. Each point of a grid has its places, so that all of them come.
struct Turn {
    // NOLINTNEXTLINE(google-explicit-constructor): with tickets alone both are the same
    Turn(std::uint64_t ticket_number) : Turn(ticket_number, ticket_number) {}
    Turn(std::uint64_t ticket_number, std::uint64_t its_place) : ticket(ticket_number), place(its_place) {}
    std::uint64_t ticket;
    std::uint64_t place;
};

/// State of a searcher: the tickets that no trial has taken, each with those that were open when it was opened.
class SuggestedTickets {
  public:
    struct Open {
        std::uint64_t number = 0;
        std::uint64_t place = 0;
        std::vector<std::uint64_t> others;                 ///< open when it was opened
        std::optional<space::Configuration> configuration; ///< prepared
        bool waits = true;                                 ///< no trial has taken it
        static void fields(auto&& each, auto& r) { each(r.number, r.place, r.others, r.configuration, r.waits); }
    };

    void apply(const study::Record& record);
    /// In another space, after so many suggestions that had no ticket.
    void begin_after(std::uint64_t suggested) { without_ticket_ = suggested; }
    [[nodiscard]] Turn turn_of(std::uint64_t ticket) const;
    /// The place of the suggestion after `index` others without a ticket.
    [[nodiscard]] std::uint64_t place_after(std::uint64_t index) const { return index + opened_; }
    /// The tickets that a suggestion for `ticket` keeps away from.
    [[nodiscard]] std::vector<Open> others_of(std::uint64_t ticket) const;
    /// Prepared, and not taken.
    [[nodiscard]] std::vector<space::Configuration> waiting() const;
    /// Begins with a version.
    void snapshot(study::Encoder& out) const;
    /// `searcher`: its name, for base::FormatError.
    void restore(study::Decoder& in, std::string_view searcher);

  private:
    void forget();

    std::deque<Open> open_; ///< ascending
    std::uint64_t opened_ = 0;
    std::uint64_t without_ticket_ = 0; ///< suggestions
};

/// Suggestions that this process has computed, so that later ones keep away from them. Tickets are computed in
/// ascending order, also after a restart: a ticket that another one keeps away from is computed first.
class ComputedTickets {
  public:
    [[nodiscard]] std::vector<space::Configuration> of(const std::vector<SuggestedTickets::Open>& tickets) const;
    void keep(std::uint64_t ticket, const space::Configuration& configuration);

  private:
    std::map<std::uint64_t, space::Configuration> computed_;
};

} // namespace ranktune::searchers
