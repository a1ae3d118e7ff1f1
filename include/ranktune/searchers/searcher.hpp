// SPDX-License-Identifier: Apache-2.0
#pragma once
// Searcher: where configurations come from. Deterministic and free of clocks, files and threads.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "ranktune/searchers/observations.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::searchers {

/// Suggestions are numbered 0, 1, 2, ... without gaps, in the order in which trials take them; trials that come from
/// elsewhere (a point to try first, a user) take none. `suggest` changes nothing: asked twice, it answers the same.
/// What a searcher learns it reads from the table of observations, which the core keeps for all; what it has to
/// remember besides, from records in `apply`; a record is applied exactly once, live and in replay.
///
///   suggest(0) -> {lr=0.1}    suggest(0) -> {lr=0.1}    apply(TrialCreated #0 {lr=0.1})    suggest(1) -> {lr=0.02}
///
/// One that takes long prepares its suggestions ahead, on a thread beside the head's loop: the core opens tickets, and
/// the next trial takes the oldest that is ready. Where none is, it takes `suggest`, a stopgap. In a deterministic
/// study it waits for its ticket instead.
class Searcher {
  public:
    virtual ~Searcher() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Suggestion `index`; nullopt: the space is exhausted, for good. Cheap: the head's loop waits for it.
    [[nodiscard]] virtual std::optional<space::Configuration> suggest(std::uint64_t index,
                                                                      const Observations& seen) const = 0;
    /// Whether `suggest(index)` would give nothing; cheaper than asking for the configuration.
    [[nodiscard]] virtual bool exhausted(std::uint64_t /*index*/) const { return false; }
    /// The table of observations is kept for it.
    [[nodiscard]] virtual bool learns() const { return false; }

    /// How many suggestions to prepare ahead where `groups` trials train at a time; 0: it prepares none.
    [[nodiscard]] virtual std::uint32_t prepares_ahead(std::uint32_t /*groups*/) const { return 0; }
    /// Computes a suggestion, on any thread, beside anything else that is done with the searcher; may throw, which is
    /// then told to people. A function of what it was made from alone.
    using Preparation = std::function<space::Configuration()>;
    /// The work for a ticket (0, 1, 2, ...), in view of `seen`, which is the preparation's own. Requires that it
    /// prepares ahead.
    [[nodiscard]] virtual Preparation prepare(std::uint64_t ticket, Observations seen) const;

    virtual void apply(const study::Record& record) = 0;
    virtual void snapshot(study::Encoder& out) const = 0;
    virtual void restore(study::Decoder& in) = 0;
};

} // namespace ranktune::searchers
