// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base of the searchers whose model suggests ahead, on a thread beside the head's loop.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/results/startup.hpp"
#include "searchers/suggested_tickets.hpp"

namespace ranktune::searchers {

/// What suggests. Not for several threads at a time.
class SuggestingModel {
  public:
    virtual ~SuggestingModel() = default;
    /// A function of the arguments; what was read of a table may be kept, so that a line is read once. `others`:
    /// suggestions that no trial has taken yet, to keep away from.
    [[nodiscard]] virtual Suggestion suggest(Turn turn, const Observations& seen,
                                             std::span<const space::Configuration> others) = 0;

  protected:
    SuggestingModel() = default;
    SuggestingModel(const SuggestingModel&) = default;
    SuggestingModel(SuggestingModel&&) = default;
    SuggestingModel& operator=(const SuggestingModel&) = default;
    SuggestingModel& operator=(SuggestingModel&&) = default;
};

/// The seed of a sequence that has nothing in common with that of `seed`: stopgaps must not repeat what a model begins
/// with.
[[nodiscard]] std::uint64_t other_seed(std::uint64_t seed);

/// Suggestions of a model, prepared ahead once there are enough results for one. A trial whose ticket is not ready
/// takes a stopgap, which no model has made.
///
/// Its state are the tickets that no trial has taken, with those that were open when each was opened: a prepared
/// suggestion keeps away from theirs.
class PreparedSearcher : public Searcher {
  public:
    [[nodiscard]] bool learns() const final { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const final;
    [[nodiscard]] study::SuggestionBasis basis(std::uint64_t /*index*/, const Observations& seen) const final {
        return startup_.basis(seen);
    }
    /// An eighth of the groups, so that a suggestion knows most of what has been seen: a few are enough, since it takes
    /// a thread about a millisecond to make another one. With HyperBand, where suggestions may wait for the next
    /// bracket, one for each of 4 groups left a sixth more regret (200 simulated studies with `bohb`).
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override;
    /// None where nothing is to come twice, and with a grid, whose points are to come equally often.
    [[nodiscard]] bool takes_stopgaps() const final { return !tried_ && space_.grid_size() <= 1; }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const final;
    void apply(const study::Record& record) final { tickets_.apply(record); }
    void begin_after(std::uint64_t suggested) final { tickets_.begin_after(suggested); }
    void snapshot(study::Encoder& out) const final { tickets_.snapshot(out); }
    void restore(study::Decoder& in) final { tickets_.restore(in, name()); }

  protected:
    /// Whether stopgaps repeat what was tried, or waits in a ticket, in a finite space; the model has its own rule.
    enum class Duplicates : std::uint8_t { avoided, allowed };

    /// `space` must outlive it, but not the preparations. `computed`: shared by searchers that suggest for one study.
    PreparedSearcher(const space::SearchSpace& space, std::uint64_t seed, std::shared_ptr<SuggestingModel> model,
                     Startup startup, std::shared_ptr<ComputedTickets> computed,
                     Duplicates duplicates = Duplicates::avoided);

    [[nodiscard]] bool has_model(const Observations& seen) const { return startup_.is_over(seen); }
    [[nodiscard]] const space::SearchSpace& space() const { return space_; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }

  private:
    [[nodiscard]] virtual space::Configuration stopgap(std::uint64_t place) const = 0;

    const space::SearchSpace& space_;
    std::uint64_t seed_;
    std::shared_ptr<SuggestingModel> model_;
    std::shared_ptr<ComputedTickets> computed_;
    SuggestedTickets tickets_;
    mutable std::optional<TriedConfigurations> tried_; ///< for stopgaps; follows from the table
    mutable Startup startup_;                          ///< the same
};

} // namespace ranktune::searchers
