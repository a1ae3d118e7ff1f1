// SPDX-License-Identifier: Apache-2.0
#pragma once
// Searcher: where configurations come from. Deterministic and free of clocks, files and threads.

#include <memory>
#include <optional>
#include <string_view>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

/// `suggest` changes nothing: asked twice, it answers the same. What it learns, it learns from records in `apply`; a
/// record is applied exactly once, live and in replay.
///
///   suggest(#0) -> {lr=0.1}    suggest(#0) -> {lr=0.1}    apply(TrialCreated #0 {lr=0.1})    suggest(#1) -> {lr=0.02}
///
/// Trials are suggested in the order of their ids, without gaps.
class Searcher {
  public:
    virtual ~Searcher() = default;
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// The configuration of `trial`; nullopt: the space is exhausted, for good.
    [[nodiscard]] virtual std::optional<space::Configuration> suggest(base::TrialId trial) const = 0;
    /// Whether `suggest(trial)` would give nothing; cheaper than asking for the configuration.
    [[nodiscard]] virtual bool exhausted(base::TrialId /*trial*/) const { return false; }
    virtual void apply(const study::Record& record) = 0;
    virtual void snapshot(study::Encoder& out) const = 0;
    virtual void restore(study::Decoder& in) = 0;
};

/// The searcher that the study asks for. `spec` must outlive it.
[[nodiscard]] std::unique_ptr<Searcher> make_searcher(const study::StudySpec& spec);

} // namespace ranktune::searchers
