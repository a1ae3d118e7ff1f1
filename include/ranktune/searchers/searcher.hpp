// SPDX-License-Identifier: Apache-2.0
#pragma once
// Searcher: where configurations come from. Deterministic and free of clocks, files and threads.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "ranktune/searchers/observations.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::searchers {

/// A prepared suggestion, and what it rests on, for `ranktune explain`.
struct Suggestion {
    // NOLINTNEXTLINE(google-explicit-constructor): a searcher may have nothing to say about a configuration
    Suggestion(space::Configuration suggested, study::SuggestionBasis rests_on = {})
        : configuration(std::move(suggested)), basis(std::move(rests_on)) {}
    space::Configuration configuration;
    study::SuggestionBasis basis;
    friend bool operator==(const Suggestion&, const Suggestion&) = default;
};

/// Suggestions are numbered 0, 1, 2, ... without gaps, in the order in which trials take them; trials from elsewhere (a
/// point to try first, a user) take none. `suggest` changes nothing: asked twice, it answers the same. A searcher
/// learns from the table of observations, which the core keeps for all searchers; anything else that it has to remember
/// comes from records in `apply`, each applied exactly once, live and in replay.
///
///   suggest(0) -> {lr=0.1}    suggest(0) -> {lr=0.1}    apply(TrialCreated #0 {lr=0.1})    suggest(1) -> {lr=0.02}
///
/// A slow searcher prepares suggestions ahead, on a thread beside the head's loop: the core opens tickets, and the next
/// trial takes the oldest one that is ready. If none is ready, it takes `suggest` as a stopgap; in a deterministic
/// study, or if `takes_stopgaps` is false, it waits for its ticket instead.
class Searcher {
  public:
    virtual ~Searcher() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Suggestion `index`; nullopt: the space is exhausted for good. Must be cheap: the head's loop waits for it.
    [[nodiscard]] virtual std::optional<space::Configuration> suggest(std::uint64_t index,
                                                                      const Observations& seen) const = 0;
    /// What `suggest` rests on with the same arguments, for readers; empty: the searcher does not say. May be slow.
    [[nodiscard]] virtual study::SuggestionBasis basis(std::uint64_t /*index*/, const Observations& /*seen*/) const {
        return {};
    }
    /// Whether `suggest(index)` would return nullopt; cheaper than making the configuration.
    [[nodiscard]] virtual bool exhausted(std::uint64_t /*index*/) const { return false; }
    /// Whether the searcher needs the table of observations.
    [[nodiscard]] virtual bool learns() const { return false; }

    /// How many suggestions to prepare ahead when `groups` trials train at a time; 0: none, trials take `suggest`. So
    /// it is while the table has too few results for a model: what was prepared then would be taken when there is one.
    [[nodiscard]] virtual std::uint32_t prepares_ahead(std::uint32_t /*groups*/, const Observations& /*seen*/) const {
        return 0;
    }
    /// Whether a trial whose ticket is not ready takes `suggest` as a stopgap. Otherwise it waits for the ticket,
    /// unless the last one failed: for searchers that suggest nothing twice, since a stopgap does not know what is
    /// prepared.
    [[nodiscard]] virtual bool takes_stopgaps() const { return true; }
    /// Computes a suggestion on any thread, while the searcher is in use elsewhere. Depends only on what it was made
    /// from. Those of one searcher run one at a time, so that they may share what they have read of a table. If it
    /// throws, the message is shown to the user.
    using Preparation = std::function<Suggestion()>;
    /// The work for a ticket (0, 1, 2, ...), which may keep `seen`. Requires a searcher that prepares ahead.
    [[nodiscard]] virtual Preparation prepare(std::uint64_t ticket, Observations seen) const;

    virtual void apply(const study::Record& record) = 0;
    /// A new searcher for a study that goes on in another space: the next suggestion has this index. `apply` then gets
    /// the trials so far as starting points.
    virtual void begin_after(std::uint64_t /*suggested*/) {}
    virtual void snapshot(study::Encoder& out) const = 0;
    virtual void restore(study::Decoder& in) = 0;
};

} // namespace ranktune::searchers
